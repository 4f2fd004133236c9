//! The results of a run as data.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::measure::histogram::{self, Counts};
use crate::measure::record::{ConnectionStats, ErrorKind, Http2Stats, TlsStats};
use crate::measure::statistics::estimate::Estimate;
use crate::plan::io::ChosenIo;
use crate::report::environment::Environment;

/// The results of all runs of a plan.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LoadReport {
    /// The name that the user gave to the measurement.
    #[serde(default)]
    pub label: Option<String>,
    /// The requested URLs.
    pub urls: Vec<String>,
    /// The plan in one line.
    pub plan: String,
    /// Every setting of the plan by its flag.
    pub settings: BTreeMap<String, String>,
    /// The I/O of the connections, and the reason for it.
    pub io: ChosenIo,
    /// The environment of the measurement.
    pub environment: Environment,
    /// The environments of agents, if other machines made the load.
    #[serde(default)]
    pub agents: Vec<AgentEnvironment>,
    /// The runs in order.
    pub runs: Vec<RunSummary>,
}

/// The environment of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentEnvironment {
    /// Its name.
    pub name: String,
    /// The machine and the versions.
    pub environment: Environment,
    /// The I/O of its connections, and the reason for it.
    pub io: ChosenIo,
}

impl LoadReport {
    /// The reasons why other programs spoil the measurement on a machine that made load.
    pub fn crowded(&self) -> Vec<String> {
        let on = |agent: &AgentEnvironment| Some(format!("{}: {}", agent.name, agent.environment.crowded()?));
        match self.agents.is_empty() {
            true => self.environment.crowded().into_iter().collect(),
            false => self.agents.iter().filter_map(on).collect(),
        }
    }

    /// Whether a run was interrupted.
    pub fn interrupted(&self) -> bool {
        self.runs.iter().any(|run| run.interrupted)
    }

    /// The reasons why the numbers are invalid; empty if they are valid.
    pub fn invalid(&self) -> Vec<String> {
        let of_runs = self.runs.iter().flat_map(|run| run.invalid.clone());
        let mut all: Vec<String> = self.crowded().into_iter().chain(of_runs).collect();
        all.dedup();
        all
    }
}

/// A distribution of latencies in microseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Distribution {
    /// The number of samples.
    pub count: u64,
    /// The minimum.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub deviation: f64,
    /// The maximum.
    pub max: f64,
    /// Percentiles by name, such as `p50` or `p99.9`, if there are enough samples.
    pub percentiles: BTreeMap<String, f64>,
    /// All samples.
    #[serde(skip)]
    pub counts: Counts,
}

/// The reported percentiles.
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
    /// The distribution of `counts`, unless they are empty.
    pub fn of(counts: Counts) -> Option<Distribution> {
        let mut all = histogram::new();
        counts.pour(&mut all);
        if all.is_empty() {
            return None;
        }
        let carried = PERCENTILES.iter().filter(|(_, at)| histogram::suffices(all.len(), *at));
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

    /// The distribution of these times in nanoseconds.
    #[cfg(test)]
    pub(crate) fn of_times(times: impl IntoIterator<Item = u64>) -> Option<Distribution> {
        let mut histogram = histogram::new();
        times.into_iter().for_each(|time| histogram.saturating_record(time));
        Distribution::of(Counts::take(&mut histogram))
    }

    /// A percentile, if there are enough samples.
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

/// The warm-up that the numbers leave out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WarmUpCut {
    /// Its length in seconds.
    pub seconds: f64,
    /// The rule that determined it.
    pub rule: String,
    /// Correct responses during the warm-up.
    pub answers: u64,
}

/// Little's law: the mean number of requests in flight is the rate times the mean latency.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct LittlesLaw {
    /// The mean number of requests in flight, counted.
    pub counted: f64,
    /// The rate times the mean latency of correct responses.
    pub answered: f64,
    /// The mean number of failed and unfinished requests in flight.
    pub lost: f64,
}

impl LittlesLaw {
    /// The relative difference between the counted number and the sum of the others.
    pub fn error(&self) -> f64 {
        if self.counted > 0.0 { (self.counted - self.answered - self.lost).abs() / self.counted } else { 0.0 }
    }
}

