//! Experiments without a process: timers, parsing and the access log, by the same plan and statistics.

mod head_list;
mod parsing;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant as Clock};

use tenfold_engine::TimerKind;
use tenfold_engine::timer::{self, Timer};
use tenfold_http::Instant;
use tenfold_sys::usage;

use crate::experiment::subject::{Cell, Operation, Subject};
use crate::machine::noise::NoiseWatch;
use crate::measure::Measure;
use crate::trial::bench::{LineLog, Workbench, interrupted};
use head_list::HeadList;

type TrialValues = BTreeMap<Measure, f64>;

/// Milliseconds on the clock of the timers when a round begins.
const NOW: u64 = 1_000_000;
const TIMEOUT: u64 = 75_000;

/// Measures an operation for `milliseconds`, on the processors reserved for servers.
pub(crate) fn measure(
    cell: &Cell,
    milliseconds: u64,
    seed: u64,
    bench: &Workbench,
) -> Result<(TrialValues, Vec<String>), String> {
    let (Some(operation), armed) = (cell.load.operation, cell.load.armed.unwrap_or(1_000)) else {
        return Err("the cell names no operation".to_owned());
    };
    let mut round: Box<Round> = match cell.subject {
        Subject::Parser | Subject::ByteParser => {
            let mut round = parsing::round(cell.subject, operation)?;
            Box::new(move |_| (round(), None))
        }
        Subject::Log => {
            let mut log = own_log(cell, operation, bench)?;
            Box::new(move |_| (log_round(&mut *log), None))
        }
        _ => {
            let make = subject(cell)?;
            if !operation.is_of_timers() {
                return Err(format!("{} has no such operation", cell.subject.name()));
            }
            Box::new(move |random| timer_round(&*make, operation, armed, random))
        }
    };
    let processors = &bench.server_processors;
    let noise = NoiseWatch::start();
    // A thread of its own, so that this one keeps its processors.
    let rounds = thread::scope(|scope| {
        let work = scope.spawn(move || {
            if !processors.is_empty() {
                usage::pin(processors).map_err(|error| format!("cannot pin the trial: {error}"))?;
            }
            Ok(rounds(&mut *round, Duration::from_millis(milliseconds), seed))
        });
        work.join().unwrap_or_else(|_| Err("the trial panicked".to_owned()))
    })?;
    let flags = noise.flags(rounds.elapsed);
    let mut values = TrialValues::from([(Measure::Operation, rounds.nanoseconds)]);
    if let Some(steps) = rounds.steps {
        values.insert(Measure::Steps, steps);
    }
    Ok((values, flags))
}

/// Timers as an experiment sees them.
trait Subjected {
    fn timer(&mut self) -> &mut dyn Timer;
    /// Whether the latest timer is armed first: then a walk from the head is short, and filling is not quadratic.
    fn fills_from_the_latest(&self) -> bool;
    /// Entries looked at so far, if it counts them.
    fn steps(&self) -> Option<u64>;
}

type Make = dyn Fn() -> Box<dyn Subjected> + Send;

/// A round: nanoseconds of an operation, and the entries that it looked at.
type Round = dyn FnMut(&mut fastrand::Rng) -> (f64, Option<f64>) + Send;

struct Ours(Box<dyn Timer>);

impl Subjected for Ours {
    fn timer(&mut self) -> &mut dyn Timer {
        &mut *self.0
    }
    fn fills_from_the_latest(&self) -> bool {
        false
    }
    fn steps(&self) -> Option<u64> {
        None
    }
}

impl Subjected for HeadList {
    fn timer(&mut self) -> &mut dyn Timer {
        self
    }
    fn fills_from_the_latest(&self) -> bool {
        true
    }
    fn steps(&self) -> Option<u64> {
        Some(self.steps)
    }
}

fn subject(cell: &Cell) -> Result<Box<Make>, String> {
    match cell.subject {
        Subject::HeadList => Ok(Box::new(|| Box::new(HeadList::default()))),
        Subject::Timers => {
            let word = cell.settings.get("timer").map_or("wheel", String::as_str);
            let kind = TimerKind::ALL.iter().find(|kind| kind.to_string() == word).copied();
            let kind = kind.ok_or_else(|| format!("there is no timer `{word}`"))?;
            Ok(Box::new(move || Box::new(Ours(timer::new(kind, Instant(NOW))))))
        }
        other => Err(format!("{} does not run in process", other.name())),
    }
}

