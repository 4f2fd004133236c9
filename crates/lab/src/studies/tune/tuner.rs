//! The search: a survey of the site, a pilot with the default settings, rounds that drop candidates, and fresh blocks
//! of the best candidate and the default.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::experiment::served::ServedSite;
use crate::experiment::subject::Workload;
use crate::machine::environment::LabEnvironment;
use crate::measure::{Measure, show_count};
use crate::plan::RunPlan;
use crate::plan::profile::Profile;
use crate::record::{self, Blocks, Trial};
use crate::runner::{self, RunEnd, RunProgress};
use crate::statistics::effect::{FEWEST_BLOCKS, disturbed_too_often};
use crate::studies::tune::candidates::{self, CandidateSettings};
use crate::studies::tune::goal::Goal;
use crate::studies::tune::halving::{self, Halving};
use crate::studies::tune::plans::{BEST, DEFAULT, SearchPlans};
use crate::studies::tune::requests::RequestMix;
use crate::studies::tune::result::{Confirmation, TuneResult, usually_unanswered};
use crate::trial::bench::{self, OwnServer};
use crate::trial::far::FarMachines;
use crate::verdict;
use crate::verdict::ruling::middle;

/// The shortest budget: rounds and eight fresh blocks of short trials.
pub const LEAST_BUDGET: Duration = Duration::from_secs(5);
/// The folder of the fresh blocks, in the folder of the search.
pub const CONFIRMATION: &str = "confirmation";
/// Trials of the default before the first round.
const PILOT_TRIALS: usize = 3;
/// The bounds of the number of candidates.
const CANDIDATES: std::ops::RangeInclusive<usize> = 2..=48;
/// Blocks of the first round.
const FIRST_BLOCKS: usize = 2;
/// The most blocks of a round.
const MOST_BLOCKS: usize = 20;
/// Milliseconds of a trial.
const TRIAL: std::ops::RangeInclusive<u64> = 100..=1_500;
/// The least time of the survey. Without a response nothing can be measured.
const LEAST_SURVEY: Duration = Duration::from_secs(2);
/// The load for the comparison of latencies, as a part of the default's rate.
const CALM: f64 = 0.5;
/// The responses that a trial needs for a 99th percentile, with room for the warm-up.
const P99_RESPONSES: f64 = 1_500.0;
/// The time beyond the budget in which fresh blocks may end. The whole command has two seconds.
const SLACK: Duration = Duration::from_millis(700);
/// The remedy for a lack of time.
const LONGER: &str = "use a longer --budget";
/// The longest trial that waits for these responses, in milliseconds.
const LONGEST_TRIAL: f64 = 5_000.0;

/// A search for the best settings.
#[derive(Debug)]
pub struct Tuner<'a> {
    /// The server.
    pub own: &'a OwnServer,
    /// The machine.
    pub environment: &'a LabEnvironment,
    /// The folder of raw data, outside of the site.
    pub folder: &'a Path,
    /// The goal.
    pub goal: Goal,
    /// The start of the search.
    pub begin: Instant,
    /// The time of the whole search. Half of it is for fresh blocks.
    pub budget: Duration,
    /// The seed of candidates, orders and requests.
    pub seed: u64,
}

/// A progress event of a search.
#[derive(Debug)]
pub enum TuneProgress<'a> {
    /// A step begins.
    Step(String),
    /// An event of its trials.
    Trials(RunProgress<'a>),
}

impl Tuner<'_> {
    /// Searches, with the load of `machines` if there are any. Returns `None` if interrupted.
    pub fn run(
        &self,
        root: &Path,
        mix: &RequestMix,
        machines: Option<&mut FarMachines>,
        tell: &mut dyn FnMut(TuneProgress<'_>),
    ) -> Result<Option<TuneResult>, String> {
        let milliseconds = (self.budget.as_millis() as u64 / 600).clamp(*TRIAL.start(), *TRIAL.end());
        let mut search = ActiveSearch {
            tuner: self,
            plans: SearchPlans {
                environment: self.environment,
                goal: self.goal,
                seed: self.seed,
                served: ServedSite { root: root.to_owned(), requests: Vec::new() },
                load: Workload::default(),
                milliseconds,
                machines: machines.as_deref().map(|far| (far.machines().clone(), far.hosts().clone())),
            },
            machines,
            trial_seconds: 0.0,
            tell,
        };
        search.run(mix)
    }
}

