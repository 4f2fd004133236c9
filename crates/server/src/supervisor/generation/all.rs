//! The generations of the server, the sums of ended generations, and the lanes of others in the table of addresses.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crate::admission::Addresses;
use crate::config::values::bounds::ADDRESSES;
use crate::status::counters::{Counter, Sums};
use crate::status::report::ReloadCounts;
use crate::supervisor::generation::Generation;
use crate::supervisor::generation::end_bound::MOST_FORMER;

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

/// The table of addresses, if a configuration has bounds by address. It outlives workers and configurations.
#[derive(Debug, Default)]
pub(crate) struct AddressRows(Option<Arc<Addresses>>);

impl AddressRows {
    /// Gives each process of `generation` an unused lane if addresses have bounds.
    pub(crate) fn give(&mut self, generation: &mut Generation, others: &[Generation]) -> Result<(), String> {
        if generation.config.shares.is_none() {
            return Ok(());
        }
        // Neither the number of lanes nor the size of the table changes without a restart.
        let processes = generation.config.plan.processes();
        let table = match &self.0 {
            Some(table) => table.clone(),
            None => {
                let table = Addresses::new(ADDRESSES, processes * (MOST_FORMER + 1))
                    .map_err(|error| format!("cannot allocate memory for {ADDRESSES} addresses: {error}"))?;
                self.0.insert(Arc::new(table)).clone()
            }
        };
        let taken =
            |lane: &usize| others.iter().any(|other| other.addresses.is_some() && other.lane == *lane);
        let lane = (0..=MOST_FORMER).map(|place| place * processes).find(|lane| !taken(lane));
        generation.lane = lane.ok_or("former configurations still have connections; try again later")?;
        generation.addresses = Some(table);
        Ok(())
    }
}
