//! Runs a plan within its budget: pilot blocks, then the number of blocks that the pilot determines. Continues
//! interrupted runs.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::machine::environment::LabEnvironment;
use crate::machine::hosts::Hosts;
use crate::plan::{PlannedCell, PlannedExperiment, RunPlan};
use crate::record::{self, Blocks, Trial, TrialLog};
use crate::report::results::{ENVIRONMENT, HOSTS};
use crate::statistics::stages::PILOT_BLOCKS;
use crate::trial::bench::{self, OwnServer, Workbench};
use crate::trial::far::FarMachines;
use crate::verdict;
use crate::verdict::ruling::ClaimVerdict;

/// Attempts at a trial before it counts as failed.
const TRIES: usize = 2;

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// Every block was run, or the budget is used up.
    Done,
    /// A signal interrupted it; it can be continued.
    Interrupted,
}

/// A progress event of a run.
#[derive(Debug)]
pub enum RunProgress<'a> {
    /// An experiment begins.
    Begins(&'a PlannedExperiment),
    /// A trial begins.
    Trial {
        /// The experiment.
        experiment: &'a str,
        /// The cell.
        cell: &'a str,
        /// The block, from 1.
        block: usize,
        /// The number of blocks that is known so far.
        blocks: usize,
        /// The remaining seconds of the budget.
        left: u64,
    },
    /// A trial ended.
    Ended(&'a Trial),
    /// A trial failed, or was disturbed.
    Trouble(&'a Trial),
    /// An experiment is done, with its verdicts.
    Verdicts(&'a [ClaimVerdict]),
}

/// Writes the plan and the environments of several machines into the folder of a run.
pub fn prepare_on(plan: &RunPlan, hosts: &Hosts, folder: &Path) -> Result<(), String> {
    prepare(plan, &hosts.server.environment, folder)?;
    let text = serde_json::to_string_pretty(&hosts.list()).map_err(|error| error.to_string())?;
    record::write(&folder.join(HOSTS), text)
}

/// Writes the plan and the environment into the folder of a run.
pub fn prepare(plan: &RunPlan, environment: &LabEnvironment, folder: &Path) -> Result<(), String> {
    let failed = |path: &Path, error: std::io::Error| format!("cannot write {}: {error}", path.display());
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let path = folder.join(ENVIRONMENT);
    let text = serde_json::to_string_pretty(environment).map_err(|error| error.to_string())?;
    record::write(&path, text)?;
    plan.write(folder)
}

/// Runs a plan in `folder`, or continues it. No trial begins whose load would end after `until`. A failed subject is a
/// failed trial, not an error.
pub fn run(
    plan: &RunPlan,
    own: &OwnServer,
    folder: &Path,
    until: Option<Instant>,
    machines: Option<&mut FarMachines>,
    tell: &mut dyn FnMut(RunProgress<'_>),
) -> Result<RunEnd, String> {
    if machines.as_deref().map(FarMachines::machines) != plan.machines.as_ref() {
        return Err("the machines are not those of the plan".to_owned());
    }
    let bench = bench::make(plan, own, folder, until)?;
    let mut log = TrialLog::open(folder)?;
    let trials = record::read(folder)?;
    let used = trials.iter().map(|trial| plan.milliseconds(trial)).sum::<u64>() / 1000;
    let begin = Instant::now();
    let mut run = ActiveRun { plan, bench, machines, log: &mut log, trials, tell, begin, used, late: false };
    let interrupted = run.latest_experiment();
    for (number, experiment) in plan.experiments.iter().enumerate() {
        (run.tell)(RunProgress::Begins(experiment));
        // An experiment that ended before the interruption has used its share of the time.
        let had_ended = number < interrupted && run.has_first_blocks(experiment);
        if !had_ended && !run.experiment(number, experiment)? {
            return Ok(RunEnd::Interrupted);
        }
        let blocks = Blocks::of(&run.trials, &experiment.experiment.name).complete(experiment.cells.len());
        (run.tell)(RunProgress::Verdicts(&verdict::judge(experiment, &blocks)));
    }
    Ok(RunEnd::Done)
}

/// The approximate milliseconds of a start, a check and a stop.
const AROUND: u64 = 250;

impl RunPlan {
    /// The approximate duration of a recorded trial.
    fn milliseconds(&self, trial: &Trial) -> u64 {
        let planned = self.experiments.iter().find(|planned| planned.experiment.name == trial.experiment);
        planned.map_or(0, |planned| self.trial_milliseconds(planned, &trial.cell))
    }

    /// The approximate duration of a trial of a cell.
    fn trial_milliseconds(&self, planned: &PlannedExperiment, cell: &str) -> u64 {
        let cell = planned.experiment.cells.get(cell);
        let around = if cell.is_some_and(|cell| cell.subject.is_in_process()) { 0 } else { AROUND };
        cell.and_then(|cell| cell.load.milliseconds).unwrap_or(planned.milliseconds) + around
    }
}

struct ActiveRun<'a> {
    plan: &'a RunPlan,
    bench: Workbench,
    /// The machines, if there are several.
    machines: Option<&'a mut FarMachines>,
    log: &'a mut TrialLog,
    trials: Vec<Trial>,
    tell: &'a mut dyn FnMut(RunProgress<'_>),
    begin: Instant,
    /// The seconds that the run used before an interruption.
    used: u64,
    /// Whether there is no time for another trial.
    late: bool,
}

impl ActiveRun<'_> {
    /// Runs one experiment. Returns false if interrupted.
    fn experiment(&mut self, number: usize, planned: &PlannedExperiment) -> Result<bool, String> {
        if planned.cells.is_empty() {
            return Ok(true);
        }
        let share = self.share(number);
        let begin = Instant::now();
        let mut wanted = self.first_blocks(planned);
        let mut block = 0;
        while block < wanted {
            if self.is_complete(planned, block) {
                block += 1;
            } else {
                // An experiment keeps to its share, but its first blocks run as long as the whole run has time.
                let over = begin.elapsed() > share && block >= PILOT_BLOCKS.min(wanted);
                if over || self.late || self.left() == 0 {
                    break;
                }
                // A disturbed block is repeated only while the experiment is within its time.
                let due = share.mul_f64((block + 1) as f64 / wanted as f64);
                if !self.block(planned, block, wanted, begin + due)? {
                    return Ok(false);
                }
                block += 1;
            }
            if block == PILOT_BLOCKS && self.plan.blocks.is_none() && wanted == PILOT_BLOCKS {
                wanted = self.final_blocks(planned);
            }
        }
        Ok(true)
    }

    fn first_blocks(&self, planned: &PlannedExperiment) -> usize {
        match (self.plan.blocks, verdict::needs_intervals(planned)) {
            (Some(blocks), _) => blocks,
            (None, true) => PILOT_BLOCKS,
            (None, false) => self.plan.profile.counted_blocks(),
        }
    }

    /// The number of blocks that follows from the noise of the pilot. Later blocks of a continued run do not change it.
    fn final_blocks(&self, planned: &PlannedExperiment) -> usize {
        let trials = Blocks::of(&self.trials, &planned.experiment.name);
        let blocks = trials.first(PILOT_BLOCKS).complete(planned.cells.len());
        verdict::needed_blocks(planned, &blocks).clamp(PILOT_BLOCKS, self.plan.profile.most_blocks())
    }

    fn left(&self) -> u64 {
        self.plan.budget.saturating_sub(self.begin.elapsed().as_secs() + self.used)
    }

    /// The time of an experiment: its part of the remaining time, in proportion to the length of its first blocks.
    fn share(&self, number: usize) -> Duration {
        let weight = |planned: &PlannedExperiment| {
            let trial = |cell: &PlannedCell| self.plan.trial_milliseconds(planned, &cell.cell) as f64;
            planned.cells.iter().map(trial).sum::<f64>() * self.first_blocks(planned) as f64
        };
        let rest: f64 = self.plan.experiments[number..].iter().map(weight).sum();
        let part = weight(&self.plan.experiments[number]) / rest.max(1.0);
        Duration::from_secs_f64(self.left() as f64 * part)
    }

    /// The index of the last experiment with trials.
    fn latest_experiment(&self) -> usize {
        let has_trials = |planned: &PlannedExperiment| {
            self.trials.iter().any(|trial| trial.experiment == planned.experiment.name)
        };
        self.plan.experiments.iter().rposition(has_trials).unwrap_or_default()
    }

    fn has_first_blocks(&self, planned: &PlannedExperiment) -> bool {
        let blocks = Blocks::of(&self.trials, &planned.experiment.name).complete(planned.cells.len());
        blocks.len() >= self.first_blocks(planned)
    }

    fn attempt(&self, planned: &PlannedExperiment, block: usize) -> u32 {
        let fits = |trial: &&Trial| trial.experiment == planned.experiment.name && trial.block == block;
        self.trials.iter().filter(fits).map(|trial| trial.attempt + 1).max().unwrap_or_default()
    }

    fn is_complete(&self, planned: &PlannedExperiment, block: usize) -> bool {
        let blocks = Blocks::of(&self.trials, &planned.experiment.name).complete(planned.cells.len());
        blocks.iter().any(|(number, _)| number == block)
    }

    /// Runs a block, and repeats it as a whole if it was disturbed, within a bound. Returns false if interrupted.
    fn block(
        &mut self,
        planned: &PlannedExperiment,
        block: usize,
        blocks: usize,
        due: Instant,
    ) -> Result<bool, String> {
        let first = self.attempt(planned, block);
        for attempt in first..first + self.plan.profile.attempts() {
            let mut noisy = false;
            for (order, cell) in self.plan.order(planned, block, attempt).into_iter().enumerate() {
                self.late |= self.would_be_late(planned, &cell);
                if self.late {
                    return Ok(true);
                }
                let Some(mut trial) = self.trial(planned, &cell, block, blocks) else { return Ok(false) };
                (trial.block, trial.attempt, trial.order) = (block, attempt, order);
                if let Some(why) = self.machines.as_deref().and_then(FarMachines::lost) {
                    // The trial is not recorded, so a continued run repeats it.
                    (self.tell)(RunProgress::Trouble(&trial));
                    return Err(why.to_owned());
                }
                noisy |= !trial.flags.is_empty();
                if trial.failed.is_some() || !trial.flags.is_empty() {
                    (self.tell)(RunProgress::Trouble(&trial));
                }
                (self.tell)(RunProgress::Ended(&trial));
                self.log.add(&trial)?;
                self.trials.push(trial);
            }
            if !noisy || Instant::now() > due {
                break;
            }
        }
        Ok(true)
    }

    /// Whether the load of a trial would end after the run.
    fn would_be_late(&self, planned: &PlannedExperiment, cell: &PlannedCell) -> bool {
        let cell = planned.experiment.cells.get(&cell.cell);
        let load = cell.and_then(|cell| cell.load.milliseconds).unwrap_or(planned.milliseconds);
        self.bench.until.is_some_and(|until| Instant::now() + Duration::from_millis(load) > until)
    }

    fn trial(
        &mut self,
        planned: &PlannedExperiment,
        planned_cell: &PlannedCell,
        block: usize,
        blocks: usize,
    ) -> Option<Trial> {
        let experiment = &planned.experiment;
        let cell = experiment.cells.get(&planned_cell.cell)?;
        let left = self.left();
        (self.tell)(RunProgress::Trial {
            experiment: &experiment.name,
            cell: &planned_cell.cell,
            block: block + 1,
            blocks,
            left,
        });
        let name = format!("{}-{}", experiment.name, planned_cell.cell);
        let mut failures = Vec::new();
        loop {
            let seed = self.plan.seed ^ block as u64;
            let machines = self.machines.as_deref_mut();
            let mut trial = self.bench.run(machines, &name, cell, planned.milliseconds, seed)?;
            trial.experiment.clone_from(&experiment.name);
            trial.cell.clone_from(&planned_cell.cell);
            trial.control = planned_cell.control;
            let is_lost = self.machines.as_deref().is_some_and(|machines| machines.lost().is_some());
            let last = is_lost || failures.len() + 1 == TRIES || self.would_be_late(planned, planned_cell);
            if trial.failed.is_none() || last {
                trial.notes.extend(failures);
                return Some(trial);
            }
            (self.tell)(RunProgress::Trouble(&trial));
            failures.push(format!("an earlier attempt failed: {}", trial.failed.unwrap_or_default()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Experiment, file};
    use crate::plan::profile::Profile;
    use crate::plan::{Machines, Wishes};
    use crate::report::results::RunResults;
    use crate::verdict::ruling::Ruling;

    /// The rest of an experiment in process, without a server.
    const TIMERS: &str = r#"
[base]
load = { operation = "add-latest", milliseconds = 1 }

[cells.published]
subject = "head-list"
load = { armed = 5000 }

[cells.wheel]
subject = "timers"
settings = { timer = "wheel" }
load = { armed = 5000 }

[[claims]]
says = "The wheel is faster."
published = "374 times"
value = 374
measure = "operation"
rule = { ratio = ["published", "wheel"], is = "greater" }
"#;

    fn timers(name: &str) -> Experiment {
        let text = file::head(name) + TIMERS;
        file::read("timers.toml", &text).unwrap_or_else(|problem| panic!("{problem}"))
    }

    #[test]
    fn a_run_without_processes_ends_in_a_verdict_and_a_report() {
        let folder = std::env::temp_dir().join(format!("tenfold-lab-runner-{}", std::process::id()));
        let wishes = Wishes { profile: Profile::Quick, seed: 3, ..Wishes::default() };
        let environment = LabEnvironment::find();
        let plan = RunPlan::new(vec![timers("timers"), timers("later")], &wishes, &environment);
        prepare(&plan, &environment, &folder).expect("it is written");
        let own = OwnServer {
            program: "/no/such/program".into(),
            open_log: |_, _| Err("there is no log".to_owned()),
            load_plan: |_| Err("there is no load".to_owned()),
        };
        let mut begun = 0;
        let end = run(&plan, &own, &folder, None, None, &mut |progress| {
            begun += usize::from(matches!(progress, RunProgress::Trial { .. }))
        });
        assert_eq!(end, Ok(RunEnd::Done));
        // Two experiments, each with at least the pilot blocks of two cells and a control.
        assert!(begun >= 48, "{begun}");
        let all = begun;
        let results = RunResults::read(&folder).expect("it is whole");
        assert_eq!(results.verdicts[0].ruling, Ruling::Holds, "{:?}", results.verdicts);
        assert_eq!(results.controls.len(), 2);
        crate::report::write(&results, &folder).expect("there is room");
        // The run is complete, so no trial is repeated.
        let again = run(&plan, &own, &folder, None, None, &mut |progress| {
            begun += usize::from(matches!(progress, RunProgress::Trial { .. }))
        });
        assert_eq!((again, begun), (Ok(RunEnd::Done), all));
        // The first experiment had ended after its pilot, and the later experiment was interrupted.
        let is_kept = |trial: &Trial| trial.experiment == "later" || trial.block < PILOT_BLOCKS;
        let mut trials = record::read(&folder).expect("it is whole");
        trials.retain(is_kept);
        rewrite(&folder, &trials);
        let again = run(&plan, &own, &folder, None, None, &mut |progress| {
            begun += usize::from(matches!(progress, RunProgress::Trial { .. }))
        });
        assert_eq!((again, begun), (Ok(RunEnd::Done), all));
        // The steady pilot needs no more blocks, and noise after the pilot does not change that.
        trials.retain(|trial| trial.block < PILOT_BLOCKS);
        let steady = |trial: &mut Trial| trial.values.values_mut().for_each(|value| *value = 1.0);
        trials.iter_mut().for_each(steady);
        let noisy = |trial: &Trial| {
            let values = trial.values.keys().map(|measure| (*measure, 10.0_f64.powi(trial.order as i32)));
            Trial { block: trial.block + PILOT_BLOCKS, values: values.collect(), ..trial.clone() }
        };
        trials.extend(trials.iter().map(noisy).collect::<Vec<_>>());
        rewrite(&folder, &trials);
        let again = run(&plan, &own, &folder, None, None, &mut |progress| {
            begun += usize::from(matches!(progress, RunProgress::Trial { .. }))
        });
        assert_eq!((again, begun), (Ok(RunEnd::Done), all));
        std::fs::remove_dir_all(&folder).expect("it is removed");
    }

    #[test]
    fn no_trial_begins_that_would_end_too_late() {
        let folder = std::env::temp_dir().join(format!("tenfold-lab-late-{}", std::process::id()));
        let environment = LabEnvironment::find();
        let plan = RunPlan::new(vec![timers("timers")], &Wishes::default(), &environment);
        prepare(&plan, &environment, &folder).expect("it is written");
        let open_log = |_: &str, _: &Path| Err("there is no log".to_owned());
        let own =
            OwnServer { program: "/no/such/program".into(), open_log, load_plan: |_| Err(String::new()) };
        let end = run(&plan, &own, &folder, Some(Instant::now()), None, &mut |_| {});
        assert_eq!(end, Ok(RunEnd::Done));
        assert!(record::read(&folder).expect("it is whole").is_empty(), "no first blocks either");
        std::fs::remove_dir_all(&folder).expect("it is removed");
    }

    #[test]
    fn a_plan_of_other_machines_is_not_run_here() {
        let environment = LabEnvironment::default();
        let mut plan = RunPlan::new(vec![timers("timers")], &Wishes::default(), &environment);
        let clients = vec!["b".to_owned()];
        plan.machines = Some(Machines { server: None, address: [10, 0, 0, 1].into(), clients });
        let open_log = |_: &str, _: &Path| Err("there is no log".to_owned());
        let own = OwnServer {
            program: "/no/such/program".into(),
            open_log,
            load_plan: |_| Err("there is no load".to_owned()),
        };
        let said = run(&plan, &own, Path::new("/no/such/folder"), None, None, &mut |_| {});
        assert_eq!(said, Err("the machines are not those of the plan".to_owned()));
    }

    fn rewrite(folder: &Path, trials: &[Trial]) {
        let lines = trials.iter().map(|trial| serde_json::to_string(trial).expect("a trial") + "\n");
        std::fs::write(folder.join(record::TRIALS), lines.collect::<String>()).expect("our own folder");
    }
}
