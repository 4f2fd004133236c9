//! The environment of a measurement.

use std::fs;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The machine and the versions of a measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The version of this program.
    pub version: String,
    /// The version of Linux.
    pub kernel: String,
    /// The processor model.
    pub processor: String,
    /// The processors that this process may use.
    pub processors: usize,
    /// The load average of the last minute before the run.
    pub load: String,
    /// The mean number of runnable threads of other programs before the run. The load average would count an earlier
    /// run.
    pub others: f64,
    /// The processors of the machine.
    pub online: usize,
}

/// Processors that a measurement needs: for the generator and for the server.
const NEEDED: f64 = 2.0;
/// The runnable threads of other programs that do not disturb a measurement.
pub const FEW_OTHERS: f64 = 0.5;
/// Samples of the number of runnable threads.
const SAMPLES: u32 = 10;
/// The time between two samples: many time slices of the scheduler.
const BETWEEN: Duration = Duration::from_millis(3);

impl Environment {
    /// The reason why other programs spoil a measurement, if they leave fewer processors than it needs.
    pub fn crowded(&self) -> Option<String> {
        let most = (self.online as f64 - NEEDED + FEW_OTHERS).max(FEW_OTHERS);
        (self.others > most).then(|| {
            format!(
                "other programs run: {:.1} of their threads want one of {} processors, and server and client need two; \
                 end these programs, or wait",
                self.others, self.online
            )
        })
    }
}

/// The mean number of runnable threads of other programs.
fn others() -> f64 {
    let sample = |number: u32| {
        if number > 0 {
            thread::sleep(BETWEEN);
        }
        running(&fs::read_to_string("/proc/loadavg").unwrap_or_default())
    };
    f64::from((0..SAMPLES).map(sample).sum::<u32>()) / f64::from(SAMPLES)
}

/// The runnable threads except the caller's (`man 5 proc`, `/proc/loadavg`).
fn running(loadavg: &str) -> u32 {
    let field = loadavg.split(' ').nth(3).and_then(|field| field.split('/').next());
    field.and_then(|count| count.parse::<u32>().ok()).unwrap_or_default().saturating_sub(1)
}

/// Reads the environment. Unknown values are empty.
pub fn find() -> Environment {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let processor = read("/proc/cpuinfo")
        .lines()
        .find_map(|line| {
            line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim().to_owned())
        })
        .unwrap_or_default();
    Environment {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        processor,
        processors: thread::available_parallelism().map_or(0, usize::from),
        load: read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned(),
        others: others(),
        online: read("/proc/stat").lines().skip(1).take_while(|line| line.starts_with("cpu")).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_needs_two_processors() {
        let crowded = |others, online| Environment { others, online, ..Environment::default() }.crowded();
        assert!(crowded(156.0, 2).is_some_and(|why| why.contains("156.0 of their threads want one of 2")));
        for (others, online) in [(0.6, 1), (0.6, 2), (2.6, 4), (63.0, 64)] {
            assert!(crowded(others, online).is_some(), "{others} on {online}");
        }
        for (others, online) in [(0.4, 1), (0.4, 2), (2.4, 4), (62.0, 64)] {
            assert_eq!(crowded(others, online), None, "{others} on {online}");
        }
    }

    #[test]
    fn threads_that_want_to_run_are_counted() {
        assert_eq!(running("0.53 1.44 0.93 4/217 4711"), 3);
        assert_eq!([running("0.53 1.44 0.93 0/217 4711"), running("")], [0, 0]);
        assert!(find().online > 0);
    }
}
