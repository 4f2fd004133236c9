//! The numbers of a run: rates, latencies, and the reasons to doubt them.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::measure::histogram::{self, Counts};
use crate::measure::record::{ConnectionStats, ErrorKind};
use crate::measure::statistics::Estimate;
use crate::plan::io::ChosenIo;
use crate::report::environment::Environment;

/// All runs of a plan.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LoadReport {
    /// What was asked for, of whom.
    pub urls: Vec<String>,
    /// The plan in a line.
    pub plan: String,
    /// Every setting of the plan by its flag; empty in reports of older versions.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// How connections did I/O.
    #[serde(default)]
    pub io: ChosenIo,
    /// Where.
    pub environment: Environment,
    /// One after the other.
    pub runs: Vec<RunSummary>,
}

impl LoadReport {
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
pub struct WarmUpCut {
    /// Seconds.
    pub seconds: f64,
    /// By which rule.
    pub rule: String,
    /// Answers that came in it.
    pub answers: u64,
}

/// LittlesLaw's law: what is in flight on average is the rate times the time that each takes.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct LittlesLaw {
    /// In flight on average, counted.
    pub counted: f64,
    /// By the rate and the latencies of what was answered.
    pub answered: f64,
    /// By the time of what failed or was never answered.
    pub lost: f64,
}

impl LittlesLaw {
    /// How far the two are apart, as a part of what was counted.
    pub fn error(&self) -> f64 {
        if self.counted > 0.0 { (self.counted - self.answered - self.lost).abs() / self.counted } else { 0.0 }
    }
}

/// What the generator itself needed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Generator {
    /// Processor time of the busiest thread as a part of the time that went by.
    pub busiest: f64,
    /// The same of all threads on average.
    pub average: f64,
    /// Processor microseconds for each answer.
    pub per_answer_us: f64,
    /// How late the generator sent requests for which a connection was free, in microseconds; only with a schedule.
    /// Their latencies contain this delay.
    pub delay_us: Option<Distribution>,
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
pub struct RunSummary {
    /// Seconds that it took.
    pub elapsed: f64,
    /// Seconds that were measured.
    pub measured: f64,
    /// What was left out of them.
    pub warm_up: WarmUpCut,
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
    pub connections: ConnectionStats,
    /// Jain's index over the answers of each connection.
    pub fairness: Option<f64>,
    /// Requests without an answer at the end.
    pub unfinished: u64,
    /// Seconds that the one of those waited that waited longest.
    pub longest_wait: f64,
    /// A check of all these numbers.
    pub little: LittlesLaw,
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

impl RunSummary {
    /// Errors of all kinds.
    pub fn errors(&self) -> u64 {
        self.errors.values().sum()
    }
}
