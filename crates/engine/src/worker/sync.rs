//! The primitives of [`super::handoff`]. Its test replaces them by a checker of all interleavings.

pub(super) use std::sync::atomic::{AtomicBool, Ordering};
pub(super) use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) use tenfold_sys::eventfd::EventFd;
