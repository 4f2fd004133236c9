//! Metrics of a run by name, for assertions, CSV and comparisons.

use crate::measure::record::ErrorKind;
use crate::report::summary::{Distribution, PERCENTILES, RunSummary};

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricUnit {
    /// Microseconds.
    Time,
    /// A count or a ratio.
    Number,
}

/// A distribution: the prefix of its metrics, its label in text, indented if the first latency contains it, and
/// its value.
type Latencies = (&'static str, &'static str, fn(&RunSummary) -> Option<&Distribution>);

pub(crate) const LATENCIES: [Latencies; 5] = [
    ("", "latency", |summary| summary.latency_us.as_ref()),
    ("uncorrected.", "  from sending", |summary| summary.uncorrected_us.as_ref()),
    ("first_byte.", "  first byte", |summary| summary.first_byte_us.as_ref()),
    ("connect.", "  connect", |summary| summary.connect_us.as_ref()),
    ("handshake.", "  handshake", |summary| summary.handshake_us.as_ref()),
];

/// The name of a metric, and its value in a summary.
type PlainMetric = (&'static str, fn(&RunSummary) -> Option<f64>);

const PLAIN: [PlainMetric; 16] = [
    ("answers", |summary| Some(summary.answers as f64)),
    ("rate", |summary| Some(summary.rate)),
    ("bytes", |summary| Some(summary.bytes as f64)),
    ("bytes_per_second", |summary| Some(summary.bytes as f64 / summary.measured)),
    ("errors", |summary| Some(summary.errors() as f64)),
    ("never_answered", |summary| Some(summary.connections.never_answered as f64)),
    ("connections", |summary| Some(summary.connections.made as f64)),
    ("most_at_once", |summary| Some(summary.connections.most_at_once as f64)),
    ("handshakes_full", |summary| summary.tls.as_ref().map(|tls| tls.full as f64)),
    ("handshakes_resumed", |summary| summary.tls.as_ref().map(|tls| tls.resumed as f64)),
    ("truncated", |summary| summary.tls.as_ref().map(|tls| tls.truncated as f64)),
    ("unfinished", |summary| Some(summary.unfinished as f64)),
    ("fairness", |summary| summary.fairness),
    ("in_flight", |summary| Some(summary.little.counted)),
    ("generator_cpu", |summary| Some(summary.generator.busiest)),
    ("generator_us", |summary| summary.generator.per_answer_us),
];

/// The names of all metrics.
pub fn names() -> Vec<String> {
    let mut all: Vec<String> = PLAIN.iter().map(|(name, _)| (*name).to_owned()).collect();
    all.extend(ErrorKind::ALL.iter().map(|kind| format!("errors.{}", kind.name())));
    for (prefix, ..) in LATENCIES {
        let parts = ["min", "mean", "max"].into_iter().chain(PERCENTILES.map(|(name, _)| name));
        all.extend(parts.map(|part| format!("{prefix}{part}")));
    }
    all
}

/// The unit of the metric `name`, if there is such a metric.
pub fn unit(name: &str) -> Option<MetricUnit> {
    let known = names().iter().any(|known| known == name);
    let plain = PLAIN.iter().any(|(plain, _)| *plain == name) || name.starts_with("errors.");
    known.then_some(if plain { MetricUnit::Number } else { MetricUnit::Time })
}

/// The number of samples that the percentile `name` needs; `None` for other metrics.
pub fn fewest_samples(name: &str) -> Option<f64> {
    let (prefix, ..) = LATENCIES.iter().rev().find(|(prefix, ..)| name.starts_with(prefix))?;
    let (_, at) = PERCENTILES.iter().find(|(known, _)| *known == &name[prefix.len()..])?;
    Some(10.0 / (1.0 - at / 100.0))
}

/// The value of the metric `name`, times in microseconds; `None` if the run lacks it.
pub fn value(summary: &RunSummary, name: &str) -> Option<f64> {
    if let Some((_, find)) = PLAIN.iter().find(|(plain, _)| *plain == name) {
        return find(summary);
    }
    if let Some(kind) = name.strip_prefix("errors.") {
        let kind = ErrorKind::ALL.iter().find(|known| known.name() == kind)?;
        return Some(summary.errors.get(kind).copied().unwrap_or(0) as f64);
    }
    let (prefix, _, find) = LATENCIES.iter().rev().find(|(prefix, ..)| name.starts_with(prefix))?;
    let distribution = find(summary)?;
    match &name[prefix.len()..] {
        "min" => Some(distribution.min),
        "mean" => Some(distribution.mean),
        "max" => Some(distribution.max),
        part => distribution.percentile(part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::record::TlsStats;
    use crate::report::summary::Generator;

    #[test]
    fn every_metric_has_a_unit_and_a_value() {
        let latency = Distribution::of_times(1_000_000..1_200_000);
        let summary = RunSummary {
            latency_us: latency.clone(),
            uncorrected_us: latency.clone(),
            first_byte_us: latency.clone(),
            connect_us: latency.clone(),
            handshake_us: latency,
            tls: Some(TlsStats::default()),
            fairness: Some(1.0),
            generator: Generator { per_answer_us: Some(1.0), ..Generator::default() },
            measured: 1.0,
            ..RunSummary::default()
        };
        for name in names() {
            assert!(unit(&name).is_some() && value(&summary, &name).is_some(), "{name}");
        }
        assert_eq!(unit("p98"), None);
        assert_eq!(unit("p99"), Some(MetricUnit::Time));
        assert_eq!(value(&RunSummary::default(), "p99"), None);
        assert_eq!(value(&RunSummary::default(), "generator_us"), None);
    }
}
