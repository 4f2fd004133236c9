//! The table of addresses. A lane is the part of it that a worker process writes.

use std::sync::Arc;

use crate::admission::Addresses;
use crate::config::values::bounds::ADDRESSES;
use crate::supervisor::generation::Generation;
use crate::supervisor::generation::end_bound::MOST_FORMER;

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
