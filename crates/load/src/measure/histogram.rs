//! Histograms of latencies in nanoseconds: three digits, from 100 ns to one hour.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The resolution in nanoseconds.
pub const LOWEST: u64 = 100;
/// The highest value in nanoseconds; higher values count as this value.
pub const HIGHEST: u64 = 3_600_000_000_000;
/// The precision in decimal digits.
pub const DIGITS: u8 = 3;

/// More values than a histogram with these bounds has.
const MOST_VALUES: usize = 1 << 16;

/// An empty histogram.
pub fn new() -> Histogram<u64> {
    Histogram::new_with_bounds(LOWEST, HIGHEST, DIGITS).expect("the bounds are those of a histogram")
}

/// The content of a histogram: values and their counts. It is small if most values are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts(Vec<(u64, u64)>);

impl Counts {
    /// Moves the content out of `histogram`.
    pub fn take(histogram: &mut Histogram<u64>) -> Counts {
        if histogram.is_empty() {
            return Counts::default();
        }
        let counts =
            histogram.iter_recorded().map(|at| (at.value_iterated_to(), at.count_at_value())).collect();
        histogram.reset();
        Counts(counts)
    }

    /// Adds the content to a histogram.
    pub fn pour(&self, into: &mut Histogram<u64>) {
        for (value, count) in &self.0 {
            into.saturating_record_n(*value, *count);
        }
    }

    /// Adds the content of `other`.
    pub fn add(&mut self, other: &Counts) {
        if self.0.is_empty() {
            self.0.clone_from(&other.0);
            return;
        }
        let mut all = std::mem::take(&mut self.0);
        all.extend_from_slice(&other.0);
        all.sort_unstable();
        for (value, count) in all {
            match self.0.last_mut() {
                Some(last) if last.0 == value => last.1 += count,
                _ => self.0.push((value, count)),
            }
        }
    }

    /// The number of samples up to this value.
    pub fn count_up_to(&self, value: u64) -> u64 {
        self.0.iter().filter(|(one, _)| *one <= value).map(|(_, count)| count).sum()
    }

    /// The number of samples.
    pub fn len(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// The number of samples; `None` if it overflows, or if there are more values than a histogram has.
    pub(crate) fn checked_len(&self) -> Option<u64> {
        if self.0.len() > MOST_VALUES {
            return None;
        }
        self.0.iter().try_fold(0, |sum: u64, (_, count)| sum.checked_add(*count))
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Whether `count` samples are enough for a percentile: at least ten lie above it.
pub fn suffices(count: u64, percentile: f64) -> bool {
    count as f64 * (100.0 - percentile) / 100.0 >= 9.999_999
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The smallest sample with at least `percentile` percent at or below it.
    fn by_sorting(samples: &[u64], percentile: f64) -> u64 {
        let rank = (percentile / 100.0 * samples.len() as f64).ceil().max(1.0) as usize;
        samples[rank.min(samples.len()) - 1]
    }

    proptest! {
        #[test]
        fn percentiles_match_sorting_within_the_precision(
            mut samples in proptest::collection::vec(prop_oneof![1_000u64..1_000_000, 1_000_000u64..60_000_000_000], 1..400),
            cut in 0usize..400,
        ) {
            // Two parts, joined as the histograms of several workers are.
            let (first, second) = samples.split_at(cut.min(samples.len()));
            let mut counts = Counts::default();
            for part in [first, second] {
                let mut histogram = new();
                part.iter().for_each(|sample| histogram.saturating_record(*sample));
                counts.add(&Counts::take(&mut histogram));
                prop_assert!(histogram.is_empty());
            }
            let mut whole = new();
            counts.pour(&mut whole);
            samples.sort_unstable();
            prop_assert_eq!(whole.len(), samples.len() as u64);
            prop_assert_eq!(counts.len(), samples.len() as u64);
            for percentile in [0.0, 25.0, 50.0, 90.0, 99.0, 99.9, 100.0] {
                let (ours, theirs) = (whole.value_at_percentile(percentile), by_sorting(&samples, percentile));
                let off = ours.abs_diff(theirs) as f64;
                prop_assert!(off <= theirs as f64 * 1e-3 + LOWEST as f64, "p{percentile}: {ours}, and {theirs} by sorting");
            }
            let mean = samples.iter().sum::<u64>() as f64 / samples.len() as f64;
            prop_assert!((whole.mean() - mean).abs() <= mean * 1e-3 + LOWEST as f64);
        }
    }

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        assert!(suffices(20, 50.0) && !suffices(19, 50.0));
        assert!(suffices(1_000, 99.0) && !suffices(999, 99.0));
        assert!(suffices(100_000, 99.99) && !suffices(99_000, 99.99));
    }
}