/// The resources that the generator used.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Generator {
    /// Processor time of the busiest thread, relative to the elapsed time.
    pub busiest: f64,
    /// The mean of this share over all threads.
    pub average: f64,
    /// Processor time per response in microseconds; `None` without a response.
    pub per_answer_us: Option<f64>,
    /// With a schedule, the generator's own delay in microseconds: from the due time of a request with a free
    /// connection to its start. Latencies contain this delay.
    pub delay_us: Option<Distribution>,
}

/// The rates of a schedule.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Schedule {
    /// Requests due per second.
    pub asked: f64,
    /// Requests sent per second before the end.
    pub sent: f64,
    /// Correct responses per second before the end.
    pub answered: f64,
}

/// A tenth of a run.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Batch {
    /// Correct responses per second.
    pub rate: f64,
}

/// The results of one run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunSummary {
    /// The duration in seconds.
    pub elapsed: f64,
    /// The measured time in seconds.
    pub measured: f64,
    /// The warm-up, which the numbers leave out.
    pub warm_up: WarmUpCut,
    /// Correct responses in the measured time.
    pub answers: u64,
    /// Correct responses per second.
    pub rate: f64,
    /// The interval of the rate, over ten parts of the run.
    pub rate_interval: Option<Estimate>,
    /// Bytes received in the measured time.
    pub bytes: u64,
    /// Times from the due time of a request to the end of its response.
    pub latency_us: Option<Distribution>,
    /// Times from sending a request to the end of its response, as a closed loop reports them.
    pub uncorrected_us: Option<Distribution>,
    /// Times from sending a request to the first byte of its response.
    pub first_byte_us: Option<Distribution>,
    /// Times from the connect call to the established connection.
    pub connect_us: Option<Distribution>,
    /// Times from the established connection to the end of the TLS handshake.
    pub handshake_us: Option<Distribution>,
    /// Counts of TLS; `None` without an `https` URL.
    pub tls: Option<TlsStats>,
    /// Counts of HTTP/2; `None` with HTTP/1.
    pub http2: Option<Http2Stats>,
    /// Errors of the whole run by kind.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// The message of the first error of each kind.
    pub examples: BTreeMap<ErrorKind, String>,
    /// Responses of the whole run by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Counts of connections.
    pub connections: ConnectionStats,
    /// Jain's index over the responses of each connection.
    pub fairness: Option<f64>,
    /// Requests without a response at the end.
    pub unfinished: u64,
    /// The longest wait of an unfinished request in seconds.
    pub longest_wait: f64,
    /// The check of the measurement by Little's law.
    pub little: LittlesLaw,
    /// The resources that the generator used.
    pub generator: Generator,
    /// The rates of the schedule, if there is one.
    pub schedule: Option<Schedule>,
    /// The tenths of the run.
    pub batches: Vec<Batch>,
    /// The reasons why the numbers are invalid.
    pub invalid: Vec<String>,
    /// Remarks for the interpretation of the numbers.
    pub notes: Vec<String>,
    /// Whether the run was interrupted.
    pub interrupted: bool,
    /// The parts of agents, if other machines made the load.
    #[serde(default)]
    pub agents: Vec<AgentSummary>,
}

/// The part of an agent in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentSummary {
    /// Its name.
    pub name: String,
    /// The seed of its random choices.
    pub seed: u64,
    /// Correct responses in the measured time.
    pub answers: u64,
    /// Correct responses per second.
    pub rate: f64,
    /// The 99th percentile of its latencies in microseconds, if it has enough responses.
    pub p99_us: Option<f64>,
    /// Processor time of its busiest thread, relative to the elapsed time.
    pub busiest: f64,
    /// With a schedule, the longest own delay in microseconds.
    pub delay_us: Option<f64>,
    /// The number of errors of all kinds.
    pub errors: u64,
    /// Milliseconds from the begin of the first agent to its begin.
    pub late_ms: f64,
    /// Milliseconds of the shortest round trip to it. `late_ms` is exact to half of it.
    pub round_trip_ms: f64,
    /// The reason why it was a limit of the measurement, if it was.
    pub limit: Option<String>,
    /// The reason why its part is lost, if it is.
    pub lost: Option<String>,
    /// The last lines that it wrote to standard error.
    pub written: Vec<String>,
}

impl RunSummary {
    /// The number of errors of all kinds.
    pub fn errors(&self) -> u64 {
        self.errors.values().sum()
    }
}
