//! Errors of connections, and the check of responses.

use std::io;

use tenfold_sys::errno;

use crate::measure::record::ErrorKind;
use crate::message::response::ReceivedResponse;
use crate::plan::expect::Expect;

/// An error of a connection or a response.
#[derive(Debug)]
pub(crate) struct ExchangeError {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
}

impl ExchangeError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> ExchangeError {
        ExchangeError { kind, message: message.into() }
    }
}

/// Classifies an error of the system.
pub(crate) fn exchange_error(error: &io::Error) -> ExchangeError {
    let kind = match error.raw_os_error() {
        Some(errno::EMFILE | errno::ENFILE) => ErrorKind::NoDescriptor,
        _ => match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => ErrorKind::Refused,
            io::ErrorKind::AddrNotAvailable => ErrorKind::NoPort,
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => ErrorKind::Reset,
            io::ErrorKind::TimedOut => ErrorKind::Timeout,
            _ => ErrorKind::Connect,
        },
    };
    ExchangeError { kind, message: error.to_string() }
}

/// Describes the wrong property of a response for the report.
pub(crate) fn shown(kind: ErrorKind, response: &ReceivedResponse) -> String {
    match kind {
        ErrorKind::Length => format!("a body of {} bytes", response.length),
        ErrorKind::Hash => {
            let hex: String = response.hash.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
            format!("a body with the SHA-256 {hex}")
        }
        _ => format!("status {}", response.status),
    }
}

impl Expect {
    /// Checks a response.
    #[inline]
    pub fn judge(&self, response: &ReceivedResponse) -> Result<(), ErrorKind> {
        let status_is_right = match self.statuses.as_slice() {
            [] => response.status < 400,
            statuses => statuses.contains(&response.status),
        };
        if !status_is_right {
            return Err(ErrorKind::Status);
        }
        if self.length.is_some_and(|length| length != response.length) {
            return Err(ErrorKind::Length);
        }
        if self.hash.is_some_and(|hash| response.hash != Some(hash.0)) {
            return Err(ErrorKind::Hash);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::expect::BodyHash;

    #[test]
    fn each_expectation_is_an_error_of_its_own() {
        let right = ReceivedResponse { status: 200, length: 5, hash: Some([7; 32]), persistent: true };
        let expect = Expect { statuses: vec![200, 206], length: Some(5), hash: Some(BodyHash([7; 32])) };
        assert_eq!(expect.judge(&right), Ok(()));
        assert_eq!(expect.judge(&ReceivedResponse { status: 404, ..right }), Err(ErrorKind::Status));
        assert_eq!(expect.judge(&ReceivedResponse { length: 4, ..right }), Err(ErrorKind::Length));
        assert_eq!(expect.judge(&ReceivedResponse { hash: None, ..right }), Err(ErrorKind::Hash));
        assert_eq!(Expect::default().judge(&ReceivedResponse { status: 304, ..right }), Ok(()));
        assert_eq!(
            Expect::default().judge(&ReceivedResponse { status: 503, ..right }),
            Err(ErrorKind::Status)
        );
    }
}
