//! The state of a connection that a driver keeps.

use crate::clock::Instant;

/// The driver's next step with a connection when [`crate::serve_connection`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing is in hand: keep the socket and the [`Session`], give everything else back, and serve the
    /// connection again when there is something to read. Close it when this moment passes.
    Park(Instant),
    /// Output is shut down: read and throw away what still comes, within a bound, then close.
    Linger,
    /// Close at once.
    Close,
}

/// The memory of a connection while it is idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// Requests answered so far; stays at its greatest value.
    pub requests: u32,
}
