//! A plan whose load several agents make.

use std::time::{Duration, Instant};

use tenfold_agents::fleet::{FleetPlan, safe};
use tenfold_agents::{Fleet, FleetEvent};
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::{clock, limits};

use crate::error::{LoadError, failed};
use crate::measure::record::Record;
use crate::plan::{LoadPlan, MachinePart, WarmUp};
use crate::report::environment::{self, Environment};
use crate::report::summary::{AgentEnvironment, AgentSummary, LoadReport, RunSummary};
use crate::run::live::{LiveCounters, LiveDisplay};
use crate::run::task::{FromTask, LOAD_TASK, ToTask};
use crate::run::workers;
use crate::worker::{LIVE_COUNTERS, slice_length};

/// The division of a plan among agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShareBy {
    /// Each agent has the same share.
    #[default]
    Equal,
    /// Each agent has a thread, and so a share, for each of its processors.
    Processors,
}

impl ShareBy {
    /// Every division and its name.
    pub const ALL: [(&'static str, ShareBy); 2] =
        [("equal", ShareBy::Equal), ("processors", ShareBy::Processors)];
}

/// The longest wait for an agent that prepares: it resolves names.
const PREPARE: Duration = Duration::from_secs(30);
/// The longest time without a report of a running task.
const LOST: Duration = Duration::from_secs(5);
/// The longest end of a run that was stopped.
const STOP: Duration = Duration::from_secs(2);
/// The time after its deadline at which a run is given up.
const LATE: Duration = Duration::from_secs(10);
/// The longest run without a duration.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);
/// The time from the message that starts a run to its begin, in addition to round trips.
const LEAD: u64 = 100_000_000;
/// The difference between the begins of two agents, in milliseconds and as a part of the run, above which the run is
/// invalid. Both must be exceeded.
const SKEW: (f64, f64) = (50.0, 0.01);
/// The pause of a worker that makes a run invalid: a part of the run, but at least and at most these seconds.
const PAUSE: (f64, f64, f64) = (0.05, 0.25, 1.0);
/// Nanoseconds by which an agent may begin before its time: the drift of clocks.
const EARLY: i128 = 100_000_000;
/// The part of a processor above which a thread is saturated.
const BUSY: f64 = 0.95;
/// The most bytes of a body that goes to each agent.
const MOST_BODY: usize = 4 << 20;

/// Runs `plan` on the agents of `fleet`, as `run` does on this machine. `share` divides it.
pub fn run_on(
    plan: &LoadPlan,
    fleet: &FleetPlan,
    share: ShareBy,
    live: bool,
) -> Result<LoadReport, LoadError> {
    fleet.check().map_err(LoadError::Usage)?;
    if plan.body.len() > MOST_BODY {
        return Err(LoadError::Usage(format!("--on sends a --body of at most {} MiB", MOST_BODY >> 20)));
    }
    if share == ShareBy::Processors && (plan.threads > 1 || plan.processes > 1) {
        return Err(LoadError::Usage(
            "--share processors starts a thread for each processor; remove --threads and --processes"
                .to_owned(),
        ));
    }
    lifecycle::install_worker_signals().map_err(|error| failed("install signal handlers", &error))?;
    limits::raise_descriptors().map_err(|error| failed("raise the limit of descriptors", &error))?;
    let mut fleet = Fleet::start(fleet).map_err(|lines| match lines.is_empty() {
        true => LoadError::Interrupted,
        false => LoadError::Failed(lines.join("\n")),
    })?;
    let agents: Vec<usize> = (0..fleet.len()).collect();
    LoadFleet::prepare(plan, &mut fleet, &agents, share)?.run(live)
}

/// Agents that are prepared for a plan.
#[derive(Debug)]
pub struct LoadFleet<'a> {
    fleet: &'a mut Fleet,
    /// The plan of all machines together.
    plan: LoadPlan,
    share: ShareBy,
    agents: Vec<LoadAgent>,
}

#[derive(Debug)]
struct LoadAgent {
    /// Its number in the fleet.
    number: usize,
    /// Its part of the plan.
    plan: LoadPlan,
    environment: AgentEnvironment,
    /// The reason why it is lost, if it is.
    lost: Option<String>,
    /// Whether its load failed, so that `lost` is the failure of the plan and not of the machine.
    failed: bool,
}

/// The state of an agent during a run.
struct Running {
    counters: LiveCounters,
    reported: Instant,
    /// The last change of the counters.
    changed: Instant,
    result: Option<Measured>,
}

/// A run under way.
struct Course {
    number: u32,
    /// The planned begin in nanoseconds of the clock of this machine.
    begin: u64,
    started: Instant,
    /// The time at which the agents were told to stop.
    stopped: Option<Instant>,
}

struct Measured {
    /// The begin in nanoseconds of the clock of this machine.
    begun: i128,
    record: Record,
}

impl<'a> LoadFleet<'a> {
    /// Begins the task on `agents`, which must be without a task, and divides `plan`.
    ///
    /// # Errors
    /// The plan is contradictory, or an agent cannot make its part.
    pub fn prepare(
        plan: &LoadPlan,
        fleet: &'a mut Fleet,
        agents: &[usize],
        share: ShareBy,
    ) -> Result<LoadFleet<'a>, LoadError> {
        let each = plan.duration.map_or(LONGEST, |time| time + plan.timeout + LATE);
        let limit = each.saturating_mul(plan.repeat).saturating_add(PREPARE);
        for agent in agents {
            fleet.begin(*agent, LOAD_TASK, limit).map_err(LoadError::Failed)?;
        }
        let mut environments = Vec::new();
        for agent in agents {
            match next_message(fleet, *agent)? {
                FromTask::Here(found) => environments.push(made_safe(found)),
                _ => return Err(unexpected(fleet, *agent)),
            }
        }
        let mut parts = divided(plan, &environments, share);
        let whole = MachinePart { first: 0, machine: 0, ..parts[0].part.unwrap_or_default() };
        let mut all = LoadPlan { part: Some(whole), ..plan.clone() };
        all.connections = Some(all.active());
        all.check()?;
        for (agent, part) in agents.iter().zip(&mut parts) {
            part.connections = all.connections;
            fleet.say(*agent, &ToTask::Plan(Box::new(part.clone()))).map_err(LoadError::Failed)?;
        }
        let mut ready = Vec::new();
        for ((number, plan), environment) in agents.iter().zip(parts).zip(environments) {
            let FromTask::Ready(mut io) = next_message(fleet, *number)? else {
                return Err(unexpected(fleet, *number));
            };
            io.why = safe(&io.why);
            let name = fleet.label(*number).to_owned();
            let environment = AgentEnvironment { name, environment, io };
            ready.push(LoadAgent { number: *number, plan, environment, lost: None, failed: false });
        }
        Ok(LoadFleet { fleet, plan: all, share, agents: ready })
    }