struct Rounds {
    nanoseconds: f64,
    steps: Option<f64>,
    elapsed: f64,
}

/// Rounds of operations until the time is over. The median of the rounds is the value: a round that is interrupted by
/// another program is no round of the operation.
fn rounds(round: &mut Round, time: Duration, seed: u64) -> Rounds {
    let begin = Clock::now();
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut each, mut steps) = (Vec::new(), None);
    while each.is_empty() || (begin.elapsed() < time && !interrupted()) {
        let (nanoseconds, looked_at) = round(&mut random);
        each.push(nanoseconds);
        steps = looked_at;
    }
    each.sort_by(f64::total_cmp);
    Rounds { nanoseconds: each[each.len() / 2], steps, elapsed: begin.elapsed().as_secs_f64() }
}

/// A round of operations on timers that are filled anew.
fn timer_round(
    make: &Make,
    operation: Operation,
    armed: u32,
    random: &mut fastrand::Rng,
) -> (f64, Option<f64>) {
    let mut timers = make();
    fill(&mut *timers, armed, operation, random);
    let count = operations(operation, armed);
    let deadlines: Vec<u64> = (0..count).map(|index| deadline(operation, index, random)).collect();
    let before = timers.steps();
    let timer = timers.timer();
    let clock = Clock::now();
    for (index, at) in (0..count).zip(&deadlines) {
        act(black_box(&mut *timer), operation, armed, index, *at);
    }
    let nanoseconds = clock.elapsed().as_nanos() as f64 / f64::from(count);
    let steps = timers.steps().zip(before).map(|(now, before)| (now - before) as f64 / f64::from(count));
    (nanoseconds, steps)
}

/// The access log of this server, on a file that goes with the site.
fn own_log(cell: &Cell, operation: Operation, bench: &Workbench) -> Result<Box<dyn LineLog>, String> {
    if operation != Operation::LogLine {
        return Err("a log has the operation log-line only".to_owned());
    }
    let mode = cell.settings.get("log-mode").map_or("sync", String::as_str);
    (bench.own.open_log)(mode, &bench.site.scratch().join("access.log"))
}

/// A round of lines, which are written before the next round: the queue has room for each.
fn log_round(log: &mut dyn LineLog) -> f64 {
    const LINES: u32 = 500;
    const LINE: &[u8] = b"127.0.0.1 - - [23/Nov/2026:05:40:00 +0000] \"GET /index.html HTTP/1.1\" 200 1067 \"-\" \"curl/8.5.0\"\n";
    let clock = Clock::now();
    for _ in 0..LINES {
        log.add(black_box(LINE));
    }
    let nanoseconds = clock.elapsed().as_nanos() as f64 / f64::from(LINES);
    log.settle();
    nanoseconds
}

/// A walk is long on a long list: a round has fewer operations there.
fn operations(operation: Operation, armed: u32) -> u32 {
    match operation {
        Operation::AddRandom | Operation::AddLatest if armed >= 10_000 => 100,
        _ => 500.min(armed),
    }
}

fn deadline(operation: Operation, index: u32, random: &mut fastrand::Rng) -> u64 {
    match operation {
        Operation::AddRandom => NOW + 10_000 + random.u64(..TIMEOUT),
        Operation::AddSame => NOW + 10_000,
        _ => NOW + 10_000 + 2 * TIMEOUT + u64::from(index),
    }
}

fn act(timer: &mut dyn Timer, operation: Operation, armed: u32, index: u32, at: u64) {
    match operation {
        Operation::Adjust => timer.arm(index, Instant(at)),
        Operation::Tick => {
            let mut due = Vec::new();
            timer.expire(Instant(NOW + u64::from(index)), &mut due);
            black_box(due.len());
        }
        _ => timer.arm(armed + index, Instant(at)),
    }
}

