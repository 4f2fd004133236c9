//! Effects within blocks, with their intervals: a geometric mean of ratios, and a mean of differences.

use serde::{Deserialize, Serialize};
use tenfold_load::statistics::sample::{ALPHA, moments};
use tenfold_load::statistics::student;

use crate::measure::show_count;
use crate::statistics::stages;

/// The fewest blocks for a verdict.
pub const FEWEST_BLOCKS: usize = 8;
/// The fewest blocks for a bootstrap interval. With 6 blocks, a bootstrap calls equal servers different in 15 % of
/// runs.
const FEWEST_FOR_BOOTSTRAP: usize = 12;

/// Returns the reason why blocks of this `kind`, such as "fresh block", prove nothing, if disturbances left too few.
pub fn disturbed_too_often(all: usize, disturbed: usize, kind: &str) -> Option<String> {
    let proves = disturbed == 0 || all.saturating_sub(disturbed) >= FEWEST_BLOCKS;
    let blocks = show_count(all, kind);
    (!proves).then(|| {
        format!(
            "{disturbed} of {blocks} were disturbed, and fewer than {FEWEST_BLOCKS} without a disturbance earn no verdict"
        )
    })
}

/// The geometric mean of positive samples, one for each block, and its 95 % interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The geometric mean.
    pub mean: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// The number of blocks.
    pub blocks: usize,
    /// Standard deviation of the logarithms.
    pub deviation: f64,
    /// The interval of a percentile bootstrap, from 12 blocks on.
    pub bootstrap: Option<(f64, f64)>,
}

impl Effect {
    /// The effect of samples in the order of their blocks. `None` for fewer than two samples, or for a sample that is
    /// not above zero.
    ///
    /// The interval is the wider of two. Stein's interval uses the variance of the pilot blocks, and is exact if the
    /// pilot determined the number of blocks. Student's interval uses all blocks, so it includes later noise.
    pub fn of(samples: &[f64]) -> Option<Effect> {
        if samples.len() < 2 || samples.iter().any(|value| *value <= 0.0 || !value.is_finite()) {
            return None;
        }
        let logs: Vec<f64> = samples.iter().map(|value| value.ln()).collect();
        let (mean, deviation) = moments(&logs);
        let half = half_width(&logs, ALPHA);
        Some(Effect {
            mean: mean.exp(),
            low: (mean - half).exp(),
            high: (mean + half).exp(),
            blocks: samples.len(),
            deviation,
            bootstrap: None,
        })
    }

    /// Also computes the bootstrap interval, if there are enough blocks.
    pub fn with_bootstrap(samples: &[f64]) -> Option<Effect> {
        let logs: Vec<f64> = samples.iter().map(|value| value.ln()).collect();
        let bootstrap = (logs.len() >= FEWEST_FOR_BOOTSTRAP).then(|| bootstrap(&logs));
        Effect::of(samples).map(|effect| Effect { bootstrap, ..effect })
    }

