//! Where a measurement was made: without that, a number says little.

use std::fs;
use std::thread;

use serde::{Deserialize, Serialize};

/// Where a measurement was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Of this program.
    pub version: String,
    /// Of Linux.
    pub kernel: String,
    /// The processor's name.
    pub processor: String,
    /// Processors that this process may run on.
    pub processors: usize,
    /// Processes that wanted to run before the run began, averaged over a minute.
    pub load: String,
}

/// What can be found out; what cannot is empty.
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
