//! How the bytes of a file get to a socket: a file here for each way, and what a connection keeps for it
//! between two calls.
//!
//! The blocking and the readiness driver send by these calls. The completion driver does so where the ring
//! has no operation for it (`sendfile`, `splice`), and takes mapped pieces from here where it has one.

mod copy;
pub(crate) mod cork;
pub(crate) mod failure;
mod mmap;
pub(crate) mod piece;
pub(crate) mod sender;
mod splice;
mod zerocopy;