    /// Whether the interval contains `value`.
    pub fn covers(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Half of the interval's width, as a factor: 0.05 means ±5 %.
    pub fn relative(&self) -> f64 {
        (self.high / self.low).sqrt() - 1.0
    }
}

/// The two-sided p-value of the hypothesis that the geometric mean is `value`.
pub fn p_value(samples: &[f64], value: f64) -> f64 {
    let logs: Vec<f64> = samples.iter().map(|sample| (sample / value).ln()).collect();
    if logs.len() < 2 || logs.iter().any(|log| !log.is_finite()) {
        return 1.0;
    }
    let (mean, deviation) = moments(&logs);
    let t = |deviation: f64| match (mean == 0.0, deviation == 0.0) {
        (true, _) => 0.0,
        (false, true) => f64::INFINITY,
        (false, false) => mean.abs() * (logs.len() as f64).sqrt() / deviation,
    };
    let pilot = pilot(&logs);
    let stein = student::p_value(t(moments(pilot).1), pilot.len() as f64 - 1.0);
    student::p_value(t(deviation), logs.len() as f64 - 1.0).max(stein)
}

/// Half of the width of an interval: the wider of Stein's and Student's.
pub(super) fn half_width(logs: &[f64], alpha: f64) -> f64 {
    let root = (logs.len() as f64).sqrt();
    let of = |part: &[f64]| student::quantile(alpha, part.len() as f64 - 1.0) * moments(part).1 / root;
    of(logs).max(of(pilot(logs)))
}

/// The samples of the pilot blocks.
fn pilot(logs: &[f64]) -> &[f64] {
    &logs[..logs.len().min(stages::PILOT_BLOCKS)]
}

/// A percentile bootstrap of the mean, with a fixed seed.
fn bootstrap(logs: &[f64]) -> (f64, f64) {
    const DRAWS: usize = 2_000;
    let mut random = fastrand::Rng::with_seed(1);
    let mut draw = || logs.iter().map(|_| logs[random.usize(..logs.len())]).sum::<f64>() / logs.len() as f64;
    let mut means: Vec<f64> = (0..DRAWS).map(|_| draw()).collect();
    means.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| means[(share * DRAWS as f64) as usize].exp();
    (at(0.025), at(0.975))
}

/// The mean of differences, one for each block, and its 95 % interval. Values that may be zero have no ratio but a
/// difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The mean.
    pub mean: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Difference {
    /// The mean of samples in the order of their blocks. `None` for fewer than two samples.
    pub fn of(samples: &[f64]) -> Option<Difference> {
        if samples.len() < 2 || samples.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let half = half_width(samples, ALPHA);
        let mean = moments(samples).0;
        Some(Difference { mean, low: mean - half, high: mean + half })
    }

    /// Whether the interval contains zero.
    pub fn may_be_zero(&self) -> bool {
        self.low <= 0.0 && 0.0 <= self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_students_on_logarithms() {
        let effect = Effect::of(&[1.0_f64, 2.0, 3.0].map(f64::exp)).expect("three samples");
        // The mean is 2, the deviation 1, and t with two degrees is 4.303.
        let half = 4.302_653 / 3.0_f64.sqrt();
        assert!((effect.mean.ln() - 2.0).abs() < 1e-9 && (effect.high.ln() - 2.0 - half).abs() < 1e-5);
        assert!(effect.covers(8.0) && effect.bootstrap.is_none());
    }

    #[test]
    fn noise_after_the_pilot_widens_an_interval() {
        let quiet: Vec<f64> = (0..8).map(|at| 1.0 + 0.001 * f64::from(at % 3)).collect();
        let mut noisy = quiet.clone();
        noisy.extend([0.7, 1.4, 0.8, 1.3]);
        let of = |samples| Effect::with_bootstrap(samples).expect("all are above zero");
        let (before, after) = (of(&quiet), of(&noisy));
        assert!(after.relative() > 10.0 * before.relative());
        assert!(after.bootstrap.is_some());
    }

    #[test]
    fn values_without_a_logarithm_have_no_effect() {
        assert_eq!(Effect::of(&[1.0, 0.0, 2.0]), None);
        assert_eq!(Effect::of(&[1.0]), None);
        assert_eq!(p_value(&[1.0, 0.0], 1.0), 1.0);
    }

    #[test]
    fn a_p_value_below_alpha_is_an_interval_that_excludes_the_value() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..200 {
            let samples: Vec<f64> = (0..10).map(|_| (random.f64() - 0.42).exp()).collect();
            let effect = Effect::of(&samples).expect("ten");
            assert_eq!(effect.covers(1.0), p_value(&samples, 1.0) > ALPHA, "{samples:?}");
        }
    }

    #[test]
    fn an_interval_is_students() {
        let found = Difference::of(&[1.0, 2.0, 3.0]).expect("three samples");
        let half = 4.302_653 / 3.0_f64.sqrt();
        assert!((found.mean - 2.0).abs() < 1e-9 && (found.high - 2.0 - half).abs() < 1e-5);
        assert!(found.may_be_zero());
        assert!(!Difference::of(&[1.0, 1.1, 0.9]).expect("three samples").may_be_zero());
    }

    #[test]
    fn zeros_have_a_difference_and_a_single_block_has_none() {
        assert_eq!(Difference::of(&[0.0, 0.0]).map(|found| (found.low, found.high)), Some((0.0, 0.0)));
        assert_eq!(Difference::of(&[1.0]), None);
    }
}
