//! Mechanisms that report readiness, and their common report.

pub mod epoll;
pub mod eventfd;
pub mod libevent;
pub mod poll;
pub mod select;
pub mod wait;

/// A ready descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// The key of the registration.
    pub key: u64,
    /// There is input: bytes, an end, or an error.
    pub read: bool,
    /// There is room to write.
    pub write: bool,
    /// The peer has ended its output, if the mechanism reports it.
    pub ended: bool,
    /// The connection is closed in both directions, if the mechanism reports it.
    pub gone: bool,
    /// A pending error, or an entry in the socket's error queue (`man 7 ip`), if the mechanism reports it.
    pub error: bool,
}
