//! Requests by method and class of status, and histograms of latency. Workers count these only for an admin listener.
//! The words follow the counters in a worker's row.
//!
//! A histogram is log-linear: each power of two has [`PARTS`] buckets of equal width. Counting needs no division and no
//! system call. A quantile is exact to a quarter of its value.

use serde::{Deserialize, Serialize};
use tenfold_http::Method;

/// Buckets of each power of two.
const PARTS: usize = 4;
/// Latencies below this power of two, in nanoseconds, are in the first bucket.
const FIRST_POWER: usize = 10;
/// Latencies from this power of two on, in nanoseconds, are in the last bucket: 137 s.
const LAST_POWER: usize = 37;
const BUCKETS: usize = (LAST_POWER - FIRST_POWER) * PARTS + 2;
/// Words of a histogram: its buckets and the sum.
const HISTOGRAM: usize = BUCKETS + 1;

/// The counted methods, in the order of [`Method`] and of their words.
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT"];
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
const MATRIX: usize = METHODS.len() * CLASSES.len();

/// The words of the requests and of both histograms.
pub(crate) const WORDS: usize = MATRIX + 2 * HISTOGRAM;

/// The end of a latency, which begins when the head of the request is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// The first bytes of the response are ready to be sent, or sent.
    FirstByte,
    /// The kernel has taken the last byte.
    LastByte,
}

/// The index of the word for a request.
#[inline]
pub(super) fn place_of_request(method: Method, status: u16) -> usize {
    let class = usize::from(status / 100).clamp(1, CLASSES.len()) - 1;
    method as usize * CLASSES.len() + class
}

/// The indices of the bucket and of the sum for a latency.
#[inline]
pub(super) fn places_of_time(until: Until, nanoseconds: u64) -> (usize, usize) {
    let start = match until {
        Until::FirstByte => MATRIX,
        Until::LastByte => MATRIX + HISTOGRAM,
    };
    (start + bucket(nanoseconds), start + BUCKETS)
}

#[inline]
fn bucket(nanoseconds: u64) -> usize {
    let power = (nanoseconds | 1).ilog2() as usize;
    if power < FIRST_POWER {
        return 0;
    }
    let part = (nanoseconds >> (power - 2)) as usize % PARTS;
    (1 + (power - FIRST_POWER) * PARTS + part).min(BUCKETS - 1)
}

/// The upper bound of a bucket, in nanoseconds.
fn end_of(bucket: usize) -> u64 {
    let Some(place) = bucket.checked_sub(1) else { return 1 << FIRST_POWER };
    let start = 1u64 << (FIRST_POWER + place / PARTS);
    start + start / PARTS as u64 * (place % PARTS + 1) as u64
}

/// The counts of the words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Observed {
    /// Answered requests by method and class of status, without zeros.
    pub(crate) requests: Vec<(String, String, u64)>,
    pub(crate) first_byte: Histogram,
    pub(crate) last_byte: Histogram,
}

/// A histogram of latencies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Histogram {
    /// Without trailing zeros.
    buckets: Vec<u64>,
    sum_nanoseconds: u64,
}

impl Observed {
    /// Reads the words of a row, or sums of such words.
    pub(super) fn of(words: &[u64]) -> Observed {
        let names = METHODS.iter().flat_map(|method| CLASSES.iter().map(move |class| (*method, *class)));
        let counts = names.zip(words).filter(|(_, count)| **count > 0);
        let (first, last) = words[MATRIX..].split_at(HISTOGRAM);
        Observed {
            requests: counts.map(|((method, class), n)| (method.to_owned(), class.to_owned(), *n)).collect(),
            first_byte: Histogram::of(first),
            last_byte: Histogram::of(last),
        }
    }
}

impl Histogram {
    fn of(words: &[u64]) -> Histogram {
        let used = words[..BUCKETS].iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        Histogram { buckets: words[..used].to_vec(), sum_nanoseconds: words[BUCKETS] }
    }

