//! What [`super::handoff`] synchronises with. Its test puts a checker of all interleavings in this place.

pub(super) use std::sync::atomic::{AtomicBool, Ordering};
pub(super) use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) use tenfold_sys::eventfd::EventFd;
