//! Why a run cannot be made.

use std::fmt;

/// Why a run cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// What was asked for makes no sense: exit code 2.
    Usage(String),
    /// It was tried, and the system or the server said no: exit code 1.
    Failed(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (LoadError::Usage(what) | LoadError::Failed(what)) = self;
        f.write_str(what)
    }
}

impl std::error::Error for LoadError {}

/// A failure of the system: what was attempted, on what, and what it said.
pub(crate) fn failed(attempt: impl fmt::Display, error: &std::io::Error) -> LoadError {
    LoadError::Failed(format!("{attempt}: {error}"))
}
