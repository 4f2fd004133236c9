//! `libevent` (libevent.org): readiness through a library that chooses the system call.
//!
//! A [`Base`] belongs to one thread and takes no locks. It is created after the last fork of its process, so nothing
//! must be reinitialised. A callback stores ready descriptors and does nothing else, so no code that could panic runs
//! below a C frame.

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
