//! The failure of a handshake because the signing process did not sign.

use std::error::Error as StdError;
use std::fmt;

use rustls::{Error, OtherError};

/// The reason for a missing signature.
#[derive(Debug)]
pub(crate) struct SigningFailure {
    pub(crate) reason: String,
    /// Whether a retry may succeed: the signing process is late, or was replaced.
    pub(crate) is_late: bool,
}

impl fmt::Display for SigningFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl StdError for SigningFailure {}

/// Returns the failure if a handshake failed because the signing process did not sign.
pub(crate) fn signing_failure(error: &Error) -> Option<&SigningFailure> {
    if let Error::Other(OtherError(inner)) = error { inner.downcast_ref() } else { None }
}
