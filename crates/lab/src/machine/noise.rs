//! Disturbances of a trial, by fixed rules that read no result.

use std::fs;
use std::time::{Duration, Instant, SystemTime};

use tenfold_sys::usage;

/// The CPU time of other programs, as a part of one processor, above which a trial is flagged.
const MOST_FOREIGN: f64 = 0.10;
/// The stolen time, as a part of one processor, above which a trial is flagged.
const MOST_STEAL: f64 = 0.02;
/// The difference between wall clock and monotonic clock above which a trial is flagged.
const MOST_JUMP: Duration = Duration::from_millis(500);
const TICKS: f64 = 100.0;
/// The precision of `/proc/stat` in seconds: three ticks.
const PRECISION: f64 = 0.03;

/// The machine at the start of a trial.
#[derive(Debug)]
pub struct NoiseWatch {
    busy: f64,
    steal: f64,
    /// CPU seconds of this process and of finished load generators.
    own: f64,
    monotonic: Instant,
    wall: SystemTime,
}

impl NoiseWatch {
    /// Begins to watch.
    pub fn start() -> NoiseWatch {
        let (busy, steal) = busy(&fs::read_to_string("/proc/stat").unwrap_or_default());
        let own = usage::with_children().map_or(0.0, |time| time.as_secs_f64());
        NoiseWatch { busy, steal, own, monotonic: Instant::now(), wall: SystemTime::now() }
    }

    /// The disturbances since the start, given the CPU seconds of the server.
    pub fn flags(&self, server: f64) -> Vec<String> {
        let now = NoiseWatch::start();
        let seconds = (now.monotonic - self.monotonic).as_secs_f64().max(0.001);
        let foreign = now.busy - self.busy - (now.own - self.own) - server;
        let steal = now.steal - self.steal;
        let mut flags = Vec::new();
        if foreign > PRECISION.max(MOST_FOREIGN * seconds) {
            flags.push(format!("other programs used {:.0} % of a processor", foreign / seconds * 100.0));
        }
        if steal > PRECISION.max(MOST_STEAL * seconds) {
            flags.push(format!("the hypervisor took {:.0} % of a processor", steal / seconds * 100.0));
        }
        let wall = now.wall.duration_since(self.wall).unwrap_or_default();
        if wall.abs_diff(now.monotonic - self.monotonic) > MOST_JUMP {
            flags.push("the clock was set, or the machine slept".to_owned());
        }
        flags
    }
}

/// Busy seconds and stolen seconds of all processors.
fn busy(stat: &str) -> (f64, f64) {
    let line = stat.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = line.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    let at = |index: usize| ticks.get(index).copied().unwrap_or_default() / TICKS;
    // user, nice, system, idle, iowait, irq, softirq, steal
    (at(0) + at(1) + at(2) + at(5) + at(6), at(7))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_and_stolen_time_is_flagged() {
        assert_eq!(busy("cpu  100 0 200 5000 10 0 50 30 0 0\ncpu0 1 2 3"), (3.5, 0.3));
        let quiet = NoiseWatch { steal: f64::MAX, busy: f64::MAX, ..NoiseWatch::start() };
        assert!(quiet.flags(0.0).is_empty());
        let loud = NoiseWatch { steal: -1.0, busy: -10.0, ..NoiseWatch::start() };
        let said = loud.flags(0.0).join("; ");
        assert!(said.contains("other programs") && said.contains("hypervisor"), "{said}");
        let asleep = NoiseWatch { wall: SystemTime::now() - Duration::from_secs(60), ..NoiseWatch::start() };
        assert!(asleep.flags(f64::MAX).join("; ").contains("slept"));
    }
}
