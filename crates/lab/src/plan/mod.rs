//! The plan of a run, written before its first trial: cells, their order and duration, and claims that cannot be tested
//! here.

pub mod profile;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::experiment::Experiment;
use crate::experiment::served::ServedSite;
use crate::experiment::subject::{Cell, Subject};
use crate::machine::environment::LabEnvironment;
use crate::machine::hosts::Hosts;
use crate::measure::Measure;
use crate::plan::profile::Profile;
use crate::record;

/// The file of the plan in the folder of a run.
pub const PLAN: &str = "plan.json";

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// The seed of the order of trials.
    pub seed: u64,
    /// Length and precision.
    pub profile: Profile,
    /// The number of blocks for every experiment, instead of a pilot that determines it.
    pub blocks: Option<usize>,
    /// Seconds for the whole run.
    pub budget: u64,
    /// The processors of servers.
    pub server_processors: Vec<usize>,
    /// The processors of clients.
    pub client_processors: Vec<usize>,
    /// The experiments in their order.
    pub experiments: Vec<PlannedExperiment>,
    /// A user's folder to serve instead of generated files.
    #[serde(default)]
    pub served: Option<ServedSite>,
    /// The machines, if there are several.
    #[serde(default)]
    pub machines: Option<Machines>,
}

/// The machines of a run. The command that starts their agents is not part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machines {
    /// The name of the server's machine; `None` for this machine.
    pub server: Option<String>,
    /// The address of servers.
    pub address: Ipv4Addr,
    /// The names of the clients' machines, with numbers of agents, such as `b*2`.
    pub clients: Vec<String>,
}

/// A trial of each block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCell {
    /// The cell.
    pub cell: String,
    /// Whether it is the control: the second trial of its cell.
    pub control: bool,
}

/// An experiment of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedExperiment {
    /// The experiment.
    pub experiment: Experiment,
    /// The margin of "no difference".
    pub margin: f64,
    /// Milliseconds of a trial.
    pub milliseconds: u64,
    /// The trials of a block.
    pub cells: Vec<PlannedCell>,
    /// The claims that cannot be tested here, by number, with the reason.
    pub untestable: BTreeMap<usize, String>,
    /// The machines that met the needs of claims, by number, if there are several.
    #[serde(default)]
    pub decided: BTreeMap<usize, String>,
    /// Whether a block orders its cells by their idle connections, and only equal cells at random.
    #[serde(default)]
    pub growing: bool,
}

/// The user's options for a run.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// Length and precision.
    pub profile: Profile,
    /// The number of blocks for every experiment.
    pub blocks: Option<usize>,
    /// Seconds for the whole run.
    pub budget: Option<u64>,
    /// The seed.
    pub seed: u64,
    /// The peers that may be started; `None`: all that are installed.
    pub peers: Option<Vec<Subject>>,
}

impl RunPlan {
    /// The plan of experiments on this machine.
    pub fn new(experiments: Vec<Experiment>, wishes: &Wishes, environment: &LabEnvironment) -> RunPlan {
        RunPlan::on(experiments, wishes, &Hosts::one(environment))
    }

    /// The plan of experiments on these machines.
    pub fn on(experiments: Vec<Experiment>, wishes: &Wishes, hosts: &Hosts) -> RunPlan {
        let chosen = experiments.into_iter().map(|experiment| plan(experiment, wishes, hosts)).collect();
        let (server, client) = hosts.processors();
        RunPlan {
            seed: wishes.seed,
            profile: wishes.profile,
            blocks: wishes.blocks,
            budget: wishes.budget.unwrap_or(wishes.profile.seconds()),
            server_processors: server,
            client_processors: client,
            experiments: chosen,
            served: None,
            machines: None,
        }
    }

    /// The order of trials in a block: random, by the seed.
    pub fn order(&self, experiment: &PlannedExperiment, block: usize, attempt: u32) -> Vec<PlannedCell> {
        let words = format!("{} {} {block} {attempt}", self.seed, experiment.experiment.name);
        let hash = Sha256::digest(words.as_bytes());
        let mut seed = [0; 8];
        seed.copy_from_slice(&hash[..8]);
        let mut cells = experiment.cells.clone();
        fastrand::Rng::with_seed(u64::from_le_bytes(seed)).shuffle(&mut cells);
        if experiment.growing {
            let idle = |cell: &PlannedCell| {
                experiment.experiment.cells.get(&cell.cell).and_then(|cell| cell.load.idle)
            };
            cells.sort_by_key(idle);
        }
        cells
    }

