//! The whole procedure on synthetic trials with known ratios: pilot blocks, the number of blocks, Holm's correction,
//! decisions.

use tenfold_load::statistics::holm;

use crate::statistics::decision::{Decision, Direction, decide};
use crate::statistics::effect::{Effect, p_value};
use crate::statistics::stages;

/// A synthetic experiment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Synthetic<'a> {
    /// The true ratio of each claim.
    pub(crate) truths: &'a [f64],
    /// Standard deviation of the logarithm of a ratio within a block.
    pub(crate) deviation: f64,
    /// The margin of "no difference".
    pub(crate) margin: f64,
    /// The most blocks.
    pub(crate) most_blocks: usize,
}

/// Runs the procedure once. Every claim is that its ratio is above 1.
pub(crate) fn run(synthetic: &Synthetic<'_>, random: &mut fastrand::Rng) -> Vec<Decision> {
    let mut samples: Vec<Vec<f64>> = vec![Vec::new(); synthetic.truths.len()];
    let mut extend = |samples: &mut Vec<Vec<f64>>, to: usize| {
        for (claim, truth) in samples.iter_mut().zip(synthetic.truths) {
            claim.resize_with(to, || truth * (synthetic.deviation * normal(random)).exp());
        }
    };
    extend(&mut samples, stages::PILOT_BLOCKS);
    let needed = samples.iter().map(|pilot| stages::blocks(pilot, synthetic.margin, samples.len()));
    let blocks = needed.max().unwrap_or_default().clamp(stages::PILOT_BLOCKS, synthetic.most_blocks);
    extend(&mut samples, blocks);
    let p_values: Vec<f64> = samples.iter().map(|claim| p_value(claim, 1.0)).collect();
    let judge = |(claim, p): (&Vec<f64>, f64)| match Effect::of(claim) {
        Some(effect) => decide(&effect, p, Direction::Greater, synthetic.margin),
        None => Decision::Inconclusive,
    };
    samples.iter().zip(holm::adjust(&p_values)).map(judge).collect()
}

/// A draw from the standard normal distribution (Box and Muller 1958).
pub(crate) fn normal(random: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

/// The share of runs whose decisions satisfy `counts`.
pub(crate) fn share(
    synthetic: &Synthetic<'_>,
    runs: u32,
    seed: u64,
    counts: impl Fn(&[Decision]) -> bool,
) -> f64 {
    let mut random = fastrand::Rng::with_seed(seed);
    let found = (0..runs).filter(|_| counts(&run(synthetic, &mut random))).count();
    found as f64 / f64::from(runs)
}

/// Whether any decision is a difference, which is false for equal servers.
pub(crate) fn any_difference(decisions: &[Decision]) -> bool {
    decisions.iter().any(|decision| matches!(decision, Decision::Holds | Decision::Reversed))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNS: u32 = 1_000;
    const SEED: u64 = 20_161_201;

    fn synthetic(truths: &[f64], margin: f64) -> Synthetic<'_> {
        Synthetic { truths, deviation: 0.05, margin, most_blocks: 200 }
    }

    #[test]
    fn a_true_tenth_is_found_in_nine_runs_of_ten() {
        for truths in [&[1.10, 1.0, 1.0, 1.0], &[1.10; 4]] {
            for (margin, runs) in [(0.10, RUNS), (0.05, RUNS / 5)] {
                let found = share(&synthetic(truths, margin), runs, SEED, |all| all[0] == Decision::Holds);
                assert!(found >= 0.90, "found in {found} of runs, margin {margin}, truths {truths:?}");
            }
        }
    }

    #[test]
    fn equal_servers_are_called_different_in_six_runs_of_a_hundred_at_most() {
        for (margin, runs) in [(0.10, RUNS), (0.05, RUNS / 5)] {
            let wrong = share(&synthetic(&[1.0; 4], margin), runs, SEED, any_difference);
            assert!(wrong <= 0.06, "{wrong} of runs, margin {margin}");
        }
    }

    #[test]
    fn a_budget_that_ends_at_the_pilot_calls_no_equal_servers_different() {
        let short = Synthetic { most_blocks: stages::PILOT_BLOCKS, ..synthetic(&[1.0; 4], 0.10) };
        let wrong = share(&short, RUNS, SEED, any_difference);
        assert!(wrong <= 0.06, "{wrong} of runs");
    }

    #[test]
    fn equal_servers_are_mostly_found_equal() {
        let equal = |all: &[Decision]| all[0] == Decision::NoDifference;
        let found = share(&synthetic(&[1.0; 4], 0.10), RUNS, SEED, equal);
        assert!(found >= 0.80, "in {found} of runs");
    }
}
