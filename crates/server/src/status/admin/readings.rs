//! The readings of the last minutes, from which the page draws its charts. Each report that the process requests for a
//! client can be a reading: with a scrape every 15 s, the charts have a past when the page opens.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::status::latency::Histogram;
use crate::status::report::StatusReport;

/// The least time between two readings. The page requests a report every 2 s.
const APART: Duration = Duration::from_millis(1800);
/// The age of the oldest reading.
pub(super) const SPAN: Duration = Duration::from_secs(300);
/// The most readings.
const MOST: usize = 170;

/// Readings in the order of their times.
#[derive(Debug, Default)]
pub(super) struct Readings(VecDeque<Reading>);

#[derive(Debug)]
struct Reading {
    at: Instant,
    requests: u64,
    bytes: u64,
    times: Histogram,
}

/// The rates between two readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    /// The age of the later reading.
    pub(super) ago: Duration,
    /// Answered requests per second.
    pub(super) requests: f64,
    /// Bytes per second.
    pub(super) bytes: f64,
    /// Quantiles of the latency, in seconds; `None` without responses.
    pub(super) median: Option<f64>,
    pub(super) p99: Option<f64>,
}

impl Readings {
    /// Takes a reading, unless the last one is recent, and removes old ones.
    pub(super) fn note(&mut self, report: &StatusReport, at: Instant) {
        let is_recent = |last: &Reading| at.saturating_duration_since(last.at) < APART;
        if self.0.back().is_some_and(is_recent) {
            return;
        }
        let times = report.observed.as_ref().map(|observed| observed.last_byte.clone()).unwrap_or_default();
        let (requests, bytes) = (report.total.requests, report.total.bytes);
        self.0.push_back(Reading { at, requests, bytes, times });
        while self.0.len() > MOST
            || self.0.front().is_some_and(|first| at.saturating_duration_since(first.at) > SPAN)
        {
            self.0.pop_front();
        }
    }

    /// The rates between all readings.
    pub(super) fn intervals(&self, now: Instant) -> Vec<Interval> {
        let between = |(then, since): (&Reading, &Reading)| {
            let seconds = since.at.saturating_duration_since(then.at).as_secs_f64().max(f64::MIN_POSITIVE);
            let rate = |then: u64, now: u64| now.saturating_sub(then) as f64 / seconds;
            let times = since.times.since(&then.times);
            Interval {
                ago: now.saturating_duration_since(since.at),
                requests: rate(then.requests, since.requests),
                bytes: rate(then.bytes, since.bytes),
                median: times.quantile(0.5),
                p99: times.quantile(0.99),
            }
        };
        self.0.iter().zip(self.0.iter().skip(1)).map(between).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::report::tests::report;

    #[test]
    fn readings_are_apart_bounded_and_make_rates() {
        let start = Instant::now();
        let mut readings = Readings::default();
        let mut report = report();
        let mut note = |readings: &mut Readings, second: f64, requests: u64| {
            (report.total.requests, report.total.bytes) = (requests, requests * 10);
            readings.note(&report, start + Duration::from_secs_f64(second));
        };
        note(&mut readings, 0.0, 100);
        note(&mut readings, 1.0, 150);
        note(&mut readings, 2.0, 300);
        // The counters began again.
        note(&mut readings, 12.0, 5);
        let found = readings.intervals(start + Duration::from_secs(13));
        let seconds = |seconds| Duration::from_secs(seconds);
        let interval = Interval { ago: seconds(11), requests: 100.0, bytes: 1000.0, median: None, p99: None };
        assert_eq!(found, [interval, Interval { ago: seconds(1), requests: 0.0, bytes: 0.0, ..interval }]);
        (10..400).for_each(|number| note(&mut readings, f64::from(number) * 2.0, 5));
        assert!(readings.0.len() <= MOST, "{}", readings.0.len());
        let oldest = readings.intervals(start + Duration::from_secs(798)).first().map(|first| first.ago);
        assert!(oldest.is_some_and(|oldest| oldest < SPAN && oldest > SPAN / 2), "{oldest:?}");
        note(&mut readings, 10_000.0, 5);
        assert_eq!(readings.intervals(start + Duration::from_secs(10_000)), []);
    }
}
