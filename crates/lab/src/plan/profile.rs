//! Length and precision of a run.

use serde::{Deserialize, Serialize};

/// Length and precision of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Three minutes: five findings.
    Smoke,
    /// Thirty minutes.
    #[default]
    Quick,
    /// Hours.
    Full,
}

impl Profile {
    /// The profiles by name.
    pub const WORDS: [(&str, Profile); 3] =
        [("smoke", Profile::Smoke), ("quick", Profile::Quick), ("full", Profile::Full)];

    /// Selects the value of this profile.
    fn of<T: Copy>(self, values: [T; 3]) -> T {
        values[self as usize]
    }

    /// Returns the word that selects the profile, such as `quick`.
    pub fn name(self) -> &'static str {
        self.of(Profile::WORDS).0
    }

    /// The default seconds of a run.
    pub fn seconds(self) -> u64 {
        self.of([170, 30 * 60, 12 * 3600])
    }

    /// Milliseconds of a trial.
    pub fn milliseconds(self) -> u64 {
        self.of([350, 1_500, 5_000])
    }

    /// The margin of "no difference".
    pub fn margin(self) -> f64 {
        self.of([0.10, 0.10, 0.05])
    }

    /// The most blocks of an experiment.
    pub fn most_blocks(self) -> usize {
        self.of([8, 20, 80])
    }

    /// Blocks of an experiment whose claims are counts.
    pub fn counted_blocks(self) -> usize {
        self.of([1, 3, 8])
    }

    /// The most attempts at a disturbed block.
    pub fn attempts(self) -> u32 {
        self.of([1, 2, 4])
    }
}
