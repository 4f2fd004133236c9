//! The time at which a process that ended is started again.

use std::time::{Duration, Instant};

/// Plans the starts of a process: immediately after a long life or a first early end, then after growing pauses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Restart {
    /// A process that lived this long did not end early.
    lived: Duration,
    first: Duration,
    longest: Duration,
    began: Instant,
    /// Consecutive early ends.
    failures: u32,
    /// The time of the next start.
    again: Option<Instant>,
}

impl Restart {
    /// A process that is due at `now`. Its pauses begin with `first`, and each is twice the former, up to `longest`.
    pub(crate) fn new(lived: Duration, first: Duration, longest: Duration, now: Instant) -> Restart {
        Restart { lived, first, longest, began: now, failures: 0, again: Some(now) }
    }

    /// The process has started.
    pub(crate) fn on_start(&mut self, now: Instant) {
        (self.began, self.again) = (now, None);
    }

    /// The process has ended. Returns the pause before the next start.
    pub(crate) fn on_exit(&mut self, now: Instant) -> Duration {
        let lived = now.saturating_duration_since(self.began) >= self.lived;
        self.failures = if lived { 0 } else { self.failures.saturating_add(1) };
        let pause = match self.failures {
            0 | 1 => Duration::ZERO,
            failures => self.first.saturating_mul(1 << (failures - 2).min(16)).min(self.longest),
        };
        self.again = Some(now + pause);
        pause
    }

    /// The system could not start the process.
    pub(crate) fn postpone(&mut self, now: Instant) {
        self.again = Some(now + self.longest.min(Duration::from_secs(1)));
    }

    /// Starts no process, or one at this time.
    pub(crate) fn plan(&mut self, at: Option<Instant>) {
        self.again = at;
    }

    pub(crate) fn by(&self) -> Option<Instant> {
        self.again
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.again.is_some_and(|again| again <= now)
    }

    /// The time since the last start.
    pub(crate) fn age(&self) -> Duration {
        self.began.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_with_early_ends_and_a_long_life_ends_them() {
        let second = Duration::from_secs(1);
        let start = Instant::now();
        let mut restart = Restart::new(second, second, 3 * second, start);
        assert!(restart.is_due(start));
        let mut pauses = Vec::new();
        for _ in 0..5 {
            restart.on_start(start);
            assert!(!restart.is_due(start + second));
            pauses.push(restart.on_exit(start).as_secs());
        }
        assert_eq!(pauses, [0, 1, 2, 3, 3]);
        restart.on_start(start);
        assert_eq!(restart.on_exit(start + second), Duration::ZERO);
    }
}
