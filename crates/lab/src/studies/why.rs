//! The difference of two servers or two settings: the mean latency, split into user, system and waiting time, and
//! counts of events. Times and counts are measured separately, and no time is attributed to a count.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use crate::experiment::Experiment;
use crate::experiment::claim::{CellPair, PublishedClaim, Requirement, Side, VerdictRule};
use crate::experiment::subject::Cell;
use crate::measure::{Measure, show_count, show_number};
use crate::plan::RunPlan;
use crate::record::{Blocks, Trial};
use crate::statistics::decision::Direction;
use crate::statistics::effect::Difference;

/// The experiment of times.
pub const TIMES: &str = "why";
/// The experiment of system calls, under a tracer.
pub const CALLS: &str = "why-calls";

const PARTS: [(Measure, &str); 4] = [
    (Measure::User, "user"),
    (Measure::System, "system"),
    (Measure::Waiting, "waiting"),
    (Measure::Latency, "latency"),
];
const COUNTS: [(Measure, &str); 2] =
    [(Measure::Switches, "context switches"), (Measure::Faults, "page faults")];
const EVENTS: [(Measure, &str); 3] = [
    (Measure::Overflows, "ListenOverflows"),
    (Measure::Drops, "ListenDrops"),
    (Measure::SynRetries, "SYN retries"),
];
/// The calls per response below which a system call is not listed, such as calls at the start.
const FEWEST_CALLS: f64 = 0.005;

/// The experiments that compare two cells, A and B.
pub fn experiments(a: &Cell, b: &Cell) -> Vec<Experiment> {
    let titled = |name: &str, trace: bool, claims: Vec<PublishedClaim>| {
        let cell = |cell: &Cell| {
            let mut cell = cell.clone();
            cell.load.trace = trace;
            cell
        };
        let title = format!("A: {}; B: {}", a.about, b.about);
        Experiment {
            name: name.to_owned(),
            title: if trace { format!("System calls of {title}") } else { title },
            source: format!("tenfold lab why \"{}\" \"{}\"", a.about, b.about),
            setting: "none".to_owned(),
            scaled: "both under the same load, in blocks that have each once, and B twice".to_owned(),
            cells: BTreeMap::from([("A".to_owned(), cell(a)), ("B".to_owned(), cell(b))]),
            claims,
            ..Experiment::default()
        }
    };
    let claim = |says: &str, measure, rule, needs| {
        let claim = PublishedClaim::of_study(says.to_owned(), measure, rule);
        PublishedClaim { needs, ..claim }
    };
    let same = || VerdictRule::Ratio {
        pair: CellPair { of: "A".to_owned(), to: "B".to_owned() },
        is: Direction::Equal,
    };
    let counted = |of: &str| VerdictRule::Count { of: of.to_owned(), side: Side::AtLeast, limit: 0.0 };
    let tracer = || vec![Requirement::Instrument("strace".to_owned())];
    vec![
        titled(
            TIMES,
            false,
            vec![
                claim("A and B have the same mean latency.", Measure::Latency, same(), Vec::new()),
                claim("A and B use the same CPU time.", Measure::Cpu, same(), Vec::new()),
            ],
        ),
        titled(
            CALLS,
            true,
            vec![
                claim("The system calls of A are counted.", Measure::Calls, counted("A"), tracer()),
                claim("The system calls of B are counted.", Measure::Calls, counted("B"), tracer()),
            ],
        ),
    ]
}

/// A row: a measure of A and B, and their difference.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitRow {
    /// The part or the count.
    pub name: String,
    /// The mean of A.
    pub a: Option<f64>,
    /// The mean of B.
    pub b: Option<f64>,
    /// The mean of A − B in the same blocks.
    pub difference: Option<Difference>,
    /// The difference of the second trial of B and its first: the noise.
    pub noise: Option<Difference>,
}

/// The difference of two cells, split.
#[derive(Clone, Debug)]
pub struct Split {
    names: [String; 2],
    blocks: usize,
    flagged: usize,
    /// The parts of the mean latency in microseconds, then their sum.
    pub parts: Vec<SplitRow>,
    /// Counts for each response.
    pub counts: Vec<SplitRow>,
    /// System calls for each response, by name.
    pub calls: Vec<SplitRow>,
    /// Events of the network in a trial.
    pub events: Vec<SplitRow>,
    /// The reason why system calls cannot be counted.
    no_calls: Option<String>,
    /// Reasons of failed trials.
    pub failures: Vec<String>,
}

