//! The failure of a handshake because another process did not sign.

use std::error::Error as StdError;
use std::fmt;

use rustls::{Error, OtherError};

/// The reason why there is no signature.
#[derive(Debug)]
pub(crate) struct SigningFailure(pub(crate) String);

impl fmt::Display for SigningFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for SigningFailure {}

/// Whether a handshake failed because another process did not sign.
pub(crate) fn is_signing_failure(error: &Error) -> bool {
    matches!(error, Error::Other(OtherError(inner)) if inner.is::<SigningFailure>())
}
