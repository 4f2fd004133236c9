//! Why a call on a connection failed.

use std::io;

use tenfold_http::IoError;
use tenfold_sys::errno;

/// Why nothing was sent.
pub(crate) enum Failure {
    /// The file has become shorter than what was promised of it.
    Truncated,
    /// The error of the call.
    Call(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        // A page that a mapped file has lost.
        if error.raw_os_error() == Some(errno::EFAULT) { Failure::Truncated } else { Failure::Call(error) }
    }
}

impl From<Failure> for IoError {
    fn from(failure: Failure) -> IoError {
        match failure {
            Failure::Truncated => IoError::Truncated,
            Failure::Call(error) => connection_error(&error),
        }
    }
}

/// The error of a connection that a failed call stands for.
pub(crate) fn connection_error(error: &io::Error) -> IoError {
    match error.kind() {
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::NotConnected
        | io::ErrorKind::TimedOut => IoError::Gone,
        _ => IoError::System(error.raw_os_error().unwrap_or(0)),
    }
}

/// Whether the same call can be made again.
pub(crate) fn interrupted(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted
}
