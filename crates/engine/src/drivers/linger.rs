//! Lingering: received bytes are discarded while the peer may still send, so that closing does not reset what was sent
//! (RFC 9112 §9.6).

use std::io::ErrorKind;

use tenfold_sys::socket::Socket;

use crate::plan::Bounds;
use crate::senders::failure::interrupted;

/// The result of one call that discards bytes.
pub(crate) enum Discarded {
    /// The bytes discarded so far, within the bound.
    Some(u32),
    /// No bytes now, but more may follow.
    Nothing,
    /// The peer has ended its output, has left, or has sent more than the bound.
    Over,
}

/// Makes one call that discards received bytes. `drained` is the number of bytes discarded before.
pub(crate) fn discard(socket: &Socket, drained: u32, bounds: &Bounds) -> Discarded {
    let mut scratch = [0; 8192];
    match socket.receive(&mut scratch) {
        Ok(0) => Discarded::Over,
        Ok(count) => add(drained, count as u32, bounds).map_or(Discarded::Over, Discarded::Some),
        Err(error) if interrupted(&error) => Discarded::Some(drained),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Discarded::Nothing,
        Err(_) => Discarded::Over,
    }
}

/// Adds `count` bytes; `None` if the sum exceeds the bound.
pub(crate) fn add(drained: u32, count: u32, bounds: &Bounds) -> Option<u32> {
    let drained = drained.saturating_add(count);
    (u64::from(drained) <= bounds.linger_bytes).then_some(drained)
}