impl Split {
    /// The split of a run of [`experiments`].
    pub fn of(plan: &RunPlan, trials: &[Trial]) -> Split {
        let planned = |name: &str| plan.experiments.iter().find(|one| one.experiment.name == name);
        let blocks = |name: &str| {
            let cells = planned(name).map_or(1, |one| one.cells.len()).max(1);
            Blocks::of(trials, name).complete(cells)
        };
        let (times, traced) = (blocks(TIMES), blocks(CALLS));
        let pairs = |of, measure| -> Vec<(f64, f64)> { times.paired(of, ("B", false), measure).collect() };
        let difference =
            |pairs: &[(f64, f64)]| Difference::of(&pairs.iter().map(|(of, to)| of - to).collect::<Vec<_>>());
        let rows = |table: &[(Measure, &str)]| -> Vec<SplitRow> {
            let row = |(measure, name): &(Measure, &str)| {
                let (values, again) = (pairs(("A", false), *measure), pairs(("B", true), *measure));
                // Means of the same blocks, so that their difference is the difference of the row.
                SplitRow {
                    name: (*name).to_owned(),
                    a: mean(values.iter().map(|(a, _)| *a)),
                    b: mean(values.iter().map(|(_, b)| *b)),
                    difference: difference(&values),
                    noise: difference(&again),
                }
            };
            table.iter().map(row).collect()
        };
        let about = |cell: &str| {
            let found = planned(TIMES).and_then(|one| one.experiment.cells.get(cell));
            found.map(|cell| cell.about.clone()).unwrap_or_default()
        };
        let untraced = planned(CALLS).and_then(|one| one.untestable.values().next().cloned());
        let mut failures: Vec<String> = Vec::new();
        for (blocks, pass) in [(&times, ""), (&traced, " under the tracer")] {
            for cell in ["A", "B"] {
                failures.extend(blocks.failures(cell).iter().map(|why| format!("{cell}{pass}: {why}")));
            }
        }
        failures.dedup();
        Split {
            names: [about("A"), about("B")],
            blocks: times.len(),
            flagged: times.flagged(),
            parts: rows(&PARTS),
            counts: rows(&COUNTS),
            events: rows(&EVENTS),
            calls: calls(&traced),
            no_calls: untraced,
            failures,
        }
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> Option<f64> {
    let count = values.len();
    (count > 0).then(|| values.sum::<f64>() / count as f64)
}

/// A row for each system call of A or B.
fn calls(blocks: &Blocks<'_>) -> Vec<SplitRow> {
    let (a, b) = (blocks.calls("A"), blocks.calls("B"));
    let names: BTreeSet<&String> = a.iter().chain(&b).flat_map(|calls| calls.keys()).collect();
    let of = |all: &[&BTreeMap<String, f64>], name: &String| {
        mean(all.iter().map(|calls| calls.get(name).copied().unwrap_or_default()))
    };
    let row = |name: &String| SplitRow {
        name: name.clone(),
        a: of(&a, name),
        b: of(&b, name),
        difference: None,
        noise: None,
    };
    let counted = |row: &SplitRow| row.a.into_iter().chain(row.b).any(|count| count >= FEWEST_CALLS);
    names.into_iter().map(row).filter(counted).collect()
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = &self.names;
        writeln!(f, "A: {a}\nB: {b}")?;
        writeln!(f, "{}, {} with a flag for noise\n", show_count(self.blocks, "block"), self.flagged)?;
        line(f, "mean time of a request, µs", ["A", "B", "A − B [95 % interval]", "B again − B"])?;
        for row in &self.parts {
            if row.name == "latency" {
                writeln!(f, "{}", "-".repeat(88))?;
            }
            row_line(f, row)?;
        }
        writeln!(f)?;
        line(f, "mean counts of a request", ["A", "B", "A − B [95 % interval]", "B again − B"])?;
        for row in &self.counts {
            row_line(f, row)?;
        }
        match (&self.no_calls, self.calls.is_empty()) {
            (Some(why), _) => writeln!(f, "system calls are not counted: {why}")?,
            (None, true) => writeln!(f, "system calls were not counted")?,
            (None, false) => line(f, "system calls, traced in a pass of their own", [""; 4])?,
        }
        for row in &self.calls {
            row_line(f, &SplitRow { name: format!("  {}", row.name), ..row.clone() })?;
        }
        writeln!(f)?;
        line(f, "events of a trial", ["A", "B", "", ""])?;
        for row in &self.events {
            row_line(f, &SplitRow { difference: None, noise: None, ..row.clone() })?;
        }
        writeln!(
            f,
            "\nWaiting is the mean latency less the server's CPU time: queues, sleep, network and client.\n\
             Counts stand beside times; no time is attributed to a count."
        )?;
        for why in &self.failures {
            writeln!(f, "failed: {why}")?;
        }
        Ok(())
    }
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, [a, b, difference, noise]: [&str; 4]) -> fmt::Result {
    let text = format!("{name:<24} {a:>9} {b:>9}  {difference:<28} {noise}");
    writeln!(f, "{}", text.trim_end())
}

fn row_line(f: &mut fmt::Formatter<'_>, row: &SplitRow) -> fmt::Result {
    let value = |value: Option<f64>| value.map_or("-".to_owned(), show_number);
    let shown = |difference: &Option<Difference>| difference.map(|found| show(&found)).unwrap_or_default();
    let mut text = shown(&row.difference);
    if row.difference.is_some_and(|difference| !difference.may_be_zero()) {
        let _ = write!(text, " *");
    }
    line(f, &row.name, [&value(row.a), &value(row.b), &text, &shown(&row.noise)])
}

/// A difference with its sign and interval.
fn show(difference: &Difference) -> String {
    let signed = |value: f64| format!("{}{}", if value >= 0.0 { "+" } else { "" }, show_number(value));
    format!("{} [{}, {}]", signed(difference.mean), signed(difference.low), signed(difference.high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::subject::Workload;
    use crate::machine::environment::LabEnvironment;
    use crate::plan::Wishes;
    use crate::studies::words;

    fn plan() -> RunPlan {
        let cell = |text| words::cell(text, &Workload::default()).expect("legal");
        let all = experiments(&cell("epoll"), &cell("uring --send copy"));
        RunPlan::new(all, &Wishes::default(), &LabEnvironment::default())
    }

    fn trial(experiment: &str, cell: &str, block: usize, control: bool) -> Trial {
        // The noise of a block cancels within it.
        let noise = [0.0, 4.0, -3.0, 1.0, 2.0, -2.0, 3.0, -1.0][block];
        let wobble = f64::from(u8::try_from(block % 3).expect("small")) * 0.01;
        let (user, system, waiting) = if cell == "A" { (5.0, 20.0, 60.0) } else { (5.0, 12.0, 61.0) };
        let values = BTreeMap::from([
            (Measure::User, user + wobble),
            (Measure::System, system + noise + wobble),
            (Measure::Waiting, waiting + noise * 2.0),
            (Measure::Latency, user + system + waiting + 3.0 * noise + 2.0 * wobble),
            (Measure::Switches, 2.0),
            (Measure::Overflows, 7.0),
        ]);
        let calls = match experiment {
            CALLS => BTreeMap::from([("recvfrom".to_owned(), 2.0), ("epoll_ctl".to_owned(), 0.0001)]),
            _ => BTreeMap::new(),
        };
        let (experiment, cell) = (experiment.to_owned(), cell.to_owned());
        Trial { experiment, cell, block, control, values, calls, ..Trial::default() }
    }

    #[test]
    fn a_difference_is_split_and_noise_of_blocks_cancels() {
        let mut trials = Vec::new();
        for block in 0..8 {
            trials.extend(
                [("A", false), ("B", false), ("B", true)].map(|(c, again)| trial(TIMES, c, block, again)),
            );
        }
        trials.extend(["A", "B"].map(|cell| trial(CALLS, cell, 0, false)));
        let split = Split::of(&plan(), &trials);
        // With eight blocks, the medians of A and B differ by another number than the mean difference.
        for row in split.parts.iter().chain(&split.counts) {
            let (Some(a), Some(b), Some(difference)) = (row.a, row.b, row.difference) else { continue };
            assert!((a - b - difference.mean).abs() < 1e-6, "{row:?}");
        }
        let part = |name: &str| split.parts.iter().find(|row| row.name == name).expect(name).difference;
        let system = part("system").expect("eight blocks");
        assert!((system.mean - 8.0).abs() < 1e-6 && !system.may_be_zero(), "{system:?}");
        assert!(part("user").expect("eight blocks").may_be_zero());
        let sum: f64 =
            ["user", "system", "waiting"].iter().filter_map(|name| part(name)).map(|d| d.mean).sum();
        assert!((sum - part("latency").expect("eight blocks").mean).abs() < 1e-6, "the parts are the whole");
        let calls: Vec<&str> = split.calls.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(calls, ["recvfrom"], "rare calls are left out");
        let text = split.to_string();
        assert!(text.lines().any(|line| line.starts_with("system ") && line.contains('*')), "{text}");
        for expected in ["A: epoll\nB: uring --send copy", "ListenOverflows", "  recvfrom"] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn failures_and_a_missing_tracer_are_named() {
        let mut plan = plan();
        plan.experiments[1].cells.clear();
        plan.experiments[1].untestable.insert(0, "it needs strace, which is not installed".to_owned());
        let mut failed: Vec<Trial> =
            [("A", false), ("B", false), ("B", true)].map(|(c, again)| trial(TIMES, c, 0, again)).into();
        failed[0].failed = Some("the server did not start".to_owned());
        let text = Split::of(&plan, &failed).to_string();
        assert!(text.contains("failed: A: the server did not start"), "{text}");
        assert!(text.contains("not counted: it needs strace"), "{text}");
    }
}
