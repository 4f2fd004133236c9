//! A part of all tests, for runs that would otherwise take hours.

use std::str::FromStr;

use crate::generate::SeededRandom;

/// A part of the tests. The name of a test determines its part: each part is a random sample, the same on every
/// machine, and all parts together contain all tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuitePart {
    /// The number of this part, from 1 to `of`.
    number: usize,
    /// The number of parts, at least 1.
    of: usize,
}

impl SuitePart {
    /// The part in `TENFOLD_TEST_PART`; `None` if it is unset.
    pub fn asked_for() -> Result<Option<SuitePart>, String> {
        let Some(value) = std::env::var_os("TENFOLD_TEST_PART") else { return Ok(None) };
        let part = value.to_string_lossy().parse().map_err(|why| format!("TENFOLD_TEST_PART: {why}"))?;
        Ok(Some(part))
    }

    /// Whether the part contains the test of this name.
    pub fn has(self, name: &str) -> bool {
        place(name, self.of) + 1 == self.number
    }
}

/// A pseudo-random number below `of` for a name, the same on every machine.
pub(crate) fn place(name: &str, of: usize) -> usize {
    // FNV-1a with a final mix, because names differ in few bytes, mostly the last ones.
    let sum = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    SeededRandom::new(sum).below(of)
}

impl FromStr for SuitePart {
    type Err = String;

    fn from_str(text: &str) -> Result<SuitePart, String> {
        let numbers =
            text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) => Ok(SuitePart { number, of }),
            _ => Err(format!("{text:?} is no part; the third of fifty parts is 3/50")),
        }
    }
}
