//! The time that the threads of a pool have spent on their queries.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time that each thread of a pool has spent on its query.
#[derive(Debug)]
pub(crate) struct ThreadPulse {
    origin: Instant,
    /// Milliseconds since the origin, plus 1; 0 for a thread without a query.
    since: Vec<AtomicU64>,
}

impl ThreadPulse {
    /// A table for a pool of so many threads.
    pub(crate) fn new(threads: usize, now: Instant) -> ThreadPulse {
        ThreadPulse { origin: now, since: (0..threads).map(|_| AtomicU64::new(0)).collect() }
    }

    /// A thread begins a query.
    pub(crate) fn begin(&self, thread: usize, now: Instant) {
        let passed = now.saturating_duration_since(self.origin).as_millis();
        self.since[thread].store(u64::try_from(passed).unwrap_or(u64::MAX - 1) + 1, Ordering::Relaxed);
    }

    /// A thread has finished its query.
    pub(crate) fn end(&self, thread: usize) {
        self.since[thread].store(0, Ordering::Relaxed);
    }

    /// Whether every thread has spent more than `limit` on one query.
    pub(crate) fn all_longer_than(&self, limit: Duration, now: Instant) -> bool {
        self.since.iter().all(|since| match since.load(Ordering::Relaxed) {
            0 => false,
            since => now > self.origin + Duration::from_millis(since - 1) + limit,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h77_a_pool_hangs_when_its_last_thread_does() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let busy = ThreadPulse::new(2, start);
        let limit = Duration::from_secs(60);
        assert!(!busy.all_longer_than(limit, after(100)), "threads that wait do not hang");
        busy.begin(0, after(0));
        busy.begin(1, after(50));
        assert!(!busy.all_longer_than(limit, after(100)));
        assert!(busy.all_longer_than(limit, after(111)));
        busy.end(0);
        assert!(!busy.all_longer_than(limit, after(200)));
    }
}
