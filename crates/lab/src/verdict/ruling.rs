//! A verdict and its evidence.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::measure::{Measure, show_number};
use crate::statistics::effect::Effect;

/// A verdict in a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ruling {
    /// The claim holds.
    Holds,
    /// The opposite was found.
    Reversed,
    /// The difference lies inside the margin.
    NoDifference,
    /// The trials show no result.
    #[default]
    Inconclusive,
    /// The claim holds only with a named confound.
    Artefact,
    /// This machine or this version cannot test it.
    NotTestableHere,
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ruling::Holds => "HOLDS",
            Ruling::Reversed => "REVERSED",
            Ruling::NoDifference => "NO DIFFERENCE",
            Ruling::Inconclusive => "INCONCLUSIVE",
            Ruling::Artefact => "ARTEFACT",
            Ruling::NotTestableHere => "NOT TESTABLE HERE",
        })
    }
}

/// The verdict on a claim, with its evidence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClaimVerdict {
    /// The experiment.
    pub experiment: String,
    /// The number of the claim, from 1.
    pub claim: usize,
    /// The sentence.
    pub says: String,
    /// The published value in words.
    pub published: String,
    /// The measure.
    pub measure: Measure,
    /// The rule in words.
    pub rule: String,
    /// The verdict.
    pub ruling: Ruling,
    /// The reason of the verdict.
    pub because: String,
    /// The values found here, in words.
    pub ours: String,
    /// The ratio or the value with its interval.
    pub effect: Option<Effect>,
    /// Whether the effect is a ratio.
    pub is_ratio: bool,
    /// The p-value, adjusted for the other claims of the experiment.
    pub p: Option<f64>,
    /// The number of flagged blocks, and of all blocks.
    pub noisy: (usize, usize),
}

/// The noise of an experiment: a cell compared with itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControlResult {
    /// The experiment.
    pub experiment: String,
    /// The cell.
    pub cell: String,
    /// The measure.
    pub measure: Measure,
    /// The ratio of its second trial to its first.
    pub effect: Effect,
}

/// The median, which can include zeros.
pub fn middle(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// An effect with its interval.
pub fn shown(effect: &Effect) -> String {
    format!("{} [{}–{}]", show_number(effect.mean), show_number(effect.low), show_number(effect.high))
}
