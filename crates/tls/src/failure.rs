//! The failure of a handshake because another process did not sign.

use std::error::Error as StdError;
use std::fmt;

use rustls::{Error, OtherError};

/// The reason why there is no signature.
#[derive(Debug)]
pub(crate) struct SigningFailure {
    pub(crate) reason: String,
    /// Whether another attempt may succeed: the other process is late, or was replaced.
    pub(crate) is_late: bool,
}

impl fmt::Display for SigningFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl StdError for SigningFailure {}

/// Returns the failure if a handshake failed because another process did not sign.
pub(crate) fn signing_failure(error: &Error) -> Option<&SigningFailure> {
    if let Error::Other(OtherError(inner)) = error { inner.downcast_ref() } else { None }
}
