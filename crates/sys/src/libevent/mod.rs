//! `libevent` (libevent.org): readiness through a library that chooses the system call.
//!
//! A [`Base`] belongs to one thread and takes no locks. It is made after the last fork of its process, so
//! there is nothing to reinitialise. What becomes ready is put aside by a callback that does nothing else:
//! no code that could panic runs below a frame of C.

#[cfg(not(libevent))]
#[path = "absent.rs"]
mod base;
#[cfg(libevent)]
mod base;
#[cfg(libevent)]
mod declared;

pub use base::{Base, METHODS};

/// What a registration wants to hear of.
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