    /// Returns the fleet, for messages to its other agents before the run.
    pub fn fleet(&mut self) -> &mut Fleet {
        self.fleet
    }

    /// Runs the plan, once or repeatedly. The tasks end with it.
    pub fn run(mut self, live: bool) -> Result<LoadReport, LoadError> {
        let mut runs: Vec<RunSummary> = Vec::new();
        for number in 1..=self.plan.repeat {
            if let Some(lost) = self.agents.iter().find(|agent| agent.lost.is_some()) {
                let (name, why) = (&lost.environment.name, lost.lost.as_deref().unwrap_or_default());
                let left = self.plan.repeat + 1 - number;
                let why =
                    format!("{name}: it {why}; the last {left} of {} runs are missing", self.plan.repeat);
                runs.iter_mut().last().iter_mut().for_each(|run| run.invalid.push(why.clone()));
                break;
            }
            let mut display = LiveDisplay::new(&self.plan, number, live);
            let results = self.run_once(number, &mut display);
            display.end();
            let summary = self.summary(results?)?;
            let ends = summary.interrupted || summary.agents.iter().any(|agent| agent.lost.is_some());
            runs.push(summary);
            if ends {
                break;
            }
        }
        self.end();
        let mut settings = self.plan.settings();
        let share = ShareBy::ALL.into_iter().find(|(_, share)| *share == self.share);
        settings.insert("share".to_owned(), share.map_or("", |(name, _)| name).to_owned());
        Ok(LoadReport {
            label: None,
            urls: self.plan.urls.iter().map(ToString::to_string).collect(),
            plan: self.plan.to_string(),
            settings,
            io: self.agents[0].environment.io.clone(),
            environment: environment::find(),
            agents: self.agents.into_iter().map(|agent| agent.environment).collect(),
            runs,
        })
    }

