//! The content of the folder of a run, and the verdicts on it.

use std::path::Path;

use crate::machine::environment::LabEnvironment;
use crate::machine::hosts::{HostFacts, Hosts};
use crate::plan::RunPlan;
use crate::record::{self, Blocks, Trial};
use crate::verdict;
use crate::verdict::ruling::{ClaimVerdict, ControlResult, Ruling};

/// The file of the environment in the folder of a run.
pub const ENVIRONMENT: &str = "env.json";

/// The file of the machines in the folder of a run on several machines.
pub const HOSTS: &str = "hosts.json";

/// The content of the folder of a run, and the verdicts on it.
#[derive(Clone, Debug)]
pub struct RunResults {
    /// The plan.
    pub plan: RunPlan,
    /// The environment.
    pub environment: LabEnvironment,
    /// The machines, if there are several.
    pub hosts: Option<Hosts>,
    /// Every trial.
    pub trials: Vec<Trial>,
    /// A verdict for each claim.
    pub verdicts: Vec<ClaimVerdict>,
    /// The noise of each experiment.
    pub controls: Vec<ControlResult>,
}

impl RunResults {
    /// Reads the folder of a run.
    pub fn read(folder: &Path) -> Result<RunResults, String> {
        let plan = RunPlan::read(folder)?;
        let path = folder.join(ENVIRONMENT);
        let text = record::text(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let environment = serde_json::from_str(&text)
            .map_err(|error| format!("{}: not the environment of a run: {error}", path.display()))?;
        let hosts = plan.machines.as_ref().map(|_| hosts(&folder.join(HOSTS))).transpose()?;
        let trials = record::read(folder)?;
        let (mut verdicts, mut controls) = (Vec::new(), Vec::new());
        for planned in &plan.experiments {
            let blocks = Blocks::of(&trials, &planned.experiment.name).complete(planned.cells.len());
            verdicts.extend(verdict::judge(planned, &blocks));
            controls.extend(verdict::controls(planned, &blocks));
        }
        Ok(RunResults { plan, environment, hosts, trials, verdicts, controls })
    }

    /// The trials of an experiment that count.
    pub(super) fn blocks(&self, experiment: &str) -> Blocks<'_> {
        let cells = self.plan.experiments.iter().find(|planned| planned.experiment.name == experiment);
        Blocks::of(&self.trials, experiment).complete(cells.map_or(1, |planned| planned.cells.len()))
    }

    /// The number of claims with each verdict, in the order of verdicts.
    pub fn counts(&self) -> Vec<(Ruling, usize)> {
        use Ruling::{Artefact, Holds, Inconclusive, NoDifference, NotTestableHere, Reversed};
        let count = |ruling| self.verdicts.iter().filter(|verdict| verdict.ruling == ruling).count();
        let all = [Holds, Reversed, NoDifference, Artefact, Inconclusive, NotTestableHere];
        all.map(|ruling| (ruling, count(ruling))).into_iter().filter(|(_, count)| *count > 0).collect()
    }
}

fn hosts(path: &Path) -> Result<Hosts, String> {
    let text = record::text(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let all: Vec<HostFacts> = serde_json::from_str(&text)
        .map_err(|error| format!("{}: not the machines of a run: {error}", path.display()))?;
    let mut all = all.into_iter();
    let server = all.next().ok_or_else(|| format!("{}: there are no machines", path.display()))?;
    Ok(Hosts { server, clients: all.collect() })
}
