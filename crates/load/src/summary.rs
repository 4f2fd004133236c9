//! What follows from a record: rates, latencies, and what there is to doubt about them.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::histogram::{self, Counts};
use crate::plan::{Length, Plan, WarmUp};
use crate::record::{Connections, ErrorKind, Record, Slice};
use crate::share::nanoseconds;
use crate::statistics::{self, Estimate};
use crate::way::Chosen;
use crate::{validity, warmup};

/// All runs of a plan.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// What was asked for, of whom.
    pub urls: Vec<String>,
    /// The plan in a line.
    pub plan: String,
    /// How connections did I/O.
    #[serde(default)]
    pub io: Chosen,
    /// Where.
    pub environment: Environment,
    /// One after the other.
    pub runs: Vec<Summary>,
}

impl Report {
    /// Whether somebody interrupted it.
    pub fn interrupted(&self) -> bool {
        self.runs.iter().any(|run| run.interrupted)
    }

    /// Why its numbers are not to be used; empty where they are.
    pub fn invalid(&self) -> Vec<String> {
        let mut all: Vec<String> = self.runs.iter().flat_map(|run| run.invalid.clone()).collect();
        all.dedup();
        all
    }
}

/// Latencies, in microseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Distribution {
    /// How many there are.
    pub count: u64,
    /// The shortest.
    pub min: f64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
    /// The longest.
    pub max: f64,
    /// By name, as far as the samples carry: `p50`, `p99.9`.
    pub percentiles: BTreeMap<String, f64>,
    /// All of them.
    #[serde(skip)]
    pub counts: Counts,
}

/// Percentiles that are shown, where samples carry them.
pub const PERCENTILES: [(&str, f64); 7] = [
    ("p50", 50.0),
    ("p75", 75.0),
    ("p90", 90.0),
    ("p95", 95.0),
    ("p99", 99.0),
    ("p99.9", 99.9),
    ("p99.99", 99.99),
];

impl Distribution {
    /// Of what is in `counts`; none where that is nothing.
    pub fn of(counts: Counts) -> Option<Distribution> {
        let mut all = histogram::new();
        counts.pour(&mut all);
        if all.is_empty() {
            return None;
        }
        let carried = PERCENTILES.iter().filter(|(_, at)| histogram::carries(all.len(), *at));
        Some(Distribution {
            count: all.len(),
            min: microseconds(all.min()),
            mean: all.mean() / 1e3,
            deviation: all.stdev() / 1e3,
            max: microseconds(all.max()),
            percentiles: carried.map(|(name, at)| ((*name).to_owned(), value(&all, *at))).collect(),
            counts,
        })
    }

    /// A percentile, where samples carry it.
    pub fn percentile(&self, name: &str) -> Option<f64> {
        self.percentiles.get(name).copied()
    }
}

fn microseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e3
}

fn value(histogram: &Histogram<u64>, percentile: f64) -> f64 {
    microseconds(histogram.value_at_percentile(percentile))
}

/// What was cut from the begin.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Cut {
    /// Seconds.
    pub seconds: f64,
    /// By which rule.
    pub rule: String,
    /// Answers that came in it.
    pub answers: u64,
}

/// Little's law: what is in flight on average is the rate times the time that each takes.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Little {
    /// In flight on average, counted.
    pub counted: f64,
    /// By the rate and the latencies of what was answered.
    pub answered: f64,
    /// By the time of what failed or was never answered.
    pub lost: f64,
}

impl Little {
    /// How far the two are apart, as a part of what was counted.
    pub fn error(&self) -> f64 {
        if self.counted > 0.0 { (self.counted - self.answered - self.lost).abs() / self.counted } else { 0.0 }
    }
}

/// What the generator itself needed.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Generator {
    /// Processor time of the busiest thread as a part of the time that went by.
    pub busiest: f64,
    /// The same of all threads on average.
    pub average: f64,
    /// Processor microseconds for each answer.
    pub per_answer_us: f64,
    /// How late the generator was with requests for which a connection was free, at the 99th percentile, in
    /// microseconds; only by a schedule.
    pub lag_us: Option<f64>,
}

/// What a schedule asked for, and what became of it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Schedule {
    /// Per second, that were due.
    pub asked: f64,
    /// Per second, that were sent while they were due.
    pub sent: f64,
    /// Per second, that were answered in that time.
    pub answered: f64,
}