    /// Ends the tasks, and waits for their ends, so that the agents can begin others.
    fn end(&mut self) {
        let until = Instant::now() + STOP;
        self.agents.iter().for_each(|agent| self.fleet.end_task(agent.number));
        for agent in self.agents.iter().filter(|agent| agent.lost.is_none()) {
            while Instant::now() < until {
                match self.fleet.take(agent.number) {
                    Some(FleetEvent::Ended(_) | FleetEvent::Lost(_)) => break,
                    Some(_) => {}
                    None => self.fleet.exchange(STOP),
                }
            }
        }
    }

    /// Makes one run. Returns the results of the agents that were not lost.
    fn run_once(
        &mut self,
        number: u32,
        display: &mut LiveDisplay,
    ) -> Result<Vec<Option<Measured>>, LoadError> {
        let far = self.agents.iter().map(|agent| self.fleet.clock(agent.number).round_trip).max();
        let begin = clock::monotonic() + LEAD + workers::lead(&self.plan) + 2 * far.unwrap_or_default();
        for agent in &self.agents {
            let theirs = i128::from(begin) + i128::from(self.fleet.clock(agent.number).offset);
            let at = u64::try_from(theirs).unwrap_or_default();
            self.fleet.say(agent.number, &ToTask::Run { number, at }).map_err(LoadError::Failed)?;
        }
        let mut course = Course { number, begin, started: Instant::now(), stopped: None };
        let now = course.started;
        let idle = || Running { counters: [0; LIVE_COUNTERS], reported: now, changed: now, result: None };
        let mut running: Vec<Running> = self.agents.iter().map(|_| idle()).collect();
        loop {
            self.fleet.exchange(Duration::from_millis(100));
            for (agent, run) in self.agents.iter_mut().zip(&mut running) {
                while let Some(event) = self.fleet.take(agent.number) {
                    agent.hear(event, run, self.fleet, &course);
                }
                if agent.lost.is_none() && run.result.is_none() {
                    agent.lost = late(&self.plan, run, &course);
                }
            }
            let sum =
                |place: usize| running.iter().fold(0u64, |sum, run| sum.saturating_add(run.counters[place]));
            display.update(&std::array::from_fn(sum));
            let mut work = self.agents.iter().zip(&running).filter(|(_, run)| run.result.is_none());
            let is_lost = work.clone().any(|(agent, _)| agent.lost.is_some());
            if course.stopped.is_none() && (is_lost || lifecycle::phase() != Phase::Serving) {
                course.stopped = Some(Instant::now());
                // An agent with a result waits for the next run.
                work.clone().for_each(|(agent, _)| self.fleet.interrupt(agent.number));
            }
            if work.all(|(agent, _)| agent.lost.is_some()) {
                return Ok(running.into_iter().map(|run| run.result).collect());
            }
        }
    }

    /// Merges the results of one run.
    fn summary(&self, results: Vec<Option<Measured>>) -> Result<RunSummary, LoadError> {
        if results.iter().all(Option::is_none)
            && let Some(agent) = self.agents.iter().find(|agent| agent.failed)
        {
            let why = agent.lost.as_deref().unwrap_or_default().trim_start_matches("failed: ");
            return Err(LoadError::Failed(format!("{}: {why}", agent.environment.name)));
        }
        let mut merged = Record::default();
        results.iter().flatten().for_each(|found| merged.add(found.record.clone()));
        // The controller stopped the others after a loss; no user did.
        merged.interrupted = lifecycle::phase() != Phase::Serving;
        let mut summary = RunSummary::new(&self.plan, &merged);
        let first = results.iter().flatten().map(|found| found.begun).min().unwrap_or_default();
        let mut invalid = Vec::new();
        for (agent, result) in self.agents.iter().zip(&results) {
            let name = &agent.environment.name;
            let row = self.row(agent, result.as_ref(), first, &summary);
            if let Some(why) = &row.lost {
                let said = row.written.last().map_or_else(String::new, |line| format!("; it wrote: {line}"));
                invalid.push(format!("{name}: it {why}{said}; the results are those of the other agents"));
            }
            summary.agents.push(row);
            let Some(Measured { record, .. }) = result else { continue };
            let pause = record.pause as f64 / 1e9;
            let (part, least, most) = PAUSE;
            if pause > (part * summary.elapsed).clamp(least, most) {
                invalid.push(format!("{name}: a thread of the agent did not run for {pause:.1} s"));
            }
            let alone = RunSummary::new(&agent.plan, record);
            // A small plan may leave nothing for an agent.
            let is_idle = record.errors.is_empty() && alone.answers == 0;
            invalid.extend(alone.invalid.iter().filter(|_| !is_idle).map(|why| format!("{name}: {why}")));
        }
        invalid.extend(skew(&summary.agents, summary.elapsed));
        invalid.append(&mut summary.invalid);
        invalid.dedup();
        summary.invalid = invalid;
        Ok(summary)
    }

