//! The heartbeats of a helper process, in shared memory.

use std::time::{Duration, Instant};

/// The time in which a process must send its first heartbeat, the interval of checks, and the number of checks without a
/// heartbeat that count as a hang. Checks are counted instead of seconds, so that a stopped and continued server does not
/// look like a hang.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeartbeatBounds {
    pub(crate) latest_start: Duration,
    pub(crate) look: Duration,
    pub(crate) looks: u32,
}

/// The heartbeats of a process at the last check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeartbeatWatch {
    bounds: HeartbeatBounds,
    began: Instant,
    /// The time of the next check; the heartbeats at the last check, and the checks since they changed.
    look: Instant,
    beats: u64,
    silent: u32,
}

impl HeartbeatWatch {
    /// The watch over a process that begins.
    pub(crate) fn new(bounds: HeartbeatBounds, now: Instant) -> HeartbeatWatch {
        HeartbeatWatch { bounds, began: now, look: now + bounds.look, beats: 0, silent: 0 }
    }

    /// The watch over another process.
    pub(crate) fn renewed(self, now: Instant) -> HeartbeatWatch {
        HeartbeatWatch::new(self.bounds, now)
    }

    /// The time of the next check.
    pub(crate) fn by(&self) -> Instant {
        self.look
    }

    /// Notes the heartbeats since the start of the process, 0 while it starts. Returns whether the process hangs.
    pub(crate) fn hangs(&mut self, beats: u64, now: Instant) -> bool {
        if self.look > now {
            return false;
        }
        self.look = now + self.bounds.look;
        if beats != self.beats {
            (self.beats, self.silent) = (beats, 0);
        } else if beats > 0 || now > self.began + self.bounds.latest_start {
            self.silent += 1;
        }
        let hangs = self.silent >= self.bounds.looks;
        if hangs {
            self.silent = 0;
        }
        hangs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_hangs_if_checks_see_no_heartbeat() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let bounds =
            HeartbeatBounds { latest_start: Duration::from_secs(10), look: Duration::from_secs(2), looks: 3 };
        let mut watch = HeartbeatWatch::new(bounds, start);
        assert!((0..10).all(|second| !watch.hangs(0, at(second))), "it starts");
        assert!((10..20).all(|second| !watch.hangs(second, at(second))));
        let hangs: Vec<u64> = (20..30).filter(|second| watch.hangs(19, at(*second))).collect();
        assert_eq!(hangs, [26]);
        // It was stopped together with the supervisor.
        let mut watch = HeartbeatWatch::new(bounds, start);
        assert!(!watch.hangs(1, at(2)) && !watch.hangs(1, at(100)) && !watch.hangs(2, at(102)));
        let mut late = HeartbeatWatch::new(bounds, start);
        assert!((0..17).any(|second| late.hangs(0, at(second))), "it never started");
    }
}