/// A tenth of a run: what intervals within a run are made of.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Batch {
    /// Answers per second.
    pub rate: f64,
    /// Mean latency in microseconds.
    pub mean: Option<f64>,
    /// Median in microseconds.
    pub p50: Option<f64>,
    /// 99th percentile in microseconds, where samples carry it.
    pub p99: Option<f64>,
}

/// What a run showed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Seconds that it took.
    pub elapsed: f64,
    /// Seconds that were measured.
    pub measured: f64,
    /// What was left out of them.
    pub warm_up: Cut,
    /// Right answers in the measured time.
    pub answers: u64,
    /// Right answers per second.
    pub rate: f64,
    /// Its interval, over ten parts of the run.
    pub rate_interval: Option<Estimate>,
    /// Bytes received in the measured time.
    pub bytes: u64,
    /// From when a request was due to the end of its answer.
    pub latency_us: Option<Distribution>,
    /// From when it was sent: what a tool shows that waits for the server before it asks again.
    pub uncorrected_us: Option<Distribution>,
    /// From when it was sent to the first byte of the answer.
    pub first_byte_us: Option<Distribution>,
    /// From the connect to the connection.
    pub connect_us: Option<Distribution>,
    /// What went wrong in the whole run, by kind.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// What was said of the first of each kind.
    pub examples: BTreeMap<ErrorKind, String>,
    /// About connections.
    pub connections: Connections,
    /// Jain's index over the answers of each connection.
    pub fairness: Option<f64>,
    /// Requests without an answer at the end.
    pub unfinished: u64,
    /// Seconds that the one of those waited that waited longest.
    pub longest_wait: f64,
    /// A check of all these numbers.
    pub little: Little,
    /// What the generator needed.
    pub generator: Generator,
    /// Of requests by a schedule.
    pub schedule: Option<Schedule>,
    /// Tenths of it.
    pub batches: Vec<Batch>,
    /// Why its numbers are not to be used.
    pub invalid: Vec<String>,
    /// What has to be known with them.
    pub notes: Vec<String>,
    /// Whether somebody interrupted it.
    pub interrupted: bool,
}

impl Summary {
    /// Errors of all kinds.
    pub fn errors(&self) -> u64 {
        self.errors.values().sum()
    }

    /// What follows from `record`.
    pub fn new(plan: &Plan, record: &Record) -> Summary {
        let length = record.slice_length.max(1);
        // Requests are made until then; what comes later are answers to them.
        let end = match plan.length {
            Length::For(time) => nanoseconds(time).min(record.elapsed),
            Length::Requests(_) => record.elapsed,
        };
        let within = usize::try_from(end.div_ceil(length)).unwrap_or(usize::MAX).min(record.slices.len());
        let cut = cut(plan, record, within);
        let window = (end.saturating_sub(cut.slices as u64 * length)).max(1) as f64 / 1e9;
        let answers: u64 = record.slices[cut.slices..within].iter().map(|slice| slice.answers).sum();
        let kept = &record.slices[cut.slices..];
        let whole = sum(kept, |slice| &slice.service);
        let batches = batches(&record.slices[cut.slices..within], length, window);
        let rates: Vec<f64> = batches.iter().map(|batch| batch.rate).collect();
        let mut summary = Summary {
            elapsed: record.elapsed as f64 / 1e9,
            measured: window,
            answers,
            rate: answers as f64 / window,
            // Parts of a ramp differ because they have to.
            rate_interval: statistics::mean(&rates).filter(|_| {
                ![plan.rate, plan.connection_rate].into_iter().flatten().any(|rate| rate.is_ramp())
            }),
            bytes: record.slices[cut.slices..within].iter().map(|slice| slice.bytes).sum(),
            latency_us: Distribution::of(sum(kept, |slice| &slice.latency)),
            uncorrected_us: Distribution::of(whole),
            first_byte_us: Distribution::of(sum(kept, |slice| &slice.first_byte)),
            connect_us: Distribution::of(joined(&record.slices, |slice| &slice.connect)),
            errors: record.errors.clone(),
            examples: record.examples.clone(),
            connections: record.connections.clone(),
            fairness: record.connections.shares.jain(),
            unfinished: record.unfinished,
            longest_wait: record.longest_wait as f64 / 1e9,
            little: little(record),
            generator: generator(record),
            schedule: plan.rate.map(|_| schedule(record, end, within)),
            batches,
            interrupted: record.interrupted,
            warm_up: cut.shown,
            ..Summary::default()
        };
        validity::judge(plan, &mut summary);
        summary
    }
}

