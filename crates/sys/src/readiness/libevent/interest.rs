//! The events of a registration.

/// The events that a registration reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// There is something to read, or the peer has ended its output.
    pub read: bool,
    /// There is room to write.
    pub write: bool,
    /// Report a change only; with the method `epoll` alone.
    pub edge: bool,
    /// Report once, then wait to be registered again.
    pub once: bool,
}
