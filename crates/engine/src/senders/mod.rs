//! Senders: one file per method of sending a file's bytes to a socket, with its state between two calls.
//!
//! The blocking and the readiness driver send by these calls. The completion driver does so
//! if the ring has no such operation (`sendfile`, `splice`); otherwise it only takes mapped pieces from here.

mod copy;
pub(crate) mod cork;
pub(crate) mod failure;
mod mmap;
pub(crate) mod piece;
pub(crate) mod sender;
mod splice;
mod zerocopy;
