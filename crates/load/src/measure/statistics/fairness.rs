//! The fairness of a server to its connections.

use serde::{Deserialize, Serialize};

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

    /// Whether some shares have these sums.
    pub(crate) fn is_possible(&self) -> bool {
        let is_size = |sum: f64| sum.is_finite() && sum >= 0.0;
        self.count <= 1 << 40 && is_size(self.sum) && is_size(self.squares)
    }

    /// Jain's index: 1 if all shares are equal, 1/n if all but one of n shares are zero (Jain, Chiu and Hawe 1984).
    /// `None` if all shares are zero.
    pub fn jain(&self) -> Option<f64> {
        (self.squares > 0.0).then(|| self.sum * self.sum / (self.count as f64 * self.squares))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
