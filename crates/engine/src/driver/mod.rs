//! The three drivers. Each implements [`tenfold_http::Io`] in its way, and runs whatever protocol over it.

pub(crate) mod accepting;
pub(crate) mod blocking;
pub(crate) mod completion;
pub(crate) mod cork;
pub(crate) mod files;
pub(crate) mod readiness;
pub(crate) mod tasks;
pub(crate) mod turn;

use std::io;
use std::net::SocketAddr;

use tenfold_http::{Instant, IoError, Peer};
use tenfold_sys::failure::is_shortage;

use crate::protocol::{Event, Protocol};

/// Tells this thread the time; once a turn.
pub(crate) fn read_clock() -> Instant {
    let (milliseconds, unix_seconds) = tenfold_sys::clock::coarse();
    let now = Instant(milliseconds);
    tenfold_http::clock::set(now, unix_seconds);
    now
}

/// The peer as `accept` tells it: none on a Unix socket.
pub(crate) fn of_accepted(peer: Option<SocketAddr>) -> Peer {
    peer.map_or(Peer::Unix, Peer::Internet)
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

/// A wait that could not begin for want of memory is counted and begins after a pause, so that nobody spins.
///
/// # Errors
/// Any other failure of a wait, as it is.
pub(crate) fn pause_where_short<P: Protocol>(error: io::Error, protocol: &P) -> io::Result<()> {
    if !is_shortage(&error) {
        return Err(error);
    }
    protocol.observe(Event::Exhausted);
    std::thread::sleep(crate::EXHAUSTED_PAUSE);
    Ok(())
}

/// Whether a call only has to be made again.
pub(crate) fn interrupted(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted
}
