//! Waiting for what has to become true, with a bound.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// A bound for what normally takes milliseconds, on a machine that does ten other things.
pub const SOON: Duration = Duration::from_secs(10);

/// Waits until `probe` has something, for at most `bound`.
///
/// # Panics
/// When it has nothing by then; `what` says what was waited for.
#[track_caller]
pub fn eventually<T>(bound: Duration, what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    let mut pause = Duration::from_millis(2);
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(begin.elapsed() < bound, "{what}: not within {bound:?}");
        sleep(pause);
        pause = (pause * 3 / 2).min(Duration::from_millis(100));
    }
}

/// Waits until `probe` is true, for at most `bound`.
///
/// # Panics
/// When it is not by then.
#[track_caller]
pub fn becomes_true(bound: Duration, what: &str, mut probe: impl FnMut() -> bool) {
    eventually(bound, what, || probe().then_some(()));
}
