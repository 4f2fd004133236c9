//! Means and ratios of positive quantities, with intervals.
//!
//! Rates and times vary by factors, so intervals are computed on logarithms. No interval then has a negative end.

use serde::{Deserialize, Serialize};

use crate::measure::statistics::sample::{ALPHA, moments};
use crate::measure::statistics::student;

/// The least relative deviation of samples, because histograms have three digits.
const RESOLUTION: f64 = 0.001;

/// An estimate of a positive quantity and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The estimate.
    pub mean: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

impl Estimate {
    /// The estimate whose logarithm is `mean`, plus or minus `half`.
    fn of_logarithm(mean: f64, half: f64) -> Estimate {
        Estimate { mean: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp() }
    }

    /// Half of the interval's width, as a factor: 0.05 means ±5 %.
    pub fn relative(&self) -> f64 {
        (self.high / self.low).sqrt() - 1.0
    }
}

/// The fewest samples for an interval.
pub const FEWEST_SAMPLES: usize = 2;

/// The geometric mean with Student's interval. `None` for too few samples, or for values that are not above zero.
pub fn mean(samples: &[f64]) -> Option<Estimate> {
    let logs = logarithms(samples)?;
    let (mean, deviation) = moments(&logs);
    let half = student::quantile(ALPHA, logs.len() as f64 - 1.0) * deviation / (logs.len() as f64).sqrt();
    Some(Estimate::of_logarithm(mean, half))
}

/// The ratio of the geometric means of `b` and `a`, and the p-value of their equality, by Welch's t-test (Welch 1947),
/// because the deviations of two servers differ. `None` for too few samples, or for values that are not above zero.
pub fn ratio(a: &[f64], b: &[f64]) -> Option<(Estimate, f64)> {
    let (a, b) = (logarithms(a)?, logarithms(b)?);
    let side = |logs: &[f64]| {
        let (mean, deviation) = moments(logs);
        (mean, deviation.max(RESOLUTION).powi(2) / logs.len() as f64)
    };
    let ((mean_a, variance_a), (mean_b, variance_b)) = (side(&a), side(&b));
    let variance = variance_a + variance_b;
    let freedom = |variance: f64, logs: &[f64]| variance.powi(2) / (logs.len() as f64 - 1.0);
    let degrees = variance.powi(2) / (freedom(variance_a, &a) + freedom(variance_b, &b));
    let (difference, error) = (mean_b - mean_a, variance.sqrt());
    let estimate = Estimate::of_logarithm(difference, student::quantile(ALPHA, degrees) * error);
    Some((estimate, student::p_value(difference / error, degrees)))
}

fn logarithms(samples: &[f64]) -> Option<Vec<f64>> {
    let has_logarithm = |value: &f64| *value > 0.0 && value.is_finite();
    (samples.len() >= FEWEST_SAMPLES && samples.iter().all(has_logarithm))
        .then(|| samples.iter().map(|value| value.ln()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_has_students_interval_on_logarithms() {
        let found = mean(&[1.0_f64, 2.0, 3.0].map(f64::exp)).expect("there are three");
        let half = 4.302_653 / 3.0_f64.sqrt();
        assert!(
            (found.mean.ln() - 2.0).abs() < 1e-9 && (found.high.ln() - 2.0 - half).abs() < 1e-5,
            "{found:?}"
        );
        assert!((found.relative().ln_1p() - half).abs() < 1e-5);
        assert_eq!((mean(&[1.0]), mean(&[1.0, 0.0])), (None, None));
    }

    #[test]
    fn an_interval_of_runs_that_differ_much_has_no_negative_end() {
        let found = mean(&[4_000.0, 14_000.0]).expect("there are two");
        assert!(found.low > 0.0 && found.low < 4_000.0 && found.high > 14_000.0, "{found:?}");
    }

    #[test]
    fn two_runs_on_each_side_have_a_wide_interval() {
        let (found, p) = ratio(&[100.0, 101.0], &[102.0, 103.0]).expect("all are above zero");
        assert_eq!(format!("{:.3} .. {:.3}", found.low, found.high), "0.990 .. 1.051");
        assert!((0.10..0.12).contains(&p), "{p}");
    }

    #[test]
    fn the_true_ratio_lies_in_its_interval() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut noisy =
            |centre: f64| (0..12).map(|_| centre * (0.98 + 0.04 * random.f64())).collect::<Vec<_>>();
        let (a, b) = (noisy(100.0), noisy(150.0));
        let (found, p) = ratio(&a, &b).expect("all are above zero");
        assert!(
            found.low < 1.5 && 1.5 < found.high && found.high - found.low < 0.05 && p < 1e-9,
            "{found:?}"
        );
        let (same, p) = ratio(&a, &a).expect("all are above zero");
        assert!((same.mean - 1.0).abs() < 1e-12 && same.low < 1.0 && 1.0 < same.high && p > 0.999);
        assert_eq!(ratio(&[1.0, 0.0], &[1.0, 1.0]), None);
    }

    #[test]
    fn neighbouring_values_of_a_histogram_do_not_differ() {
        let (_, p) = ratio(&[1_000.0, 1_000.0], &[1_001.0, 1_001.0]).expect("all are above zero");
        assert!(p > ALPHA, "{p}");
    }
}
