//! `libevent` (libevent.org): readiness through a library that chooses the system call.
//!
//! A [`LibeventBase`] belongs to one thread and takes no locks. It is created after the last fork of its process, so
//! nothing must be reinitialised. A callback stores ready descriptors and does nothing else, so no code that could
//! panic runs below a C frame.

#[cfg(not(libevent))]
mod absent;
#[cfg(libevent)]
mod base;
#[cfg(libevent)]
mod declared;
mod interest;

#[cfg(not(libevent))]
pub use absent::{AbsentBase as LibeventBase, METHODS};
#[cfg(libevent)]
pub use base::{LibeventBase, METHODS};
pub use interest::LibeventInterest;
