//! Names of members: what may be one, and when two are the same.
//!
//! A name is shown as it was typed, in Unicode's composed form, and looked up by its *key*, in which case,
//! compatibility forms and letters that look alike (UTS #39, confusable skeletons) are one.

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;
use unicode_security::confusable_detection::skeleton;

/// Characters of a name.
pub const SHORTEST: usize = 2;
/// Characters of a name at most.
pub const LONGEST: usize = 32;
/// Bytes of a key at most: one letter may look like three.
const LONGEST_KEY: usize = 190;

/// A name that can be registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    shown: String,
    key: String,
}

/// Why a text is no name.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum Unfit {
    /// Fewer than [`SHORTEST`] characters.
    Short,
    /// More than [`LONGEST`].
    Long,
    /// Something else than letters, digits and `-_.+@`.
    Characters,
}

impl Unfit {
    /// For whoever typed it.
    pub fn words(self) -> &'static str {
        match self {
            Unfit::Short => "A name has at least 2 characters.",
            Unfit::Long => "A name has at most 32 characters.",
            Unfit::Characters => "A name has letters, digits and - _ . + @ only.",
        }
    }
}

impl Name {
    /// Reads a name as it was typed.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(typed: &str) -> Result<Name, Unfit> {
        if typed.len() > 8 * LONGEST {
            return Err(Unfit::Long);
        }
        let shown: String = typed.trim().nfkc().collect();
        let count = shown.chars().count();
        match () {
            () if count < SHORTEST => Err(Unfit::Short),
            () if count > LONGEST => Err(Unfit::Long),
            () if !shown.chars().all(|c| c.is_alphanumeric() || "-_.+@".contains(c)) => {
                Err(Unfit::Characters)
            }
            () => {
                let key = key(&shown);
                if key.len() > LONGEST_KEY { Err(Unfit::Long) } else { Ok(Name { shown, key }) }
            }
        }
    }

    /// As it is shown.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// What it is looked up by.
    pub fn key(&self) -> &str {
        &self.key
    }
}

/// The skeleton is taken of lower case, and made lower case again: some skeletons are capital letters.
fn key(shown: &str) -> String {
    let lower: String = shown.to_lowercase().nfkc().collect();
    skeleton(&lower).collect::<String>().to_lowercase().nfkc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(typed: &str) -> String {
        Name::parse(typed).unwrap_or_else(|why| panic!("{typed:?}: {why:?}")).key
    }

    #[test]
    fn h68_names_that_look_alike_are_one() {
        for (one, other) in [
            ("Ann", "ann"),
            ("ANN", " ann "),
            ("paypal", "раураl"),
            ("admin", "аdmin"),
            ("ａｎｎ", "ann"),
            ("José", "Jose\u{301}"),
            ("bob", "b0b"),
            ("ﬁn", "fin"),
        ] {
            assert_eq!(key_of(one), key_of(other), "{one} {other}");
        }
        for (one, other) in [("ann", "anne"), ("josé", "jose"), ("a.b", "ab")] {
            assert_ne!(key_of(one), key_of(other), "{one} {other}");
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for (typed, why) in [
            ("", Unfit::Short),
            (" a ", Unfit::Short),
            (&"x".repeat(33), Unfit::Long),
            (&"x".repeat(100_000), Unfit::Long),
            ("a b", Unfit::Characters),
            ("a\u{200b}b", Unfit::Characters),
            ("a\u{202e}b", Unfit::Characters),
            ("a\0b", Unfit::Characters),
            ("<b>ann</b>", Unfit::Characters),
            ("' OR 1=1 --", Unfit::Characters),
        ] {
            assert_eq!(Name::parse(typed), Err(why), "{typed:?}");
        }
        assert!(Name::parse(&"x".repeat(32)).is_ok());
        assert_eq!(Name::parse(" Zoë ").expect("a name").shown(), "Zoë");
        assert!(Name::parse("ann@example.org").is_ok());
    }
}
