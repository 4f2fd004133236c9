//! The events of a registration.

/// The events that a registration reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LibeventInterest {
    /// Input, or the end of the peer's output.
    pub read: bool,
    /// Room to write.
    pub write: bool,
    /// Report only changes; only with the method `epoll`.
    pub edge: bool,
    /// Report once, until the next registration.
    pub once: bool,
}
