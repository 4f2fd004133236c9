//! A published sentence, and the rule that decides whether it holds.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::measure::{Measure, show_number};
use crate::statistics::decision::Direction;

/// Two cells whose values are compared within a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellPair {
    /// The numerator of the ratio.
    pub of: String,
    /// The denominator of the ratio.
    pub to: String,
}

/// The side of a limit on which a value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// At least the limit.
    AtLeast,
    /// At most the limit.
    AtMost,
}

/// The rule that decides about a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum VerdictRule {
    /// The ratio of two cells is above, below, or at 1.
    Ratio {
        /// The cells.
        pair: CellPair,
        /// The claimed side.
        is: Direction,
    },
    /// One cell is better than each of several others.
    Best {
        /// The cell that the claim calls best.
        of: String,
        /// The others.
        among: Vec<String>,
    },
    /// A value, or the ratio of two values, is on one side of a limit.
    Bound {
        /// The cell.
        of: String,
        /// The denominator, if the rule is about a ratio.
        to: Option<String>,
        /// The side.
        side: Side,
        /// The limit.
        limit: f64,
    },
    /// A count of events is on one side of a limit in each trial. One trial is enough for a verdict.
    Count {
        /// The cell.
        of: String,
        /// The side.
        side: Side,
        /// The limit.
        limit: f64,
    },
    /// The named level is the first of several levels with a value above a limit.
    FirstFailure {
        /// The levels, in order.
        levels: Vec<String>,
        /// The level that fails first according to the claim.
        at: String,
        /// The value above which a level has failed.
        limit: f64,
    },
}

/// The same comparison without a confound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confound {
    /// The confound in words.
    pub name: String,
    /// The cells to compare without the confound.
    pub pair: CellPair,
}

/// A condition for the test of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Requirement {
    /// A number of cores.
    Cores(usize),
    /// A second machine, so that the client does not compete with the server.
    SecondMachine,
    /// A network that is slower than memory.
    Network,
    /// A memory limit on the server, so that files do not stay cached.
    MemoryLimit,
    /// A server of the museum with the published mistake.
    Museum(String),
    /// An instrument, such as `strace`.
    Instrument(String),
}

/// A published sentence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedClaim {
    /// The sentence.
    pub says: String,
    /// The published value or ratio, in words.
    pub published: String,
    /// The published ratio or value, as a number.
    pub value: Option<f64>,
    /// The measure.
    pub measure: Measure,
    /// The rule; fixed before a run.
    pub rule: VerdictRule,
    /// Whether the claim shares the bound on false differences with the other primary claims.
    pub primary: bool,
    /// A confound that may explain the difference.
    pub confound: Option<Confound>,
    /// Conditions for the test of the claim.
    pub needs: Vec<Requirement>,
}

impl PublishedClaim {
    /// Returns the primary claim of a study, which has no publication.
    pub fn of_study(says: String, measure: Measure, rule: VerdictRule) -> PublishedClaim {
        let (published, needs) = (String::new(), Vec::new());
        PublishedClaim { says, published, value: None, measure, rule, primary: true, confound: None, needs }
    }

    /// The cells that the rule and the confound name.
    pub fn cells(&self) -> Vec<&str> {
        let mut all: Vec<&str> = match &self.rule {
            VerdictRule::Ratio { pair, .. } => vec![&pair.of, &pair.to],
            VerdictRule::Best { of, among } => {
                among.iter().map(String::as_str).chain([of.as_str()]).collect()
            }
            VerdictRule::Bound { of, to, .. } => to.iter().map(String::as_str).chain([of.as_str()]).collect(),
            VerdictRule::Count { of, .. } => vec![of],
            VerdictRule::FirstFailure { levels, .. } => levels.iter().map(String::as_str).collect(),
        };
        all.extend(self.confound.iter().flat_map(|confound| [&*confound.pair.of, &*confound.pair.to]));
        all
    }

    /// The pairs of cells whose ratios have an interval.
    pub fn pairs(&self) -> Vec<CellPair> {
        let pair = |of: &String, to: &String| CellPair { of: of.clone(), to: to.clone() };
        let mut all = match &self.rule {
            VerdictRule::Ratio { pair, .. } => vec![pair.clone()],
            VerdictRule::Best { of, among } => among.iter().map(|other| pair(of, other)).collect(),
            VerdictRule::Bound { of, to: Some(to), .. } => vec![pair(of, to)],
            _ => Vec::new(),
        };
        all.extend(self.confound.iter().map(|confound| confound.pair.clone()));
        all
    }
}

/// The rule in words.
impl fmt::Display for PublishedClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.measure.name();
        let side = |side: &Side| if *side == Side::AtLeast { "at least" } else { "at most" };
        match &self.rule {
            VerdictRule::Ratio { pair, is } => {
                let is = match is {
                    Direction::Greater => "above 1",
                    Direction::Less => "below 1",
                    Direction::Equal => "1",
                };
                write!(f, "{name} of {} / {} is {is}", pair.of, pair.to)
            }
            VerdictRule::Best { of, among } => {
                write!(f, "{of} has the best {name} among {}", among.join(", "))
            }
            VerdictRule::Bound { of, to, side: at, limit } => {
                write!(f, "{name} of {of}")?;
                if let Some(to) = to {
                    write!(f, " / {to}")?;
                }
                write!(f, " is {} {}", side(at), show_number(*limit))
            }
            VerdictRule::Count { of, side: at, limit } => {
                write!(f, "{name} of {of} is {} {} in each trial", side(at), show_number(*limit))
            }
            VerdictRule::FirstFailure { levels, at, limit } => write!(
                f,
                "{at} is the first of {} with {name} above {}",
                levels.join(", "),
                show_number(*limit)
            ),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Requirement::Cores(count) => write!(f, "{count} cores"),
            Requirement::SecondMachine => f.write_str("a second machine for the client"),
            Requirement::Network => f.write_str("a network that is slower than memory"),
            Requirement::MemoryLimit => f.write_str("a memory limit on the server"),
            Requirement::Museum(name) => write!(f, "a server with the published mistake: {name}"),
            Requirement::Instrument(name) => write!(f, "an instrument: {name}"),
        }
    }
}
