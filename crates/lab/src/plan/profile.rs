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

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Smoke => "smoke",
            Profile::Quick => "quick",
            Profile::Full => "full",
        }
    }

    /// Seconds of a run, if the user does not say.
    pub fn seconds(self) -> u64 {
        match self {
            Profile::Smoke => 170,
            Profile::Quick => 30 * 60,
            Profile::Full => 12 * 3600,
        }
    }

    /// Milliseconds of a trial.
    pub fn milliseconds(self) -> u64 {
        match self {
            Profile::Smoke => 350,
            Profile::Quick => 1_500,
            Profile::Full => 5_000,
        }
    }

    /// The margin of "no difference".
    pub fn margin(self) -> f64 {
        match self {
            Profile::Smoke | Profile::Quick => 0.10,
            Profile::Full => 0.05,
        }
    }

    /// Blocks of an experiment at most.
    pub fn most_blocks(self) -> usize {
        match self {
            Profile::Smoke => 8,
            Profile::Quick => 20,
            Profile::Full => 80,
        }
    }

    /// Blocks of an experiment whose claims are counts.
    pub fn counted_blocks(self) -> usize {
        match self {
            Profile::Smoke => 1,
            Profile::Quick => 3,
            Profile::Full => 8,
        }
    }

    /// Attempts at a block that is disturbed.
    pub fn attempts(self) -> u32 {
        match self {
            Profile::Smoke => 1,
            Profile::Quick => 2,
            Profile::Full => 4,
        }
    }
}