    /// Returns the row of an agent. It has the measured time of all agents.
    fn row(
        &self,
        agent: &LoadAgent,
        result: Option<&Measured>,
        first: i128,
        all: &RunSummary,
    ) -> AgentSummary {
        let (name, seed) = (agent.environment.name.clone(), agent.plan.seed);
        let round_trip_ms = self.fleet.clock(agent.number).round_trip as f64 / 1e6;
        let row = AgentSummary { name, seed, round_trip_ms, ..AgentSummary::default() };
        let Some(result) = result else {
            let (lost, written) = (agent.lost.clone(), self.fleet.last_lines(agent.number));
            return AgentSummary { lost, written, ..row };
        };
        let cut = Duration::try_from_secs_f64(all.warm_up.seconds).unwrap_or_default();
        let warm_up = if cut.is_zero() { WarmUp::Nothing } else { WarmUp::For(cut) };
        let summary = RunSummary::new(&LoadPlan { warm_up, ..agent.plan.clone() }, &result.record);
        let busiest = summary.generator.busiest;
        let saturated = (busiest > BUSY)
            .then(|| format!("its busiest thread used {:.0} % of a processor", 100.0 * busiest));
        AgentSummary {
            answers: summary.answers,
            rate: summary.rate,
            p99_us: summary.latency_us.as_ref().and_then(|latency| latency.percentile("p99")),
            busiest,
            delay_us: summary.generator.delay_us.as_ref().map(|delay| delay.max),
            errors: summary.errors(),
            late_ms: (result.begun - first) as f64 / 1e6,
            limit: saturated.or_else(|| summary.invalid.first().filter(|_| summary.answers > 0).cloned()),
            ..row
        }
    }
}

impl LoadAgent {
    fn hear(&mut self, event: FleetEvent, run: &mut Running, fleet: &Fleet, course: &Course) {
        let said = match event {
            FleetEvent::Said(said) => said,
            FleetEvent::Lost(why) => return self.lose(why),
            FleetEvent::Failed(why) => return self.fail(&why),
            FleetEvent::Ended(how) => return self.lose(format!("lost its task, which {}", ended(&how))),
            FleetEvent::Ready => return,
        };
        match serde_json::from_str(&said) {
            Ok(FromTask::Progress(counters)) => {
                // Sums of a thousand agents fit.
                let counters = counters.map(|count| count.min(1 << 53));
                run.reported = Instant::now();
                if run.counters != counters {
                    (run.counters, run.changed) = (counters, run.reported);
                }
            }
            Ok(FromTask::Done { number, begun, record }) => {
                if number != course.number || run.result.is_some() {
                    return self.lose("sent an impossible result: of another run".to_owned());
                }
                match self.measured(begun, *record, fleet, course) {
                    Ok(found) => run.result = Some(found),
                    Err(why) => self.lose(format!("sent an impossible result: {why}")),
                }
            }
            Ok(_) => self.lose("sent an impossible result: a message out of order".to_owned()),
            Err(error) => self.lose(format!("sent an impossible result: {}", safe(&error.to_string()))),
        }
        let record = run.result.as_ref().map(|found| &found.record);
        if let Some(why) = record.and_then(|record| record.failure.clone()) {
            run.result = None;
            self.fail(&why);
        } else if record.is_some_and(|record| record.interrupted) && course.stopped.is_none() {
            run.result = None;
            self.lose("was stopped on its machine".to_owned());
        }
    }

