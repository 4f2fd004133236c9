//! The environment of a measurement.

use std::fs;
use std::thread;

use serde::{Deserialize, Serialize};

/// The machine and the versions of a measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
}

/// Reads the environment. Unknown values are empty.
pub(crate) fn find() -> Environment {
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
    }
}
