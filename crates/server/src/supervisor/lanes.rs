//! Which rows of the table of addresses a generation counts in. The table is the supervisor's: it outlives
//! workers and configurations.

use super::generation::Generation;
use super::reload::MOST_FORMER;
use crate::admission::Addresses;

/// The table, once a configuration has wanted it.
#[derive(Debug, Default)]
pub(super) struct Lanes(Option<&'static Addresses>);

impl Lanes {
    /// Gives each process of `generation` a lane that none of `others` has, where addresses have bounds.
    ///
    /// # Errors
    /// In words: there is no memory.
    pub(super) fn give(&mut self, generation: &mut Generation, others: &[Generation]) -> Result<(), String> {
        if generation.blueprint.shares.is_none() {
            return Ok(());
        }
        // Neither how many there are nor how large the table is changes without a restart.
        let processes = generation.blueprint.plan.processes();
        let table = match self.0 {
            Some(table) => table,
            None => {
                let most = generation.settings.max_addresses;
                let table = Addresses::new(most, processes * (MOST_FORMER + 1))
                    .map_err(|error| format!("there is no memory for {most} addresses: {error}"))?;
                // It is used until the last process ends.
                *self.0.insert(Box::leak(Box::new(table)))
            }
        };
        let taken =
            |lane: &usize| others.iter().any(|other| other.addresses.is_some() && other.lane == *lane);
        let lane = (0..=MOST_FORMER).map(|place| place * processes).find(|lane| !taken(lane));
        generation.lane = lane.ok_or("former configurations are still leaving")?;
        generation.addresses = Some(table);
        Ok(())
    }
}
