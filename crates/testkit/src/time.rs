//! Bounded waits for conditions, the end of background threads, and locks of failed cases.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The bound for events that normally take milliseconds, on a busy machine.
pub const SOON: Duration = Duration::from_secs(10);

/// The longest wait for bytes of a server.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until `probe` returns a value, for at most `bound`.
#[track_caller]
pub fn eventually<T>(bound: Duration, what: &str, probe: impl FnMut() -> Option<T>) -> T {
    match within(bound, probe) {
        Some(found) => found,
        None => panic!("{what}: not within {bound:?}"),
    }
}

/// The value that `probe` returns within `bound`.
pub fn within<T>(bound: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let begin = Instant::now();
    let mut pause = Duration::from_millis(2);
    loop {
        if let Some(found) = probe() {
            return Some(found);
        }
        if begin.elapsed() >= bound {
            return None;
        }
        sleep(pause);
        pause = (pause * 3 / 2).min(Duration::from_millis(100));
    }
}

/// Waits until `probe` is true, for at most `bound`.
#[track_caller]
pub fn becomes_true(bound: Duration, what: &str, mut probe: impl FnMut() -> bool) {
    eventually(bound, what, || probe().then_some(()));
}

/// A flag that ends the threads of a case, also if the case fails, because their scope waits for them.
#[derive(Debug)]
pub struct EndOnDrop<'f>(pub &'f AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Locks a mutex, even after a failure of its last owner.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
