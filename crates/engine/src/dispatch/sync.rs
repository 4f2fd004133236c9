//! What [`super::handover`] locks with. Its test puts a checker of all interleavings in this place.

pub(super) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
