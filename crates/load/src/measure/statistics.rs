//! Means and ratios with intervals, and fairness.

use serde::{Deserialize, Serialize};

/// An estimate and its 95 % interval.
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
    /// Half the width of the interval, relative to the estimate.
    pub fn relative(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.mean
    }
}

/// The fewest samples for an interval.
pub const FEWEST_SAMPLES: usize = 2;

/// The mean of normally distributed samples with Student's interval; none for fewer than two samples.
pub fn mean(samples: &[f64]) -> Option<Estimate> {
    let count = samples.len() as f64;
    if samples.len() < FEWEST_SAMPLES {
        return None;
    }
    let mean = samples.iter().sum::<f64>() / count;
    let variance = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let half = student(samples.len() - 1) * (variance / count).sqrt();
    Some(Estimate { mean, low: mean - half, high: mean + half })
}

/// The 97.5 % quantile of Student's distribution.
fn student(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    match degrees {
        0 => f64::INFINITY,
        1..=30 => TABLE[degrees - 1],
        // The error is below 0.003 for all larger degrees.
        _ => 1.96 + 2.4 / degrees as f64,
    }
}

/// The ratio of the geometric means of `b` and `a`, with a percentile bootstrap over the unpaired samples. None for
/// too few samples, or for values that are not above zero.
pub fn ratio(a: &[f64], b: &[f64], seed: u64) -> Option<Estimate> {
    const DRAWS: usize = 4_000;
    let usable = |all: &[f64]| {
        all.len() >= FEWEST_SAMPLES && all.iter().all(|value| *value > 0.0 && value.is_finite())
    };
    if !usable(a) || !usable(b) {
        return None;
    }
    let logs = |all: &[f64]| all.iter().map(|value| value.ln()).collect::<Vec<_>>();
    let (a, b) = (logs(a), logs(b));
    let average = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut draw =
        |all: &[f64]| (0..all.len()).map(|_| all[random.usize(..all.len())]).sum::<f64>() / all.len() as f64;
    let mut draws: Vec<f64> = (0..DRAWS).map(|_| draw(&b) - draw(&a)).collect();
    draws.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| draws[(share * DRAWS as f64) as usize].exp();
    Some(Estimate { mean: (average(&b) - average(&a)).exp(), low: at(0.025), high: at(0.975) })
}

/// The sums of Jain's fairness index. Sums of several workers add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FairnessSums {
    /// The number of shares.
    pub count: u64,
    sum: f64,
    squares: f64,
}

impl FairnessSums {
    /// Adds one share.
    pub fn push(&mut self, share: u64) {
        self.add(&FairnessSums { count: 1, sum: share as f64, squares: (share as f64).powi(2) });
    }

    /// Adds the sums of another worker.
    pub fn add(&mut self, other: &FairnessSums) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// Returns 1 if all shares are equal, and 1/n if one of n has everything (Jain, Chiu and Hawe 1984); none if all
    /// are zero.
    pub fn jain(&self) -> Option<f64> {
        (self.squares > 0.0).then(|| self.sum * self.sum / (self.count as f64 * self.squares))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_has_students_interval() {
        let found = mean(&[2.0, 4.0, 6.0]).expect("there are three");
        // 4.303 × 2 / √3
        assert!((found.mean - 4.0).abs() < 1e-12 && (found.high - 4.0 - 4.9687).abs() < 1e-3, "{found:?}");
        assert_eq!(mean(&[1.0]), None);
    }

    #[test]
    fn the_true_ratio_lies_in_its_interval() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut noisy =
            |centre: f64| (0..12).map(|_| centre * (0.98 + 0.04 * random.f64())).collect::<Vec<_>>();
        let (a, b) = (noisy(100.0), noisy(150.0));
        let found = ratio(&a, &b, 1).expect("all are above zero");
        assert!(found.low < 1.5 && 1.5 < found.high && found.high - found.low < 0.05, "{found:?}");
        let same = ratio(&a, &a, 1).expect("all are above zero");
        assert!((same.mean - 1.0).abs() < 1e-12 && same.low < 1.0 && 1.0 < same.high);
        assert_eq!(ratio(&[1.0, 0.0], &[1.0, 1.0], 1), None);
    }

    #[test]
    fn fairness_ranges_from_one_to_one_nth() {
        let index = |shares: &[u64]| {
            let mut all = FairnessSums::default();
            shares.iter().for_each(|share| all.push(*share));
            all.jain()
        };
        assert_eq!(index(&[5, 5, 5, 5]), Some(1.0));
        assert_eq!(index(&[8, 0, 0, 0]), Some(0.25));
        assert_eq!(index(&[0, 0]), None);
    }
}