/// Arms timers in the order that costs the subject least.
fn fill(timers: &mut dyn Subjected, armed: u32, operation: Operation, random: &mut fastrand::Rng) {
    let from_the_latest = timers.fills_from_the_latest();
    let timer = timers.timer();
    // Memory for those that are added is there, as it is on a server that has run for a while.
    let all = armed + operations(operation, armed);
    for index in 0..all {
        timer.arm(index, Instant(NOW));
        timer.disarm(index);
    }
    let mut deadlines: Vec<u64> = (0..armed)
        .map(|index| match operation {
            Operation::AddSame => NOW + 10_000,
            Operation::AddRandom => NOW + 10_000 + random.u64(..TIMEOUT),
            _ => NOW + 10_000 + u64::from(index) * TIMEOUT / u64::from(armed),
        })
        .collect();
    deadlines.sort_unstable();
    if from_the_latest {
        deadlines.reverse();
    }
    for (index, at) in (0..armed).zip(deadlines) {
        timer.arm(index, Instant(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::subject::Workload;
    use crate::trial::bench::{OpenLog, OwnServer};
    use crate::trial::site::TrialSite;

    fn cell(subject: Subject, timer: &str, operation: Operation, armed: u32) -> Cell {
        Cell {
            about: String::new(),
            subject,
            settings: BTreeMap::from([("timer".to_owned(), timer.to_owned())]),
            load: Workload { operation: Some(operation), armed: Some(armed), ..Workload::default() },
            original: BTreeMap::new(),
        }
    }

    /// A log that keeps its lines, and counts how often they were waited for.
    struct KeptLog(std::path::PathBuf, Vec<u8>);

    impl LineLog for KeptLog {
        fn add(&mut self, line: &[u8]) {
            self.1.extend_from_slice(line);
        }
        fn settle(&mut self) {
            std::fs::write(&self.0, &self.1).expect("there is room");
        }
    }

    fn bench() -> Workbench {
        let open_log: OpenLog = |mode, file| match mode {
            "sync" => Ok(Box::new(KeptLog(file.to_owned(), Vec::new()))),
            _ => Err(format!("there is no mode `{mode}`")),
        };
        Workbench {
            own: OwnServer { program: "/no/such/program".into(), open_log },
            site: TrialSite::new().expect("a folder"),
            served: None,
            kept: std::env::temp_dir(),
            server_processors: Vec::new(),
            client_processors: Vec::new(),
        }
    }

    #[test]
    fn a_log_gets_whole_rounds_of_lines() {
        let bench = bench();
        let log = |mode: &str, operation| {
            let mut cell = cell(Subject::Log, "", operation, 1);
            cell.settings.insert("log-mode".to_owned(), mode.to_owned());
            measure(&cell, 1, 1, &bench)
        };
        assert!(log("sync", Operation::LogLine).expect("it runs").0[&Measure::Operation] > 0.0);
        let written = std::fs::read_to_string(bench.site.scratch().join("access.log")).expect("it is there");
        assert!(written.lines().count().is_multiple_of(500) && written.ends_with("\"curl/8.5.0\"\n"));
        assert!(log("never", Operation::LogLine).expect_err("no such mode").contains("`never`"));
        assert!(log("sync", Operation::Tick).expect_err("of timers").contains("log-line"));
    }

    #[test]
    fn every_timer_does_every_operation() {
        use Operation::{AddLatest, AddRandom, AddSame, Adjust, Tick};
        for timer in ["list", "heap", "wheel", "hierarchical"] {
            for operation in [AddLatest, AddRandom, AddSame, Adjust, Tick] {
                let cell = cell(Subject::Timers, timer, operation, 100);
                let (values, _) = measure(&cell, 1, 1, &bench()).expect("it runs");
                assert!(values[&Measure::Operation] > 0.0, "{timer}, {operation:?}");
            }
        }
        assert!(measure(&cell(Subject::Timers, "sundial", Tick, 10), 1, 1, &bench()).is_err());
    }

    #[test]
    fn a_list_walked_from_its_head_takes_steps_in_proportion() {
        let steps = |armed| {
            let cell = cell(Subject::HeadList, "", Operation::AddLatest, armed);
            measure(&cell, 1, 1, &bench()).expect("it runs").0[&Measure::Steps]
        };
        let (few, many) = (steps(1_000), steps(10_000));
        assert!(few >= 1_000.0 && many >= 10_000.0, "{few} and {many} steps for one operation");
    }
}
