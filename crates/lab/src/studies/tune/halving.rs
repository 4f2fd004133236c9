//! Successive halving: each round measures the remaining candidates for longer, and drops the worse half (Karnin, Koren
//! and Somekh 2013). The measurements of a round choose candidates and do not estimate their gain, because the best of
//! many equal candidates looks better by chance.

use tenfold_load::statistics::sample::moments;

/// The remaining candidates, and the gains measured so far.
#[derive(Debug)]
pub(super) struct Halving {
    left: Vec<usize>,
    logs: Vec<Vec<f64>>,
}

impl Halving {
    pub(super) fn new(candidates: usize) -> Halving {
        Halving { left: (0..candidates).collect(), logs: vec![Vec::new(); candidates] }
    }

    /// The numbers of the remaining candidates. After a round, the best is the first.
    pub(super) fn left(&self) -> &[usize] {
        &self.left
    }

    /// The rounds until one candidate remains.
    pub(super) fn rounds(&self) -> u32 {
        rounds(self.left.len())
    }

    /// Ends a round. `gains` returns the gains of a candidate over the default, one for each block. Drops candidates
    /// without gains, such as failed candidates, and the worse half of the others.
    pub(super) fn end_round(&mut self, mut gains: impl FnMut(usize) -> Vec<f64>) {
        let mut left = std::mem::take(&mut self.left);
        left.retain(|candidate| {
            let found = gains(*candidate);
            let valid = !found.is_empty() && found.iter().all(|gain| *gain > 0.0 && gain.is_finite());
            self.logs[*candidate].extend(found.iter().map(|gain| gain.ln()));
            valid
        });
        left.sort_by(|a, b| self.score(*b).total_cmp(&self.score(*a)));
        left.truncate(left.len().div_ceil(2));
        self.left = left;
    }

    /// The mean logarithm of a candidate's gains.
    fn score(&self, candidate: usize) -> f64 {
        moments(&self.logs[candidate]).0
    }
}

/// Rounds from a number of candidates to one.
pub(super) fn rounds(candidates: usize) -> u32 {
    candidates.next_power_of_two().trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::decision::{Decision, Direction, decide};
    use crate::statistics::effect::{Effect, FEWEST_BLOCKS, p_value};
    use crate::statistics::simulation::normal;

    const SEARCHES: usize = 300;
    const SEED: u64 = 20_261_124;
    const MARGIN: f64 = 0.05;
    const DEVIATION: f64 = 0.05;

    /// Searches among candidates with known gains. Returns the chosen candidate, its mean gain in the search, and the
    /// decision and the effect of fresh blocks.
    fn search(truths: &[f64], random: &mut fastrand::Rng) -> (usize, f64, Decision, Effect) {
        let mut halving = Halving::new(truths.len());
        let mut blocks = 2;
        while halving.left().len() > 1 {
            halving.end_round(|candidate| draw(truths[candidate], blocks, random));
            blocks *= 2;
        }
        let best = halving.left()[0];
        let fresh = draw(truths[best], FEWEST_BLOCKS, random);
        let effect = Effect::of(&fresh).expect("eight blocks");
        let decision = decide(&effect, p_value(&fresh, 1.0), Direction::Greater, MARGIN);
        (best, halving.score(best).exp(), decision, effect)
    }

    fn draw(truth: f64, blocks: usize, random: &mut fastrand::Rng) -> Vec<f64> {
        (0..blocks).map(|_| truth * (DEVIATION * normal(random)).exp()).collect()
    }

    #[test]
    fn sixteen_equal_settings_end_as_the_default_is_as_good() {
        let mut random = fastrand::Rng::with_seed(SEED);
        let (mut wins, mut in_search, mut fresh) = (0, 0.0, 0.0);
        for _ in 0..SEARCHES {
            let (_, searched, decision, effect) = search(&[1.0; 16], &mut random);
            wins += usize::from(decision == Decision::Holds);
            in_search += searched.ln() / SEARCHES as f64;
            fresh += effect.mean.ln() / SEARCHES as f64;
        }
        assert!(wins * 100 <= SEARCHES * 4, "{wins} of {SEARCHES} searches found a winner among equals");
        assert!(in_search > 0.01, "the best of sixteen equals looks better by chance: {in_search}");
        assert!(fresh.abs() < 0.005, "fresh blocks do not flatter: {fresh}");
    }

    #[test]
    fn a_setting_that_is_a_quarter_better_is_found_and_confirmed() {
        let mut random = fastrand::Rng::with_seed(SEED);
        let mut truths = [1.0; 24];
        truths[17] = 1.25;
        let found = |random: &mut fastrand::Rng| {
            let (best, _, decision, _) = search(&truths, random);
            best == 17 && decision == Decision::Holds
        };
        let count = (0..SEARCHES).filter(|_| found(&mut random)).count();
        assert!(count * 100 >= SEARCHES * 95, "{count} of {SEARCHES}");
    }

    #[test]
    fn candidates_that_fail_leave_at_once() {
        let mut halving = Halving::new(5);
        assert_eq!(halving.rounds(), 3);
        halving.end_round(|candidate| match candidate {
            0 => Vec::new(),
            1 => vec![f64::NAN],
            2 => vec![0.0],
            worse => vec![1.0 / worse as f64],
        });
        assert_eq!(halving.left(), [3]);
        halving.end_round(|_| Vec::new());
        assert!(halving.left().is_empty() && halving.rounds() == 0);
        assert_eq!([1, 2, 3, 16, 17].map(rounds), [0, 1, 2, 4, 5]);
    }
}
