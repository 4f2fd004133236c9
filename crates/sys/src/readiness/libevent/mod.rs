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
mod interest;

pub use base::{Base, METHODS};
pub use interest::Interest;
