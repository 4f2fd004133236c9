//! The turns of loops, read from shared memory.

use std::time::{Duration, Instant};

use crate::status::turns::LONGEST_WAIT;

/// The interval of checks.
const LOOK: Duration = Duration::from_secs(2);
/// After this time a worker counts as stuck in reports: more than the longest wait of a loop and the interval.
const LATE: Duration = Duration::from_secs(7);
/// After this time its process is killed.
pub(crate) const STUCK: Duration = Duration::from_secs(10);

/// The last turn of each loop.
#[derive(Debug)]
pub(crate) struct Pulses {
    /// The word of each loop, and the check that first found it. 0: the loop has not begun, or has ended.
    seen: Vec<(u64, Instant)>,
    looked: Instant,
}

impl Pulses {
    pub(crate) fn new(loops: usize, now: Instant) -> Pulses {
        Pulses { seen: vec![(0, now); loops], looked: now }
    }

    /// Notes the present words.
    pub(crate) fn look(&mut self, words: impl Iterator<Item = u64>, now: Instant) {
        // If this process was stopped, so were the workers.
        let was_away = now.saturating_duration_since(self.looked) > LOOK + LONGEST_WAIT;
        self.looked = now;
        for (seen, word) in self.seen.iter_mut().zip(words) {
            if was_away || seen.0 != word {
                *seen = (word, now);
            }
        }
    }

    /// Whether the loop of `row` is late.
    pub(crate) fn is_late(&self, row: usize, now: Instant) -> bool {
        self.has_not_turned_for(LATE, row, now)
    }

    /// Whether the loop of `row` is stuck.
    pub(crate) fn is_stuck(&self, row: usize, now: Instant) -> bool {
        self.has_not_turned_for(STUCK, row, now)
    }

    /// The time of the next check.
    pub(crate) fn next_look(&self) -> Instant {
        self.looked + LOOK
    }

    fn has_not_turned_for(&self, time: Duration, row: usize, now: Instant) -> bool {
        let (word, since) = self.seen[row];
        word != 0 && now.saturating_duration_since(since) >= time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times of a test, in seconds after its start.
    fn seconds() -> impl Fn(u64) -> Instant {
        let start = Instant::now();
        move |seconds| start + Duration::from_secs(seconds)
    }

    #[test]
    fn a_loop_is_late_and_then_stuck_if_its_word_stays() {
        let at = seconds();
        let mut pulses = Pulses::new(2, at(0));
        for second in (0..=10).step_by(2) {
            pulses.look([5, 5 + second].into_iter(), at(second));
        }
        assert!(pulses.is_late(0, at(7)) && !pulses.is_stuck(0, at(9)));
        assert!(pulses.is_stuck(0, at(10)) && !pulses.is_late(1, at(10)));
        pulses.look([0, 0].into_iter(), at(12));
        assert!(!pulses.is_late(0, at(100)), "a loop that has ended");
    }

    #[test]
    fn a_loop_is_not_stuck_if_the_supervisor_was_stopped_with_it() {
        let at = seconds();
        let mut pulses = Pulses::new(1, at(0));
        pulses.look([5].into_iter(), at(1));
        pulses.look([5].into_iter(), at(60));
        assert!(!pulses.is_late(0, at(61)));
        pulses.look([5].into_iter(), at(62));
        assert!(pulses.is_late(0, at(68)));
    }
}
