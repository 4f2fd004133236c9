//! Bounded waits for conditions, the end of background threads, and locks of failed cases.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The bound for events that normally take milliseconds, on a busy machine.
pub const SOON: Duration = Duration::from_secs(10);

/// The longest wait for bytes of a server, or for a sign of life of a program.
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
        // The condition of another process has no event in this one.
        sleep(pause);
        pause = (pause * 3 / 2).min(Duration::from_millis(100));
    }
}

/// Waits until `probe` is true, for at most `bound`.
#[track_caller]
pub fn becomes_true(bound: Duration, what: &str, mut probe: impl FnMut() -> bool) {
    eventually(bound, what, || probe().then_some(()));
}

/// The most by which a wait of a server may seem too short: its clock moves with the ticks of the kernel, of 10 ms at
/// most (`man 2 clock_gettime`, CLOCK_MONOTONIC_COARSE).
pub const TICK: Duration = Duration::from_millis(20);

/// Deadlines of a server. The longer ones are for clients that are late, on a busy machine.
const DEADLINES: [Duration; 3] =
    [Duration::from_millis(300), Duration::from_millis(1500), Duration::from_secs(6)];

/// Runs `attempt` with longer deadlines until it was in time. It returns false if the server may have seen a late client.
#[track_caller]
pub fn with_deadlines(attempt: impl FnMut(Duration) -> bool) {
    assert!(DEADLINES.into_iter().any(attempt), "the client was late for every deadline");
}

/// Expects that a wait of the server was not shorter than `deadline`. `begun` precedes the event from which it waits.
#[track_caller]
pub fn not_before(deadline: Duration, begun: Instant) {
    let took = begun.elapsed();
    assert!(took + TICK >= deadline, "it took {took:?}, less than the deadline of {deadline:?}");
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