    /// Writes the plan into the folder of a run.
    pub fn write(&self, folder: &Path) -> Result<(), String> {
        let path = folder.join(PLAN);
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        record::write(&path, text)
    }

    /// Reads the plan from the folder of a run.
    pub fn read(folder: &Path) -> Result<RunPlan, String> {
        let path = folder.join(PLAN);
        let shown = path.display();
        let text = record::text(&path).map_err(|error| {
            format!("cannot read {shown}: {error}; name the folder of a run of `tenfold lab run`")
        })?;
        serde_json::from_str(&text).map_err(|error| format!("{shown}: not a plan of `tenfold lab`: {error}"))
    }
}

fn plan(experiment: Experiment, wishes: &Wishes, hosts: &Hosts) -> PlannedExperiment {
    let missing = |cell: &str| {
        let Cell { subject, load, .. } = &experiment.cells[cell];
        let subject = *subject;
        if let Some(why) = load.round_trip.and_then(|_| hosts.no_compiler()) {
            return Some(why);
        }
        if !subject.is_peer() {
            return None;
        }
        if wishes.peers.as_ref().is_some_and(|peers| !peers.contains(&subject)) {
            return Some(format!("{} is not among --peers", subject.name()));
        }
        hosts.no_peer(subject)
    };
    let (mut untestable, mut decided) = (BTreeMap::new(), BTreeMap::new());
    let mut cells: Vec<PlannedCell> = Vec::new();
    for (number, claim) in experiment.claims.iter().enumerate() {
        let closed = || (claim.measure == Measure::Pss).then(|| hosts.server.closed_memory.clone()).flatten();
        let lack = claim.needs.iter().find_map(|need| hosts.lacks(need)).or_else(closed);
        if let Some(reason) = lack.or_else(|| claim.cells().into_iter().find_map(missing)) {
            untestable.insert(number, reason);
            continue;
        }
        let met: Vec<String> = claim.needs.iter().filter_map(|need| hosts.meets(need)).collect();
        if !met.is_empty() {
            decided.insert(number, met.join("; "));
        }
        for cell in claim.cells() {
            if cells.iter().all(|planned| planned.cell != cell) {
                cells.push(PlannedCell { cell: cell.to_owned(), control: false });
            }
        }
    }
    if let Some(control) =
        experiment.control().filter(|control| cells.iter().any(|cell| cell.cell == *control))
    {
        cells.push(PlannedCell { cell: control.to_owned(), control: true });
    }
    PlannedExperiment {
        margin: experiment.margin.unwrap_or(wishes.profile.margin()),
        milliseconds: wishes.profile.milliseconds(),
        experiment,
        cells,
        untestable,
        decided,
        growing: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::library;

    fn planned() -> RunPlan {
        let two = LabEnvironment { processors: vec![0, 1], ..LabEnvironment::default() };
        RunPlan::new(library::all(), &Wishes { seed: 7, ..Wishes::default() }, &two)
    }

    #[test]
    fn each_block_has_every_cell_once_and_an_order_of_its_own() {
        let plan = planned();
        let first = &plan.experiments[0];
        let orders: Vec<_> = (0..8).map(|block| plan.order(first, block, 0)).collect();
        assert!(orders.iter().any(|order| *order != orders[0]));
        assert_eq!(orders[3], planned().order(first, 3, 0), "the same seed has the same order");
        for order in &orders {
            assert_eq!(order.len(), first.cells.len());
            assert!(first.cells.iter().all(|cell| order.contains(cell)));
        }
    }

    #[test]
    fn a_ratio_brings_its_control() {
        let plan = planned();
        let of = |name: &str| plan.experiments.iter().find(|one| one.experiment.name == name).expect(name);
        assert!(of("n16-tcp").cells.iter().any(|cell| cell.control && cell.cell == "none"));
        assert!(of("ab-backlog").cells.iter().all(|cell| !cell.control), "counts need none");
    }

    #[test]
    fn a_peer_that_is_not_asked_for_is_a_reason() {
        let wishes = Wishes { peers: Some(Vec::new()), ..Wishes::default() };
        let text = include_str!("../../experiments/n16-tcp.toml")
            .replace("[cells.none]", "[cells.none]\nsubject = \"nginx\"");
        let experiment =
            crate::experiment::file::read("x.toml", &text).unwrap_or_else(|problem| panic!("{problem}"));
        let found = plan(experiment, &wishes, &Hosts::one(&LabEnvironment::default()));
        assert_eq!(found.untestable[&0], "nginx is not among --peers");
        assert!(found.cells.iter().all(|cell| cell.cell != "none"));
    }
}