    /// The number of latencies.
    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The sum of all latencies, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.sum_nanoseconds as f64 / 1e9
    }

    /// The counts for Prometheus: for each power of two, its upper bound in seconds and the number of latencies in its
    /// range. The last bound is infinite.
    pub(crate) fn by_power(&self) -> Vec<(f64, u64)> {
        let mut bounds = Vec::new();
        let mut counts = self.buckets.iter().copied();
        let mut step = |buckets: usize, end: f64| {
            let count = counts.by_ref().take(buckets).fold(0, u64::saturating_add);
            bounds.push((end, count));
        };
        // No response over a network takes less than 16 µs, so smaller powers share a bound.
        const LEAST: usize = 14;
        step(1 + (LEAST - FIRST_POWER) * PARTS, seconds(LEAST));
        (LEAST + 1..=LAST_POWER).for_each(|power| step(PARTS, seconds(power)));
        step(1, f64::INFINITY);
        bounds
    }

    /// A quantile, in seconds; `None` without latencies.
    pub(crate) fn quantile(&self, part: f64) -> Option<f64> {
        let rank = (self.count() as f64 * part).ceil().max(1.0);
        let mut before = 0.0;
        for (bucket, &count) in self.buckets.iter().enumerate() {
            let (count, end) = (count as f64, end_of(bucket) as f64);
            if count > 0.0 && before + count >= rank {
                let start = bucket.checked_sub(1).map_or(0.0, |former| end_of(former) as f64);
                return Some((start + (end - start) * (rank - before) / count) / 1e9);
            }
            before += count;
        }
        None
    }

    /// The latencies since the histogram `earlier`.
    pub(crate) fn since(&self, earlier: &Histogram) -> Histogram {
        let former = earlier.buckets.iter().copied().chain(std::iter::repeat(0));
        Histogram {
            buckets: self.buckets.iter().zip(former).map(|(now, then)| now.saturating_sub(then)).collect(),
            sum_nanoseconds: self.sum_nanoseconds.saturating_sub(earlier.sum_nanoseconds),
        }
    }
}

fn seconds(power: usize) -> f64 {
    (1u64 << power) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_lies_in_its_bucket() {
        for power in 0..64 {
            for time in [(1u64 << power) - 1, 1 << power, (1u64 << power).saturating_mul(3) / 2] {
                let bucket = bucket(time);
                assert!(bucket == BUCKETS - 1 || time < end_of(bucket), "{time}");
                assert!(bucket == 0 || time >= end_of(bucket - 1), "{time}");
            }
        }
        assert_eq!((bucket(0), bucket(1023), bucket(1024), bucket(u64::MAX)), (0, 0, 1, BUCKETS - 1));
    }

    #[test]
    fn counts_by_power_add_up_and_quantiles_lie_within_a_quarter() {
        let mut words = vec![0; WORDS];
        for time in (1..=1000).map(|time| time * 100_000) {
            let (bucket, sum) = places_of_time(Until::LastByte, time);
            words[bucket] += 1;
            words[sum] += time;
        }
        words[place_of_request(Method::Put, 404)] = 3;
        let observed = Observed::of(&words);
        assert_eq!(observed.requests, [("PUT".to_owned(), "4xx".to_owned(), 3)]);
        assert_eq!(observed.first_byte, Histogram::default());
        let times = observed.last_byte;
        assert_eq!((times.count(), times.seconds()), (1000, 50.05));
        assert_eq!(times.by_power().iter().map(|(_, count)| count).sum::<u64>(), 1000);
        for part in [0.5, 0.9, 0.99] {
            let (found, exact) = (times.quantile(part).expect("there are times"), part / 10.0);
            assert!((found - exact).abs() < exact / 4.0, "{part}: {found}");
        }
        assert_eq!(times.since(&times).count(), 0);
        assert_eq!(times.since(&Histogram::default()), times);
    }
}
