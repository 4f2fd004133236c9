//! How the work of connections is divided between a loop and a pool of threads.
//!
//! With `reactor`, the readiness driver moves a ready task to a thread, which polls it: see
//! `drivers/readiness/pool.rs`. With `proactor`, the loop reads and writes, and a thread processes the request: see
//! [`proactor`]. Both use the queues of [`queue`].

pub mod offload;
pub mod proactor;
pub(crate) mod queue;
mod sync;
