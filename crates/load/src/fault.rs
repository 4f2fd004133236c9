//! Why a connection failed, or an answer is wrong.

use std::io;

use tenfold_sys::errno;

use crate::record::ErrorKind;
use crate::response::Response;

/// Why a connection failed.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) kind: ErrorKind,
    pub(crate) said: String,
}

/// What the system said, as a kind of error.
pub(crate) fn fault_of(error: &io::Error) -> Fault {
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
    Fault { kind, said: error.to_string() }
}

/// What was wrong about an answer, for the example that is shown.
pub(crate) fn shown(kind: ErrorKind, response: &Response) -> String {
    match kind {
        ErrorKind::Length => format!("a body of {} bytes", response.length),
        ErrorKind::Hash => {
            let hex: String = response.hash.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
            format!("a body with the SHA-256 {hex}")
        }
        _ => format!("status {}", response.status),
    }
}
