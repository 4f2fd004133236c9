//! Mechanisms that report readiness, and the report that they share.

pub mod epoll;
pub mod eventfd;
pub mod libevent;
pub mod poll;
pub mod select;
pub mod wait;

/// What is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The registration's word.
    pub key: u64,
    /// There is something to read: bytes, an end, or an error.
    pub read: bool,
    /// There is room to write.
    pub write: bool,
    /// The peer has ended its output, as far as the mechanism says so.
    pub ended: bool,
    /// The connection is gone in both directions, as far as the mechanism says so.
    pub gone: bool,
    /// There is an error to be fetched, or something in the socket's error queue (`man 7 ip`), as far as the
    /// mechanism says so.
    pub error: bool,
}
