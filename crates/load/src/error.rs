//! Why a run cannot be made.

use std::fmt;

/// Why a run cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// What was asked for makes no sense: exit code 2.
    Usage(String),
    /// It was tried, and the system or the server said no: exit code 1.
    Failed(String),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Wrong::Usage(what) | Wrong::Failed(what)) = self;
        f.write_str(what)
    }
}

impl std::error::Error for Wrong {}

/// A failure of the system: what was attempted, on what, and what it said.
pub(crate) fn failed(attempt: impl fmt::Display, error: &std::io::Error) -> Wrong {
    Wrong::Failed(format!("{attempt}: {error}"))
}
