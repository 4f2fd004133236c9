//! The three drivers. Each implements [`tenfold_http::Io`] in its way, and runs whatever protocol over it.

pub(crate) mod accepting;
pub(crate) mod blocking;
pub(crate) mod completion;
pub(crate) mod files;
pub(crate) mod readiness;
pub(crate) mod tasks;

use std::io;

use tenfold_http::{Instant, IoError};

/// Tells this thread the time; once a turn.
pub(crate) fn read_clock() -> Instant {
    let (milliseconds, unix_seconds) = tenfold_sys::clock::coarse();
    let now = Instant(milliseconds);
    tenfold_http::clock::set(now, unix_seconds);
    now
}

/// What a failed call on a connection means to the protocol.
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

/// Whether accepting failed for want of descriptors or memory, which others may give back (EMFILE,
/// ENFILE, ENOBUFS, ENOMEM).
pub(crate) fn exhausted(error: &io::Error) -> bool {
    const EXHAUSTION: [i32; 4] = [24, 23, 105, 12];
    error.raw_os_error().is_some_and(|number| EXHAUSTION.contains(&number))
}

/// Whether a call only has to be made again.
pub(crate) fn interrupted(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted
}