    /// Checks a result, and converts its begin to the clock of this machine.
    fn measured(
        &self,
        begun: u64,
        mut record: Record,
        fleet: &Fleet,
        course: &Course,
    ) -> Result<Measured, String> {
        record.check(&self.plan, slice_length(&self.plan), course.started.elapsed())?;
        let begun = i128::from(begun) - i128::from(fleet.clock(self.number).offset);
        let planned = i128::from(course.begin);
        // An agent without a request has ended before the begin.
        let latest = planned.max(i128::from(clock::monotonic()));
        match (planned - EARLY..=latest + EARLY).contains(&begun) {
            true => Ok(Measured { begun, record }),
            false => Err("a begin outside of the run".to_owned()),
        }
    }

    /// Notes the first reason.
    fn lose(&mut self, why: String) {
        self.lost.get_or_insert(why);
    }

    /// Notes that the load itself failed, for example because no server answers.
    fn fail(&mut self, why: &str) {
        self.failed |= self.lost.is_none();
        self.lose(format!("failed: {why}"));
    }
}

/// The reason why an agent without a result counts as lost, if there is one.
fn late(plan: &LoadPlan, run: &Running, course: &Course) -> Option<String> {
    let most = plan.duration.map(|time| time + plan.timeout + LATE);
    if run.reported.elapsed() > LOST {
        return Some(format!("has not reported its load for {} s", LOST.as_secs()));
    }
    if most.is_some_and(|most| course.started.elapsed() > most) {
        return Some("did not end its load in time".to_owned());
    }
    if most.is_none() && run.changed.elapsed() > plan.timeout + LATE {
        return Some(format!("has made no request for {} s", run.changed.elapsed().as_secs()));
    }
    let is_late = course.stopped.is_some_and(|since| since.elapsed() > STOP);
    is_late.then(|| format!("did not stop within {} s", STOP.as_secs()))
}

fn ended(how: &str) -> &str {
    if how.is_empty() { "ended" } else { how }
}

/// Returns the plans of the agents: the same plan, and a part for each.
fn divided(plan: &LoadPlan, environments: &[Environment], share: ShareBy) -> Vec<LoadPlan> {
    let threads = |found: &Environment| match share {
        ShareBy::Equal => plan.threads,
        ShareBy::Processors => (found.processors as u32).clamp(1, LoadPlan::MOST_THREADS),
    };
    let of = |found: &Environment| LoadPlan { threads: threads(found), part: None, ..plan.clone() };
    let mut parts: Vec<LoadPlan> = environments.iter().map(of).collect();
    let workers = parts.iter().fold(0, |sum: u32, part| sum.saturating_add(part.workers_here()));
    let (machines, mut first) = (parts.len() as u32, 0u32);
    for (machine, part) in (0..).zip(&mut parts) {
        part.part = Some(MachinePart { first, workers, machine, machines });
        part.seed = plan.seed.wrapping_add(u64::from(machine));
        first = first.saturating_add(part.workers_here());
    }
    parts
}

/// The reason why the begins of the agents are further apart than [`SKEW`] allows, if they are.
fn skew(rows: &[AgentSummary], seconds: f64) -> Option<String> {
    let (most, part) = SKEW;
    let measured = rows.iter().filter(|row| row.lost.is_none());
    // Each begin is exact to half of a round trip.
    let first = measured.clone().min_by(|a, b| a.late_ms.total_cmp(&b.late_ms))?.round_trip_ms;
    let late = |row: &AgentSummary| row.late_ms + (row.round_trip_ms + first) / 2.0;
    let last = measured.max_by(|a, b| late(a).total_cmp(&late(b)))?;
    let milliseconds = late(last);
    (milliseconds > most && milliseconds > part * seconds * 1e3).then(|| {
        format!(
            "{}: the agent began up to {milliseconds:.0} ms after the first: use hosts with a shorter round trip, or a longer run",
            last.name
        )
    })
}

