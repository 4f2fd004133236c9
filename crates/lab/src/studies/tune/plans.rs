//! The plans of a search: an experiment for each step, with a cell for each candidate.

use std::collections::BTreeMap;

use crate::experiment::Experiment;
use crate::experiment::claim::{CellPair, PublishedClaim, VerdictRule};
use crate::experiment::served::ServedSite;
use crate::experiment::subject::{Cell, Workload};
use crate::machine::environment::LabEnvironment;
use crate::machine::hosts::Hosts;
use crate::measure::show_count;
use crate::plan::profile::Profile;
use crate::plan::{Machines, PlannedCell, RunPlan, Wishes};
use crate::studies::tune::candidates::CandidateSettings;
use crate::studies::tune::goal::Goal;

/// The cell of the default settings.
pub(super) const DEFAULT: &str = "default";
/// The cell of the best candidate in fresh blocks.
pub(super) const BEST: &str = "best";

/// The margin of "no difference": a smaller gain is not worth a configuration.
const MARGIN: f64 = 0.05;

/// The common parts of all plans of a search.
pub(super) struct SearchPlans<'a> {
    pub(super) environment: &'a LabEnvironment,
    pub(super) goal: Goal,
    pub(super) seed: u64,
    /// The site with its requests.
    pub(super) served: ServedSite,
    /// The load of every cell.
    pub(super) load: Workload,
    /// Milliseconds of a trial.
    pub(super) milliseconds: u64,
    /// The machines that make the load, if others do.
    pub(super) machines: Option<(Machines, Hosts)>,
}

impl SearchPlans<'_> {
    /// Returns a cell in which Tenfold serves the load of the search with `settings`.
    pub(super) fn cell(&self, about: &str, settings: &CandidateSettings) -> Cell {
        let threads = self.processors().1;
        Cell {
            about: about.to_owned(),
            settings: settings.clone(),
            load: Workload { threads: Some(threads).filter(|count| *count > 1), ..self.load.clone() },
            ..Cell::default()
        }
    }

    /// The number of processors of servers, and of each client.
    pub(super) fn processors(&self) -> (usize, usize) {
        match &self.machines {
            Some((_, hosts)) => {
                let each = hosts.clients.iter().map(|client| client.environment.processors.len());
                (hosts.processors().0.len(), each.min().unwrap_or_default())
            }
            None => {
                let (server, client) = processors(self.environment);
                (server.len(), client.len())
            }
        }
    }

    /// A plan of one experiment.
    pub(super) fn plan(
        &self,
        name: &str,
        cells: BTreeMap<String, Cell>,
        profile: Profile,
        blocks: Option<usize>,
        seconds: f64,
    ) -> RunPlan {
        let budget = Some((seconds.ceil() as u64).max(1));
        let wishes = Wishes { profile, blocks, budget, seed: self.seed, peers: None };
        let names: Vec<String> = cells.keys().cloned().collect();
        let experiment = self.experiment(name, cells);
        let mut plan = RunPlan::new(vec![experiment], &wishes, self.environment);
        for planned in &mut plan.experiments {
            let one = |cell: &String| PlannedCell { cell: cell.clone(), control: false };
            planned.cells = names.iter().map(one).collect();
            planned.milliseconds = self.milliseconds;
            planned.margin = MARGIN;
        }
        (plan.server_processors, plan.client_processors) = match &self.machines {
            Some((_, hosts)) => hosts.processors(),
            None => processors(self.environment),
        };
        plan.machines = self.machines.as_ref().map(|(machines, _)| machines.clone());
        plan.served = Some(self.served.clone());
        plan
    }

    fn experiment(&self, name: &str, cells: BTreeMap<String, Cell>) -> Experiment {
        let pair = CellPair { of: BEST.to_owned(), to: DEFAULT.to_owned() };
        let goal = self.goal;
        let says = format!("The best setting of the search is better than the default ({}).", goal.name());
        let rule = VerdictRule::Ratio { pair, is: goal.better() };
        let claim = PublishedClaim::of_study(says, goal.measure(), rule);
        Experiment {
            name: name.to_owned(),
            title: "The best settings for a site".to_owned(),
            source: format!("tenfold tune --for {} {}", goal.name(), self.served.root.display()),
            setting: "none".to_owned(),
            scaled: format!("{} of a site, drawn at random", show_count(self.served.requests.len(), "path")),
            claims: if cells.contains_key(BEST) { vec![claim] } else { Vec::new() },
            cells,
            ..Experiment::default()
        }
    }
}

/// The processors of servers and of clients. Each side gets half of them, so that the load is not the limit.
pub(super) fn processors(environment: &LabEnvironment) -> (Vec<usize>, Vec<usize>) {
    let all = &environment.processors;
    match all.len() {
        0 | 1 => (Vec::new(), Vec::new()),
        count => (all[..count - count / 2].to_vec(), all[count - count / 2..].to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_clients_have_half_of_the_processors_each() {
        let of = |count: usize| {
            let environment =
                LabEnvironment { processors: (0..count).collect(), ..LabEnvironment::default() };
            let (server, client) = processors(&environment);
            (server.len(), client.len())
        };
        assert_eq!([1, 2, 3, 8].map(of), [(0, 0), (1, 1), (2, 1), (4, 4)]);
    }
}
