//! Senders: one file per method of sending a file's bytes to a socket, with its state between two calls.
//!
//! The blocking and the readiness drivers send by these calls. The completion driver does so for `sendfile` and
//! `splice`, for which the ring has no operation; for other senders, it only uses the mappings.

mod copy;
pub(crate) mod cork;
pub(crate) mod failure;
mod mmap;
pub(crate) mod piece;
pub(crate) mod sender;
mod splice;
mod zerocopy;
