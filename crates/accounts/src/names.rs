//! Names of members: their syntax and equality.
//!
//! A name is displayed as typed, in Unicode's composed form, and looked up by its *key*. The key ignores case,
//! compatibility forms and confusable letters (UTS #39 skeletons). A capital can look like a letter that its small
//! letter does not look like (`I` and `l`), so names also differ in their *look*.

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;
use unicode_security::confusable_detection::skeleton;

/// The least number of characters of a name.
pub const SHORTEST: usize = 2;
/// The greatest number of characters of a name.
pub const LONGEST: usize = 32;
/// The greatest length of a key or look in bytes: one letter may look like three.
const LONGEST_KEY: usize = 190;

/// A valid name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberName {
    shown: String,
    key: String,
    look: String,
}

/// The reason why a text is not a valid name.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum InvalidName {
    /// Fewer than [`SHORTEST`] characters.
    Short,
    /// More than [`LONGEST`] characters.
    Long,
    /// Characters other than letters, digits and `-_.+@`.
    Characters,
}

impl InvalidName {
    /// The explanation for the visitor.
    pub fn words(self) -> &'static str {
        match self {
            InvalidName::Short => "A name has at least 2 characters.",
            InvalidName::Long => "A name has at most 32 characters.",
            InvalidName::Characters => "A name has letters, digits and - _ . + @ only.",
        }
    }
}

impl MemberName {
    /// Parses a typed name.
    pub fn parse(typed: &str) -> Result<MemberName, InvalidName> {
        if typed.len() > 8 * LONGEST {
            return Err(InvalidName::Long);
        }
        let shown: String = typed.trim().nfkc().collect();
        let count = shown.chars().count();
        match () {
            () if count < SHORTEST => Err(InvalidName::Short),
            () if count > LONGEST => Err(InvalidName::Long),
            () if !shown.chars().all(|c| c.is_alphanumeric() || "-_.+@".contains(c)) => {
                Err(InvalidName::Characters)
            }
            () => {
                let (key, look) = (key(&shown), key(&skeleton(&shown).collect::<String>()));
                match key.chars().count() {
                    _ if key.len().max(look.len()) > LONGEST_KEY => Err(InvalidName::Long),
                    // Blank letters such as U+3164 are not part of a key.
                    ..SHORTEST => Err(InvalidName::Characters),
                    _ => Ok(MemberName { shown, key, look }),
                }
            }
        }
    }

    /// The name as displayed.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The key for lookups.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The key of the displayed skeleton.
    pub(crate) fn look(&self) -> &str {
        &self.look
    }
}

/// The skeleton of the lower-case name, in lower case again, because some skeletons are capital letters.
fn key(shown: &str) -> String {
    let lower: String = shown.to_lowercase().nfkc().collect();
    skeleton(&lower).collect::<String>().to_lowercase().nfkc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(typed: &str) -> String {
        MemberName::parse(typed).unwrap_or_else(|why| panic!("{typed:?}: {why:?}")).key
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
    fn h68_names_that_look_alike_have_the_same_look() {
        let look = |typed| MemberName::parse(typed).expect("a name").look;
        // U+041D and U+0412 are Cyrillic, U+13CF is Cherokee, and the others are Latin.
        for (one, other) in [
            ("Hans", "\u{41d}ans"),
            ("bob", "\u{412}OB"),
            ("Bob", "\u{13cf}ob"),
            ("alice", "aIice"),
            ("Alice", "aIice"),
            ("Bill", "biII"),
            ("michael", "MichaeI"),
            ("Emily", "EMiIy"),
            ("Ian", "lAn"),
        ] {
            assert_eq!(look(one), look(other), "{one} {other}");
        }
        for (one, other) in [("Ian", "Dan"), ("Mia", "Mla"), ("josé", "jose"), ("Вова", "Вера")] {
            assert_ne!(look(one), look(other), "{one} {other}");
        }
    }

    #[test]
    fn invalid_names_are_rejected() {
        for (typed, why) in [
            ("", InvalidName::Short),
            (" a ", InvalidName::Short),
            (&"x".repeat(33), InvalidName::Long),
            (&"x".repeat(100_000), InvalidName::Long),
            (&"\u{1f84}".repeat(32), InvalidName::Long),
            ("a b", InvalidName::Characters),
            ("a\u{200b}b", InvalidName::Characters),
            ("a\u{202e}b", InvalidName::Characters),
            ("a\0b", InvalidName::Characters),
            ("\u{3164}\u{3164}", InvalidName::Characters),
            ("a\u{1160}", InvalidName::Characters),
            ("<b>ann</b>", InvalidName::Characters),
            ("' OR 1=1 --", InvalidName::Characters),
        ] {
            assert_eq!(MemberName::parse(typed), Err(why), "{typed:?}");
        }
        assert!(MemberName::parse(&"x".repeat(32)).is_ok());
        assert_eq!(MemberName::parse(" Zoë ").expect("a name").shown(), "Zoë");
        assert!(MemberName::parse("ann@example.org").is_ok());
    }
}
