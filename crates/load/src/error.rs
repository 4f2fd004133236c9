//! Errors that prevent a run.

use std::fmt;

/// The reason why a run is impossible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The plan is contradictory or incomplete: exit code 2.
    Usage(String),
    /// The system or the server refused an operation: exit code 1.
    Failed(String),
    /// A signal ended the preparation: exit code 130.
    Interrupted,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Usage(what) | LoadError::Failed(what) => f.write_str(what),
            LoadError::Interrupted => f.write_str("interrupted before the run"),
        }
    }
}

impl std::error::Error for LoadError {}

/// Describes a failed operation and the system's error.
pub(crate) fn failed(attempt: impl fmt::Display, error: &std::io::Error) -> LoadError {
    LoadError::Failed(format!("cannot {attempt}: {error}"))
}
