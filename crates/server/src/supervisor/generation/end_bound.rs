//! The bounds on former generations: their number, and the time of their end.

use std::time::{Duration, Instant};

use tenfold_sys::signal::Signal;

/// The time in which workers must stop before they are killed.
pub(crate) const STOP: Duration = Duration::from_secs(2);

/// The most former generations without a bound on their connections.
pub(crate) const MOST_KEPT: usize = 8;
/// The most former generations that end within `drain-timeout`. If there are more, the oldest stops immediately.
const MOST_ENDING: usize = 4;
/// The most former generations. Each of their workers has a lane in the table of addresses.
pub(crate) const MOST_FORMER: usize = MOST_KEPT + MOST_ENDING;

/// The time by which processes must have ended, and the signal that they get at that time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndBound {
    pub(crate) by: Instant,
    next: Signal,
}

impl EndBound {
    /// The bound of processes that were asked to drain.
    pub(crate) fn within(time: Duration) -> EndBound {
        EndBound { by: Instant::now() + time, next: Signal::Interrupt }
    }

    /// Whether the processes have got the signal to stop, or get it now.
    pub(crate) fn stops(&self, now: Instant) -> bool {
        self.next == Signal::Kill || self.by <= now
    }

    /// The signal to send now, if the time is over. The next one is KILL.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Signal> {
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
