//! A difference within blocks, in the unit of its measure: for parts that may be zero, which have no ratio.

use crate::statistics::effect::half_width;
use crate::statistics::sample::{ALPHA, moments};

/// The mean of differences, one for each block, and its 95 % interval.
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
    /// The difference of samples in the order of their blocks; none for fewer than two.
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
