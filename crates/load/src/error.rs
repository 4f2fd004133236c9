//! Errors that prevent a run.

use std::fmt;

/// The reason why a run is impossible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The plan is contradictory or incomplete: exit code 2.
    Usage(String),
    /// The system or the server refused an operation: exit code 1.
    Failed(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (LoadError::Usage(what) | LoadError::Failed(what)) = self;
        f.write_str(what)
    }
}

impl std::error::Error for LoadError {}

/// Describes a failed operation and the system's error.
pub(crate) fn failed(attempt: impl fmt::Display, error: &std::io::Error) -> LoadError {
    LoadError::Failed(format!("cannot {attempt}: {error}"))
}
