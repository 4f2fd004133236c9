//! Failures of calls on a connection.

use std::io;

use tenfold_http::IoError;
use tenfold_sys::errno;

/// The reason of a failed send.
pub(crate) enum Failure {
    /// The file is shorter than the announced content.
    Truncated,
    /// The error of the call.
    Call(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        // A mapped file has lost a page.
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

/// The connection error for a failed call.
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

/// Whether the call can be repeated immediately.
pub(crate) fn interrupted(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted
}
