//! Goals of a search, and the measure that decides about each.

use crate::measure::Measure;
use crate::statistics::decision::Direction;

/// A goal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Goal {
    /// Responses per second.
    #[default]
    Throughput,
    /// The 99th percentile of the latency, at a rate that the default settings sustain.
    Latency,
    /// The memory of all server processes under load.
    Memory,
}

impl Goal {
    /// The goals by name.
    pub const WORDS: [(&str, Goal); 3] =
        [("throughput", Goal::Throughput), ("latency", Goal::Latency), ("memory", Goal::Memory)];

    /// Returns the word that selects the goal, such as `latency`.
    pub fn name(self) -> &'static str {
        Goal::WORDS[self as usize].0
    }

    /// The measure that decides.
    pub fn measure(self) -> Measure {
        match self {
            Goal::Throughput => Measure::Rate,
            Goal::Latency => Measure::P99,
            Goal::Memory => Measure::Pss,
        }
    }

    /// The side of 1 for the ratio of a better setting to the default.
    pub fn better(self) -> Direction {
        if self.measure().larger_is_better() { Direction::Greater } else { Direction::Less }
    }

    /// Converts a ratio to the default into a gain, which is above 1 for a better setting.
    pub(crate) fn gain(self, ratio: f64) -> f64 {
        if self.measure().larger_is_better() { ratio } else { 1.0 / ratio }
    }
}
