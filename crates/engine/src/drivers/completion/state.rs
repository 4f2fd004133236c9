//! What the driver remembers of a connection in its slot.

/// Bits of a slot's interest: operations in flight that name the socket.
pub(super) const RECEIVING: u8 = 1;
pub(super) const MULTISHOT: u8 = 2;
pub(super) const CANCELLING: u8 = 4;
pub(super) const POLLING: u8 = 8;
pub(super) const CLOSING: u8 = 16;

/// Bits of a slot's flags, beside [`SERVED`].
/// The first receive, which is one-shot, has been made.
pub(super) const GREETED: u8 = 2;
/// The peer has ended its output.
pub(super) const ENDED: u8 = 4;
/// A send has failed.
pub(super) const FAILED: u8 = 8;
/// What waits in the socket is not to be sent.
pub(super) const RESET: u8 = 16;
/// It was idle, and is closed for a new connection.
pub(super) const EVICTED: u8 = 32;
