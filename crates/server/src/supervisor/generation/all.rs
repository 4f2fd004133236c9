//! All generations of the server, and the sums of those that have ended.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

use super::Generation;
use super::address_rows::AddressRows;
use crate::status::counters::{Counter, Sums};
use crate::status::report::ReloadCounts;

/// All generations.
pub(crate) struct Generations {
    /// In the order of their starts; the last one serves or is starting.
    pub(crate) all: Vec<Generation>,
    /// The number of generations so far.
    pub(crate) count: u32,
    pub(crate) lanes: AddressRows,
    pub(crate) past: Past,
    pub(crate) reloads: ReloadCounts,
    pub(crate) reload_asked: bool,
    pub(crate) roots: RootChecks,
}

/// The generations that have ended.
#[derive(Default)]
pub(crate) struct Past {
    sums: Sums,
    restarts: u64,
    stuck: u64,
}

/// The checks of the names of roots.
#[derive(Default)]
pub(crate) struct RootChecks {
    /// The time of the next check.
    pub(crate) next: Option<Instant>,
    /// Consecutive attempts to serve new folders that failed.
    pub(crate) failures: u32,
    /// The roots that were reported as missing.
    pub(crate) missing: BTreeSet<PathBuf>,
}

impl Past {
    /// Adds a generation that has ended.
    pub(crate) fn add(&mut self, generation: &Generation) {
        self.sums.add_sums(&generation.sums_without_connections());
        self.restarts += generation.restarts();
        self.stuck += generation.stuck();
    }
}

impl Generations {
    /// The counters of generations that have ended.
    pub(crate) fn past_sums(&self) -> Sums {
        self.past.sums.clone()
    }

    /// The number of processes that replaced a dead one.
    pub(crate) fn restarts(&self) -> u64 {
        self.past.restarts + self.all.iter().map(Generation::restarts).sum::<u64>()
    }

    /// The number of processes that were killed because of a stuck loop.
    pub(crate) fn stuck(&self) -> u64 {
        self.past.stuck + self.all.iter().map(Generation::stuck).sum::<u64>()
    }

    /// Lines written to the log since the start of the server.
    pub(crate) fn lines(&self) -> u64 {
        let mut sums = self.past_sums();
        self.all.iter().flat_map(Generation::seen).for_each(|seen| sums.add_sums(&seen.sums));
        Sums::of(&sums, Counter::Lines)
    }
}
