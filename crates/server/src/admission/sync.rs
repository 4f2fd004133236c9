//! The primitives of the table of addresses and of its lock. Their test by loom puts other things in this place.

pub(super) use std::sync::atomic::AtomicU64;
pub(super) use std::thread;

pub(super) use tenfold_sys::shared::SharedRows;
