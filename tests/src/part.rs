//! A part of all tests, for runs that would otherwise take hours.

use std::str::FromStr;

use crate::generate::SeededRandom;

/// One of several equal parts. The name of a test decides its part: each part is a random sample, the same on every
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
    ///
    /// # Errors
    /// It is not a valid part.
    pub fn asked_for() -> Result<Option<SuitePart>, String> {
        let Some(value) = std::env::var_os("TENFOLD_TEST_PART") else { return Ok(None) };
        let part = value.to_string_lossy().parse().map_err(|why| format!("TENFOLD_TEST_PART: {why}"))?;
        Ok(Some(part))
    }

    /// Whether the part contains the test of this name.
    pub fn has(self, name: &str) -> bool {
        // FNV-1a with a final mix, because names differ in few bytes, mostly the last ones.
        let sum = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        SeededRandom::new(sum).below(self.of) + 1 == self.number
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_is_in_one_part_and_parts_are_about_equal() {
        let names: Vec<String> = (0..2000).map(|at| format!("theme::engine::case_{at}")).collect();
        let parts: Vec<SuitePart> =
            (1..=10).map(|number| format!("{number}/10").parse().expect("a part")).collect();
        for name in &names {
            assert_eq!(parts.iter().filter(|part| part.has(name)).count(), 1, "{name}");
        }
        for part in &parts {
            let count = names.iter().filter(|name| part.has(name)).count();
            assert!((120..280).contains(&count), "{part:?} has {count} of 2,000");
        }
    }

    #[test]
    fn invalid_parts_are_rejected() {
        for text in ["", "3", "0/5", "6/5", "1/0", "a/b", "1/2/3", "-1/5"] {
            assert!(text.parse::<SuitePart>().is_err(), "{text:?}");
        }
        assert_eq!("1/1".parse(), Ok(SuitePart { number: 1, of: 1 }));
    }
}
