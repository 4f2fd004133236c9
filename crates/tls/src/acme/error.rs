//! The reason why an attempt failed.

use std::fmt;

/// A failed step of an attempt, with its reason.
#[derive(Debug)]
pub struct AcmeError(String);

impl AcmeError {
    /// Returns an error of a step that is named by a verb: `create the account`.
    pub(super) fn new(step: &str, reason: impl fmt::Display) -> AcmeError {
        AcmeError(format!("cannot {step}: {reason}"))
    }

    /// Returns a function that makes such errors of reasons.
    pub(super) fn at<E: fmt::Display>(step: &str) -> impl FnOnce(E) -> AcmeError {
        move |reason| AcmeError::new(step, reason)
    }
}

impl fmt::Display for AcmeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AcmeError {}
