//! The turns of a loop, which the supervisor watches: see [`Counter::LastTurn`](super::counters::Counter::LastTurn).

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenfold_http::Instant;

/// The longest wait of a loop. The supervisor treats a loop with a longer wait as stuck.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(4);

thread_local! {
    /// The word for the loop of this thread; `None` without a loop.
    static WORD: Cell<Option<&'static AtomicU64>> = const { Cell::new(None) };
}

/// Records a turn of this thread's loop at the time `now`.
#[inline]
pub(crate) fn turn(word: &'static AtomicU64, now: Instant) {
    WORD.set(Some(word));
    // Only this thread writes the row. 0 means that no turn is expected, so a turn in the first millisecond after the
    // boot is stored as 1.
    word.store(now.0.max(1), Ordering::Relaxed);
}

/// Expects no turn of this thread's loop until its next turn, because the thread ends, or waits for the reader of a log
/// as configured.
#[cold]
pub(crate) fn pause() {
    if let Some(word) = WORD.get() {
        word.store(0, Ordering::Relaxed);
    }
}
