//! The locks of [`super::queue`]. Its test replaces them by a checker of all interleavings.

pub(super) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
