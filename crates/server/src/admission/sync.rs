//! The primitives of the table of addresses and of its lock. The loom test replaces them.

pub(super) use std::sync::atomic::AtomicU64;
pub(super) use std::thread;

pub(super) use tenfold_sys::shared::SharedRows;
