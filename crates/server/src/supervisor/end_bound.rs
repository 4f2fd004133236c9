//! The bounds on former generations: their number, and the time of their end.

use std::time::{Duration, Instant};

use tenfold_sys::signal::Signal;

/// The time in which workers must stop before they are killed.
pub(super) const STOP: Duration = Duration::from_secs(2);

/// The most former generations that keep their connections for as long as these last.
pub(super) const MOST_KEPT: usize = 8;
/// The most former generations that end within `drain-timeout`. If there are more, the oldest one stops immediately.
const MOST_ENDING: usize = 4;
/// The most former generations. Each worker has a row in the table of addresses for itself, which bounds their number.
pub(super) const MOST_FORMER: usize = MOST_KEPT + MOST_ENDING;

/// The time by which processes must have ended, and the signal that they get then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndBound {
    pub(super) by: Instant,
    next: Signal,
}

impl EndBound {
    /// The bound of processes that were asked to drain.
    pub(super) fn within(time: Duration) -> EndBound {
        EndBound { by: Instant::now() + time, next: Signal::Interrupt }
    }

    /// Whether the processes were told to stop, or are told now.
    pub(super) fn stops(&self, now: Instant) -> bool {
        self.next == Signal::Kill || self.by <= now
    }

    /// The signal to send now, if the time is over. The next one is KILL.
    pub(super) fn due(&mut self, now: Instant) -> Option<Signal> {
        if self.by > now {
            return None;
        }
        self.by = now + STOP;
        Some(std::mem::replace(&mut self.next, Signal::Kill))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_do_not_end_in_time_are_stopped_and_then_killed() {
        let mut bound = EndBound::within(Duration::from_secs(60));
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(bound.due(after(59)), None);
        assert_eq!(bound.due(after(61)), Some(Signal::Interrupt));
        assert_eq!(bound.due(after(61)), None);
        assert_eq!(bound.due(after(61) + STOP), Some(Signal::Kill));
    }
}
