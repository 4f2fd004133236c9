//! The turns of a loop, which the supervisor watches: see [`Counter::LastTurn`](super::counters::Counter::LastTurn).

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenfold_http::Instant;

/// The longest wait of a loop: the supervisor would take a longer one for a loop that is stuck.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(4);

thread_local! {
    /// The word of the loop that this thread runs, if it runs a loop.
    static WORD: Cell<Option<&'static AtomicU64>> = const { Cell::new(None) };
}

/// Notes a turn of this thread's loop at the time `now`.
#[inline]
pub(crate) fn turn(word: &'static AtomicU64, now: Instant) {
    WORD.set(Some(word));
    // The row belongs to this thread. 0 means that no turn is expected, so a turn in the first millisecond after the
    // boot of the machine is stored as 1.
    word.store(now.0.max(1), Ordering::Relaxed);
}

/// Lets this thread's loop, if it runs a loop, not turn from now on until its next turn: it waits for the reader of a log
/// because the configuration says so, or it ends.
#[cold]
pub(crate) fn pause() {
    if let Some(word) = WORD.get() {
        word.store(0, Ordering::Relaxed);
    }
}