struct ActiveSearch<'a> {
    tuner: &'a Tuner<'a>,
    plans: SearchPlans<'a>,
    /// The machines that make the load, if others do.
    machines: Option<&'a mut FarMachines>,
    /// Seconds of a trial with its start, check and stop, from the last measurement.
    trial_seconds: f64,
    tell: &'a mut dyn FnMut(TuneProgress<'_>),
}

impl ActiveSearch<'_> {
    fn run(&mut self, mix: &RequestMix) -> Result<Option<TuneResult>, String> {
        let mut result = TuneResult {
            goal: self.tuner.goal,
            from: mix.from.clone(),
            left_out: mix.left_out,
            ..TuneResult::default()
        };
        if !self.survey(mix, &mut result)? || !self.pilot(&mut result)? {
            return Ok(None);
        }
        result.rate = self.plans.load.rate;
        result.invalid = result.invalid.take().or_else(|| self.too_short());
        if result.invalid.is_some() {
            return Ok(Some(result));
        }
        result.processors = self.plans.processors();
        let server = result.processors.0;
        let names =
            |far: &FarMachines| far.hosts().clients.iter().map(|client| client.name.clone()).collect();
        result.clients = self.machines.as_deref().map(names).unwrap_or_default();
        let able = candidates::able_engines();
        let all = candidates::candidates(&able, server.max(1), self.room(), self.tuner.seed);
        result.tried = all.len();
        let mut halving = Halving::new(all.len());
        while halving.left().len() > 1 {
            result.rounds += 1;
            match self.round(&mut result, &all, &mut halving)? {
                RoundEnd::Interrupted => return Ok(None),
                RoundEnd::Measured if result.invalid.is_some() => return Ok(Some(result)),
                RoundEnd::Measured => {}
                RoundEnd::Late if result.rounds > 1 => break,
                RoundEnd::Late => {
                    result.invalid = Some(format!("there was no time for a round; {LONGER}"));
                    return Ok(Some(result));
                }
            }
        }
        let Some(best) = halving.left().first() else { return Ok(Some(result)) };
        match self.confirm(&all[*best])? {
            Some(Ok(confirmation)) => result.best = Some(confirmation),
            Some(Err(why)) => result.invalid = Some(why),
            None => return Ok(None),
        }
        Ok(Some(result))
    }

    /// Keeps the requests that the default settings answer with 200. Returns false if interrupted.
    fn survey(&mut self, mix: &RequestMix, result: &mut TuneResult) -> Result<bool, String> {
        let root = self.plans.served.root.display().to_string();
        (self.tell)(TuneProgress::Step(format!("asking for {}", show_count(mix.paths.len(), "path"))));
        let plan = self.plans.plan("", BTreeMap::new(), Profile::Smoke, None, 0.0);
        let bench = bench::make(&plan, self.tuner.own, self.tuner.folder, Some(self.end()))?;
        let time = (self.tuner.budget / 10).max(LEAST_SURVEY);
        let survey = match &mut self.machines {
            Some(machines) => machines.meanwhile(|| bench.survey(&mix.paths, time)),
            None => bench.survey(&mix.paths, time),
        };
        let Some(survey) = survey? else { return Ok(false) };
        if survey.requests.is_empty() {
            return Err(format!(
                "the site {root} answers none of {} with status 200; name the folder that the paths are relative \
                 to, and make its files readable for the user of the workers",
                show_count(mix.paths.len(), "path")
            ));
        }
        result.paths = survey.requests.len();
        (result.refused, result.large, result.late) = (survey.refused, survey.large, survey.late);
        self.plans.served.requests = survey.requests;
        Ok(true)
    }

    /// Measures the default settings, to determine the duration of a trial and the rate for latencies. Returns false if
    /// interrupted.
    fn pilot(&mut self, result: &mut TuneResult) -> Result<bool, String> {
        let (mut number, mut lengthened) = (1, false);
        let (name, trials) = loop {
            let name = if number == 1 { "pilot".to_owned() } else { format!("pilot-{number}") };
            let cells =
                BTreeMap::from([(DEFAULT.to_owned(), self.plans.cell(DEFAULT, &CandidateSettings::new()))]);
            (self.tell)(TuneProgress::Step(format!(
                "measuring the default in {PILOT_TRIALS} trials of {} ms",
                self.plans.milliseconds
            )));
            let plan = self.plans.plan(&name, cells, Profile::Smoke, Some(PILOT_TRIALS), self.left());
            let Some(trials) = self.carry_out(&plan, &name, self.end())? else { return Ok(false) };
            if trials.is_empty() {
                return Err(format!("the budget ended before a trial of the default; {LONGER}"));
            }
            match pilot_end(&Blocks::of(&trials, &name)) {
                PilotEnd::Failed(why) => {
                    result.invalid = Some(format!("no trial succeeded with the default settings: {why}"));
                    return Ok(true);
                }
                PilotEnd::Served => break (name, trials),
                PilotEnd::Longer(why) => {
                    result.invalid = self.longer_trials(&why);
                    if result.invalid.is_some() {
                        return Ok(true);
                    }
                }
            }
            (number, lengthened) = (number + 1, true);
        };
        // A setting may need twice the time of the default for the largest response.
        let (milliseconds, seconds) = (self.plans.milliseconds, self.trial_seconds);
        if lengthened {
            self.lengthen(2 * milliseconds);
        }
        if lengthened && self.too_short().is_some() {
            (self.plans.milliseconds, self.trial_seconds) = (milliseconds, seconds);
        }
        let blocks = Blocks::of(&trials, &name);
        if self.tuner.goal != Goal::Latency {
            return Ok(true);
        }
        let rate = CALM * middle(&blocks.values(DEFAULT, Measure::Rate)).unwrap_or_default();
        let needed = P99_RESPONSES / rate * 1e3;
        if rate < 1.0 || needed > LONGEST_TRIAL {
            return Err(format!(
                "the default gives {rate:.0} responses per second at half of its rate, too few for a 99th percentile \
                 in a trial; use --for throughput, or a --log with smaller files"
            ));
        }
        self.plans.load.rate = Some(rate as u32);
        self.lengthen(needed.ceil() as u64);
        Ok(true)
    }

    /// Doubles the length of the trials, in which connections of the default got no response. Returns the reason why the
    /// default cannot be judged, if the budget does not allow it.
    fn longer_trials(&mut self, why: &str) -> Option<String> {
        let milliseconds = self.plans.milliseconds;
        self.lengthen(2 * milliseconds);
        let short = self.too_short()?;
        Some(format!("with the default settings, {why} in trials of {milliseconds} ms; {short}"))
    }

    /// Lengthens the trials to `milliseconds` at least.
    fn lengthen(&mut self, milliseconds: u64) {
        let longer = milliseconds.max(self.plans.milliseconds);
        self.trial_seconds += (longer - self.plans.milliseconds) as f64 / 1e3;
        self.plans.milliseconds = longer;
    }

    /// The number of candidates that the remaining time allows.
    fn room(&self) -> usize {
        let seconds = self.searching();
        let fits = |count: &usize| {
            let trials = (count + 1) * FIRST_BLOCKS * halving::rounds(*count) as usize;
            trials as f64 * self.trial_seconds <= seconds
        };
        CANDIDATES.rev().find(fits).unwrap_or(*CANDIDATES.start())
    }

    /// Measures the default and the remaining candidates. Adds the reasons why candidates are dropped, or the reason why
    /// the default cannot be judged.
    fn round(
        &mut self,
        result: &mut TuneResult,
        all: &[CandidateSettings],
        halving: &mut Halving,
    ) -> Result<RoundEnd, String> {
        let number = result.rounds;
        let seconds = self.searching() / f64::from(halving.rounds().max(1));
        let mut cells =
            BTreeMap::from([(DEFAULT.to_owned(), self.plans.cell(DEFAULT, &CandidateSettings::new()))]);
        for candidate in halving.left() {
            let settings = &all[*candidate];
            cells.insert(name(*candidate), self.plans.cell(&candidates::flags(settings), settings));
        }
        let block = cells.len() as f64 * self.trial_seconds;
        let blocks = ((seconds / block) as usize).clamp(1, MOST_BLOCKS);
        let mut round = format!("round-{number}");
        if self.tuner.folder.join(&round).exists() {
            round += &format!("-of-{}-ms", self.plans.milliseconds);
        }
        (self.tell)(TuneProgress::Step(format!(
            "round {number}: {} in {}, about {:.0} s",
            show_count(halving.left().len(), "setting"),
            show_count(blocks, "block"),
            block * blocks as f64
        )));
        let whole = cells.len();
        // Slow candidates may take twice the time.
        let plan = self.plans.plan(&round, cells, Profile::Smoke, Some(blocks), 2.0 * seconds);
        let until = self.end() - self.confirmation().min(self.tuner.budget);
        let Some(trials) = self.carry_out(&plan, &round, until)? else { return Ok(RoundEnd::Interrupted) };
        let blocks = Blocks::of(&trials, &round).complete(whole);
        if blocks.is_empty() {
            return Ok(RoundEnd::Late);
        }
        if let Some(why) = most_failed(&blocks, DEFAULT) {
            result.invalid = Some(format!("no trial succeeded with the default settings: {why}"));
            return Ok(RoundEnd::Measured);
        }
        if let Some(why) = unserved(&blocks, DEFAULT) {
            result.invalid = self.longer_trials(&why);
            // The round is repeated with longer trials.
            result.rounds -= 1;
            return Ok(RoundEnd::Measured);
        }
        let goal = self.tuner.goal;
        halving.end_round(|candidate| match failure(&blocks, &name(candidate)) {
            Some(why) => {
                result.dropped.push((candidates::flags(&all[candidate]), why));
                Vec::new()
            }
            None => {
                let ratios = blocks.ratios(&name(candidate), DEFAULT, goal.measure());
                ratios.into_iter().map(|ratio| goal.gain(ratio)).collect()
            }
        });
        Ok(RoundEnd::Measured)
    }

    /// Measures the best candidate and the default in fresh blocks. Returns `None` if interrupted, and the reason if
    /// the blocks are too few or disturbed.
    fn confirm(
        &mut self,
        settings: &CandidateSettings,
    ) -> Result<Option<Result<Confirmation, String>>, String> {
        let flags = candidates::flags(settings);
        (self.tell)(TuneProgress::Step(format!("measuring {flags} and the default again, in fresh blocks")));
        // The remaining time allows about twelve blocks of these trials with their starts.
        let around = self.trial_seconds - self.plans.milliseconds as f64 / 1e3;
        let longest = ((self.left() / 24.0 - around) * 1e3).max(0.0) as u64;
        self.plans.milliseconds =
            longest.clamp(self.plans.milliseconds, (*TRIAL.end()).max(self.plans.milliseconds));
        let cells = BTreeMap::from([
            (DEFAULT.to_owned(), self.plans.cell(DEFAULT, &CandidateSettings::new())),
            (BEST.to_owned(), self.plans.cell(&flags, settings)),
        ]);
        let seconds = self.left() + SLACK.as_secs_f64();
        let plan = self.plans.plan(CONFIRMATION, cells, Profile::Quick, None, seconds);
        let Some(trials) = self.carry_out(&plan, CONFIRMATION, self.end() + SLACK)? else { return Ok(None) };
        let all = Blocks::of(&trials, CONFIRMATION).complete(2);
        let disturbed = all.flagged();
        let flag = all.iter().flat_map(|(_, trials)| trials.iter().flat_map(|trial| &trial.flags)).next();
        if let Some(why) = proves_nothing(all.len(), disturbed, flag.map_or("", String::as_str)) {
            return Ok(Some(Err(why)));
        }
        let blocks = all.undisturbed();
        if let Some(why) = unserved(&blocks, DEFAULT) {
            let milliseconds = self.plans.milliseconds;
            let why = format!("with the default settings, {why} in trials of {milliseconds} ms; {LONGER}");
            return Ok(Some(Err(why)));
        }
        let verdicts = plan.experiments.first().map(|planned| verdict::judge(planned, &blocks));
        let verdict = verdicts.and_then(|all| all.into_iter().next());
        let verdict = verdict.ok_or("the plan of the fresh blocks has no claim")?;
        Ok(Some(Ok(Confirmation::of(settings, verdict, disturbed, &blocks, BEST, DEFAULT))))
    }

    /// Runs a plan in a new folder until `until` at the latest. Returns `None` if interrupted.
    fn carry_out(
        &mut self,
        plan: &RunPlan,
        name: &str,
        until: Instant,
    ) -> Result<Option<Vec<Trial>>, String> {
        let folder: PathBuf = self.tuner.folder.join(name);
        match &self.plans.machines {
            Some((_, hosts)) => runner::prepare_on(plan, hosts, &folder)?,
            None => runner::prepare(plan, self.tuner.environment, &folder)?,
        }
        let begin = Instant::now();
        let (tell, machines) = (&mut self.tell, self.machines.as_deref_mut());
        let end = runner::run(plan, self.tuner.own, &folder, Some(until), machines, &mut |progress| {
            tell(TuneProgress::Trials(progress));
        })?;
        if end == RunEnd::Interrupted {
            return Ok(None);
        }
        let trials = record::read(&folder)?;
        self.trial_seconds = begin.elapsed().as_secs_f64() / trials.len().max(1) as f64;
        Ok(Some(trials))
    }

    /// The end of the search.
    fn end(&self) -> Instant {
        self.tuner.begin + self.tuner.budget
    }

    /// The remaining seconds of the budget.
    fn left(&self) -> f64 {
        self.end().saturating_duration_since(Instant::now()).as_secs_f64()
    }

    /// The time of the fewest fresh blocks for a verdict.
    fn confirmation(&self) -> Duration {
        Duration::from_secs_f64((2 * FEWEST_BLOCKS) as f64 * self.trial_seconds)
    }

    /// The remaining seconds for rounds, without the time of fresh blocks.
    fn searching(&self) -> f64 {
        (self.left() - self.confirmation().max(self.tuner.budget / 2).as_secs_f64()).max(0.0)
    }

    /// The reason why the budget is too short, if it is.
    fn too_short(&self) -> Option<String> {
        let trial = self.trial_seconds;
        // The default and the fewest candidates once, then the fresh blocks.
        let needed = (CANDIDATES.start() + 1) as f64 * trial + self.confirmation().as_secs_f64();
        let spent = self.tuner.begin.elapsed().as_secs_f64();
        (needed > self.left() + SLACK.as_secs_f64()).then(|| {
            let budget = ((spent + needed) * 1.5).ceil();
            format!(
                "the budget is too short: a trial takes {trial:.2} s here; use --budget {budget:.0}s or more"
            )
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoundEnd {
    /// The round has complete blocks.
    Measured,
    /// The time was too short for a block.
    Late,
    /// A signal interrupted it.
    Interrupted,
}

/// The reason why fresh blocks prove nothing, given their number, the number of disturbed blocks, and an example of a
/// flag.
fn proves_nothing(all: usize, disturbed: usize, flag: &str) -> Option<String> {
    if let Some(why) = disturbed_too_often(all, disturbed, "fresh block") {
        return Some(format!("{why} ({flag}); end other programs (`tenfold lab doctor`), or {LONGER}"));
    }
    (all < FEWEST_BLOCKS).then(|| {
        let blocks = show_count(all, "fresh block");
        format!(
            "there was time for {blocks} only, and fewer than {FEWEST_BLOCKS} without a disturbance earn no verdict; \
             {LONGER}"
        )
    })
}

/// The name of a candidate's cell.
fn name(candidate: usize) -> String {
    format!("setting-{}", candidate + 1)
}

/// The end of the trials of the default before the first round.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PilotEnd {
    /// Each connection had a response in each trial.
    Served,
    /// Connections had no response, for this reason, so the trials must be longer.
    Longer(String),
    /// Trials failed, for this reason.
    Failed(String),
}

fn pilot_end(blocks: &Blocks<'_>) -> PilotEnd {
    if let Some(why) = most_failed(blocks, DEFAULT) {
        return PilotEnd::Failed(why);
    }
    // Each trial counts here. Later, only the usual trial does.
    let unanswered = blocks.values(DEFAULT, Measure::Unanswered).into_iter().fold(0.0, f64::max);
    without_response(unanswered).map_or(PilotEnd::Served, PilotEnd::Longer)
}

/// The reason why a candidate is dropped: a trial failed, or connections got no response.
fn failure(blocks: &Blocks<'_>, cell: &str) -> Option<String> {
    let failed = blocks.failures(cell).first().map(|why| (*why).to_owned());
    failed.or_else(|| unserved(blocks, cell))
}

/// The first failure of a cell, if most of its trials failed.
fn most_failed(blocks: &Blocks<'_>, cell: &str) -> Option<String> {
    let failures = blocks.failures(cell);
    (2 * failures.len() > blocks.len()).then(|| failures.first().map(|why| (*why).to_owned()))?
}

/// The connections of a cell that usually got no response: the rule for candidates and for the default.
fn unserved(blocks: &Blocks<'_>, cell: &str) -> Option<String> {
    without_response(usually_unanswered(blocks, cell))
}

fn without_response(connections: f64) -> Option<String> {
    (connections > 0.0).then(|| format!("{} got no response", show_count(connections as usize, "connection")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_blocks_prove_nothing() {
        assert_eq!([proves_nothing(8, 0, ""), proves_nothing(20, 12, "noise")], [None, None]);
        let why = proves_nothing(9, 2, "noise").expect("seven are left");
        assert!(why.starts_with("2 of 9 fresh blocks were disturbed, and fewer than 8"), "{why}");
        assert!(why.contains(" verdict (noise); ") && why.contains("tenfold lab doctor"), "{why}");
        let why = proves_nothing(7, 0, "").expect("seven are too few");
        assert_eq!(
            why,
            "there was time for 7 fresh blocks only, and fewer than 8 without a disturbance earn no verdict; use a \
             longer --budget"
        );
    }

    #[test]
    fn a_cell_that_loses_connections_does_not_count() {
        let trial = |unanswered: f64| Trial {
            experiment: "x".to_owned(),
            cell: "a".to_owned(),
            values: BTreeMap::from([(Measure::Unanswered, unanswered)]),
            ..Trial::default()
        };
        let good = [trial(0.0)];
        assert_eq!(failure(&Blocks::of(&good, "x"), "a"), None);
        let lost = [trial(48.0)];
        let why = failure(&Blocks::of(&lost, "x"), "a").expect("it lost connections");
        assert_eq!(why, "48 connections got no response");
        // A stall of the machine in one trial of three does not count.
        let stalled = [0, 1, 2].map(|block| Trial { block, ..trial(if block == 1 { 48.0 } else { 0.0 }) });
        assert_eq!(failure(&Blocks::of(&stalled, "x"), "a"), None);
        let failed = [Trial { failed: Some("it ended".to_owned()), ..trial(0.0) }];
        assert_eq!(failure(&Blocks::of(&failed, "x"), "a").as_deref(), Some("it ended"));
    }

    #[test]
    fn the_default_loses_connections_by_the_rule_of_candidates() {
        let trials = |unanswered: &[f64]| -> Vec<Trial> {
            let one = |(block, count): (usize, &f64)| Trial {
                experiment: "x".to_owned(),
                cell: DEFAULT.to_owned(),
                block,
                values: BTreeMap::from([(Measure::Unanswered, *count)]),
                ..Trial::default()
            };
            unanswered.iter().enumerate().map(one).collect()
        };
        // The trials were too short for the films of a site.
        let short = trials(&[2.0, 5.0, 3.0]);
        let short = Blocks::of(&short, "x");
        assert_eq!(failure(&short, DEFAULT), unserved(&short, DEFAULT));
        assert_eq!(unserved(&short, DEFAULT).as_deref(), Some("3 connections got no response"));
        let why = "5 connections got no response";
        assert_eq!(pilot_end(&short), PilotEnd::Longer(why.to_owned()));
        // A single stall lengthens the trials of the pilot, and is no failure in a round, even of two blocks.
        let stalled = trials(&[0.0, 4.0]);
        let stalled = Blocks::of(&stalled, "x");
        assert_eq!(unserved(&stalled, DEFAULT), None);
        assert!(matches!(pilot_end(&stalled), PilotEnd::Longer(_)));
        let served = trials(&[0.0; 3]);
        assert_eq!(pilot_end(&Blocks::of(&served, "x")), PilotEnd::Served);
        let failed = [Trial { failed: Some("it ended".to_owned()), ..trials(&[0.0]).remove(0) }];
        assert_eq!(pilot_end(&Blocks::of(&failed, "x")), PilotEnd::Failed("it ended".to_owned()));
    }
}
