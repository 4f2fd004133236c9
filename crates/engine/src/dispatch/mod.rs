//! How the work of connections is divided between a loop and a pool of threads.
//!
//! With `reactor`, the readiness driver moves a task that is ready to a thread, which polls it: see
//! `drivers/readiness/pool.rs`. With `proactor`, the loop reads and writes, and what a request means is
//! worked out by a thread: [`proactor`]. Both hand over through `handover`.

pub(crate) mod handover;
pub mod offload;
pub mod proactor;
mod sync;
