//! The rule of verdicts on ratios, fixed before a run. It reads only an interval and a p-value.

use serde::{Deserialize, Serialize};
use tenfold_load::statistics::sample::ALPHA;

use crate::statistics::effect::{Effect, FEWEST_BLOCKS};

/// The claimed side of 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// It is above 1.
    Greater,
    /// It is below 1.
    Less,
    /// It is 1.
    Equal,
}

/// The result of a ratio for a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// The ratio is on the claimed side.
    Holds,
    /// The ratio is on the other side.
    Reversed,
    /// The interval lies inside the margin around 1.
    NoDifference,
    /// The trials show none of these results.
    Inconclusive,
}

/// Decides about a ratio. An interval inside the margin decides first; then the side of 1 decides, if the p-value,
/// adjusted for the other claims of the experiment, is at most [`ALPHA`].
pub fn decide(effect: &Effect, adjusted_p: f64, direction: Direction, margin: f64) -> Decision {
    if effect.blocks < FEWEST_BLOCKS {
        return Decision::Inconclusive;
    }
    if effect.low >= 1.0 / (1.0 + margin) && effect.high <= 1.0 + margin {
        return match direction {
            Direction::Equal => Decision::Holds,
            _ => Decision::NoDifference,
        };
    }
    if adjusted_p > ALPHA {
        return Decision::Inconclusive;
    }
    let holds = match direction {
        Direction::Greater => effect.mean > 1.0,
        Direction::Less => effect.mean < 1.0,
        Direction::Equal => false,
    };
    if holds { Decision::Holds } else { Decision::Reversed }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(mean: f64, low: f64, high: f64, blocks: usize) -> Effect {
        Effect { mean, low, high, blocks, deviation: 0.05, bootstrap: None }
    }

    #[test]
    fn the_margin_comes_before_the_side_and_a_side_needs_a_p_value_and_enough_blocks() {
        use Direction::{Equal, Greater, Less};
        let inside = effect(1.05, 1.02, 1.08, 8);
        let above = effect(1.3, 1.1, 1.5, 8);
        let few = effect(1.3, 1.1, 1.5, 7);
        for (row, (effect, p, direction, margin, expected)) in [
            (&inside, 0.001, Greater, 0.10, Decision::NoDifference),
            (&inside, 0.001, Equal, 0.10, Decision::Holds),
            (&inside, 0.001, Greater, 0.05, Decision::Holds),
            (&above, 0.01, Greater, 0.1, Decision::Holds),
            (&above, 0.01, Less, 0.1, Decision::Reversed),
            (&above, 0.01, Equal, 0.1, Decision::Reversed),
            (&above, 0.06, Greater, 0.1, Decision::Inconclusive),
            (&few, 0.01, Greater, 0.1, Decision::Inconclusive),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(decide(effect, p, direction, margin), expected, "row {row}");
        }
    }
}