/// Waits for the next message of an agent's task.
fn next_message(fleet: &mut Fleet, agent: usize) -> Result<FromTask, LoadError> {
    let until = Instant::now() + PREPARE;
    let mut said = String::new();
    loop {
        let why = match fleet.take(agent) {
            Some(FleetEvent::Said(text)) => match serde_json::from_str(&text) {
                Ok(message) => return Ok(message),
                Err(error) => format!("sent an unknown message: {}", safe(&error.to_string())),
            },
            Some(FleetEvent::Failed(why)) => {
                said = why;
                continue;
            }
            Some(FleetEvent::Ended(_)) if !said.is_empty() => {
                return Err(LoadError::Failed(format!("{}: {said}", fleet.label(agent))));
            }
            Some(FleetEvent::Ended(how)) => format!("lost its task, which {}", ended(&how)),
            Some(FleetEvent::Lost(why)) => why,
            Some(FleetEvent::Ready) => continue,
            None if lifecycle::phase() != Phase::Serving => return Err(LoadError::Interrupted),
            None if Instant::now() > until => format!("did not prepare within {} s", PREPARE.as_secs()),
            None => {
                fleet.exchange(Duration::from_millis(100));
                continue;
            }
        };
        return Err(LoadError::Failed(format!("the agent on {} {why}", fleet.label(agent))));
    }
}

fn unexpected(fleet: &Fleet, agent: usize) -> LoadError {
    LoadError::Failed(format!("the agent on {} sent a message out of order", fleet.label(agent)))
}

/// Texts of another machine, made safe for a terminal, and numbers within reason.
fn made_safe(found: Environment) -> Environment {
    Environment {
        version: safe(&found.version),
        kernel: safe(&found.kernel),
        processor: safe(&found.processor),
        load: safe(&found.load),
        others: if found.others.is_finite() { found.others } else { f64::MAX },
        processors: found.processors.min(1 << 16),
        online: found.online.min(1 << 16),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::pacer::ArrivalRate;
    use crate::worker::{Share, Targets};

    fn machines(processors: &[usize]) -> Vec<Environment> {
        processors.iter().map(|count| Environment { processors: *count, ..Environment::default() }).collect()
    }

    #[test]
    fn shares_of_agents_are_a_plan_without_rest_or_overlap() {
        let mut plan = LoadPlan::new(vec!["http://127.0.0.1/".parse().expect("a URL")]);
        (plan.connections, plan.requests, plan.seed) = (Some(103), Some(1_009), 40);
        plan.rate = Some(ArrivalRate::constant(1_000.0));
        let targets = Targets {
            encoded: Vec::new(),
            prepared: Vec::new(),
            remotes: Vec::new(),
            tls: Vec::new(),
            lists: vec![vec![0]],
        };
        for (share, processors, threads) in [
            (ShareBy::Equal, [2, 8, 1], [1, 1, 1]),
            (ShareBy::Processors, [2, 8, 1], [2, 8, 1]),
            (ShareBy::Processors, [0, 5_000, 3], [1, 1024, 3]),
        ] {
            let parts = divided(&plan, &machines(&processors), share);
            assert_eq!(parts.iter().map(|part| part.threads).collect::<Vec<_>>(), threads);
            assert_eq!(parts.iter().map(|part| part.seed).collect::<Vec<_>>(), [40, 41, 42]);
            if threads.iter().sum::<u32>() > 103 {
                continue;
            }
            let (mut slots, mut due) = (0, Vec::new());
            for part in &parts {
                for number in 0..part.workers_here() {
                    let index = part.part.expect("a part").first + number;
                    let share = Share::new(part, &targets, index, 0);
                    slots += share.slot_count();
                    let mut requests = share.requests();
                    due.extend(std::iter::from_fn(|| requests.take(u64::MAX)));
                }
            }
            assert_eq!((slots, due.len()), (103, 1_009), "{share:?}");
            due.sort_unstable();
            // The schedule of one machine, in which each millisecond has one request.
            assert!((0..).zip(&due).all(|(number, due)| due.abs_diff(number * 1_000_000) < 10), "{due:?}");
        }
    }

    #[test]
    fn a_late_agent_spoils_a_short_run() {
        let rows = |late_ms: f64, round_trip_ms: f64| {
            let row =
                AgentSummary { name: "b".to_owned(), late_ms, round_trip_ms, ..AgentSummary::default() };
            [AgentSummary::default(), row]
        };
        assert_eq!(skew(&rows(49.0, 0.1), 1.0), None);
        assert!(
            skew(&rows(40.0, 30.0), 1.0).is_some_and(|why| why.starts_with("b: ") && why.contains("55 ms"))
        );
        assert_eq!(skew(&rows(60.0, 0.1), 10.0), None, "it is below a hundredth of the run");
        assert!(skew(&rows(120.0, 0.1), 10.0).is_some());
    }
}