struct CutSlices {
    slices: usize,
    shown: Cut,
}

fn cut(plan: &Plan, record: &Record, within: usize) -> CutSlices {
    let done: Vec<u64> = record.slices[..within].iter().map(|slice| slice.answers).collect();
    let (slices, rule) = match plan.warm_up {
        WarmUp::Nothing => (0, "nothing is cut, as asked"),
        WarmUp::For(time) => {
            let slices = nanoseconds(time).div_ceil(record.slice_length.max(1));
            // A run that was interrupted before that keeps what there is.
            (usize::try_from(slices).unwrap_or(usize::MAX).min(within.saturating_sub(1)), "as long as asked")
        }
        WarmUp::Rule if plan.rate.is_some() || plan.hold.is_some() => (0, "nothing is cut from a schedule"),
        WarmUp::Rule if matches!(plan.length, Length::Requests(_)) => {
            (0, "nothing is cut from a number of requests")
        }
        WarmUp::Rule => (warmup::cut(&done), "MSER-5, a quarter of the run at most"),
    };
    let seconds = (slices as u64 * record.slice_length) as f64 / 1e9;
    CutSlices { slices, shown: Cut { seconds, rule: rule.to_owned(), answers: done[..slices].iter().sum() } }
}

/// Of several slices, what a field has and what all fields have in common.
fn sum(slices: &[Slice], field: impl Fn(&Slice) -> &Counts) -> Counts {
    let mut all = joined(slices, field);
    all.add(&joined(slices, |slice| &slice.same));
    all
}

/// One histogram of all is much quicker than adding up one by one.
fn joined(slices: &[Slice], field: impl Fn(&Slice) -> &Counts) -> Counts {
    let mut all = histogram::new();
    slices.iter().for_each(|slice| field(slice).pour(&mut all));
    Counts::take(&mut all)
}

fn batches(slices: &[Slice], length: u64, window: f64) -> Vec<Batch> {
    const BATCHES: usize = 10;
    let each = (slices.len() / BATCHES).max(1);
    let whole = (window * 1e9 / length as f64) as usize;
    // The last slice of a run of a number of requests is not whole.
    let slices = &slices[..slices.len().min(whole)];
    let batch = |part: &[Slice]| {
        let latency = Distribution::of(sum(part, |slice| &slice.latency));
        let answers: u64 = part.iter().map(|slice| slice.answers).sum();
        Batch {
            rate: answers as f64 / (part.len() as u64 * length) as f64 * 1e9,
            mean: latency.as_ref().map(|latency| latency.mean),
            p50: latency.as_ref().and_then(|latency| latency.percentile("p50")),
            p99: latency.as_ref().and_then(|latency| latency.percentile("p99")),
        }
    };
    slices.chunks_exact(each).take(BATCHES).map(batch).collect()
}

fn little(record: &Record) -> Little {
    let service = sum(&record.slices, |slice| &slice.service);
    let mut all = histogram::new();
    service.pour(&mut all);
    let elapsed = record.elapsed.max(1) as f64;
    Little {
        counted: record.area as f64 / elapsed,
        answered: all.mean() * all.len() as f64 / elapsed,
        lost: record.lost_time as f64 / elapsed,
    }
}

fn generator(record: &Record) -> Generator {
    let shares: Vec<f64> =
        record.efforts.iter().map(|one| one.used as f64 / one.passed.max(1) as f64).collect();
    let used: u64 = record.efforts.iter().map(|one| one.used).sum();
    let answers: u64 = record.slices.iter().map(|slice| slice.answers).sum();
    let lag = Distribution::of(record.lag.clone());
    Generator {
        busiest: shares.iter().copied().fold(0.0, f64::max),
        average: shares.iter().sum::<f64>() / shares.len().max(1) as f64,
        per_answer_us: used as f64 / 1e3 / answers.max(1) as f64,
        lag_us: lag.map(|lag| lag.percentile("p99").unwrap_or(lag.max)),
    }
}

fn schedule(record: &Record, end: u64, within: usize) -> Schedule {
    let seconds = end.max(1) as f64 / 1e9;
    let per_second = |count: u64| count as f64 / seconds;
    Schedule {
        asked: per_second(record.due),
        sent: per_second(record.slices[..within].iter().map(|slice| slice.sent).sum()),
        answered: per_second(record.slices[..within].iter().map(|slice| slice.answers).sum()),
    }
}
