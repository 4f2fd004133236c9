//! Passwords: rules for accepting them, and their hashes.

mod hash;

use serde::{Deserialize, Serialize};

use hash::normalised;
pub use hash::{Cost, GREATEST_MEMORY, Hasher};

/// The greatest length of a password in bytes.
pub const LONGEST: usize = 1024;

/// Words in the commonest passwords.
const COMMON: &str = include_str!("common.txt");
/// Keyboard rows and other common sequences.
const WALKS: &[&str] = &[
    "01234567890123456789",
    "abcdefghijklmnopqrstuvwxyz",
    "qwertyuiopasdfghjklzxcvbnm",
    "qwertzuiopasdfghjklyxcvbnm",
    "azertyuiopqsdfghjklmwxcvbn",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm",
    "1q2w3e4r5t6y7u8i9o0p",
    "zaq12wsxcde34rfvbgt56yhnmju7",
];

/// The reason why a text is rejected as a password.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum InvalidPassword {
    /// Fewer characters than this.
    Short(usize),
    /// More than [`LONGEST`] bytes.
    Long,
    /// One of the commonest passwords.
    Common,
    /// It equals the name, or nearly.
    Name,
}

impl InvalidPassword {
    /// The explanation for the visitor.
    pub fn words(self) -> String {
        match self {
            InvalidPassword::Short(least) => format!("A password has at least {least} characters."),
            InvalidPassword::Long => format!("A password has at most {LONGEST} bytes."),
            InvalidPassword::Common => "This password is too common. Choose another one.".into(),
            InvalidPassword::Name => "This password resembles the name. Choose another one.".into(),
        }
    }
}

/// Checks that `password` has at least `least` characters, is not common, and does not resemble the account `name`.
pub fn check(password: &str, name: &str, least: usize) -> Result<(), InvalidPassword> {
    if password.len() > LONGEST {
        return Err(InvalidPassword::Long);
    }
    let normal = normalised(password);
    if normal.chars().count() < least {
        return Err(InvalidPassword::Short(least));
    }
    let lower = normal.to_lowercase();
    // A password of digits contains no word.
    let word = Some(unmasked(trimmed(&lower))).filter(|word| !word.is_empty());
    if is_common(&lower) || is_common(&unmasked(&lower)) || word.is_some_and(|word| is_common(&word)) {
        return Err(InvalidPassword::Common);
    }
    let name = name.to_lowercase();
    if trimmed(&lower) == trimmed(&name) || lower == name {
        return Err(InvalidPassword::Name);
    }
    Ok(())
}

fn is_common(lower: &str) -> bool {
    let (core, first) = (trimmed(lower), lower.chars().next());
    let is_word = |word: &str| COMMON.lines().any(|line| line == word);
    let repeated = |text: &str| {
        // A repeated piece: aaaaaaaa, 12121212, passpasspass.
        (1..=text.len() / 2).any(|size| {
            text.len().is_multiple_of(size)
                && text.is_char_boundary(size)
                && text.as_bytes().chunks(size).all(|chunk| chunk == &text.as_bytes()[..size])
        })
    };
    let walks = |text: &str| {
        let backwards: String = text.chars().rev().collect();
        text.len() >= 4 && WALKS.iter().any(|walk| walk.contains(text) || walk.contains(&backwards))
    };
    core.is_empty() && lower.len() < 12
        || lower.chars().all(|c| Some(c) == first)
        || [lower, core].iter().any(|text| is_word(text) || repeated(text) || walks(text))
}

/// Removes the digits and signs around a word.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| !c.is_alphabetic())
}

/// Replaces signs by the letters that they imitate.
fn unmasked(lower: &str) -> String {
    lower
        .chars()
        .map(|c| match c {
            '@' | '4' => 'a',
            '3' => 'e',
            '1' | '!' => 'i',
            '0' => 'o',
            '$' | '5' => 's',
            '7' => 't',
            c => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commonest_passwords_are_refused_whatever_stands_around_them() {
        for common in [
            "password",
            "Password1",
            "P@ssw0rd!",
            "passw0rd123",
            "12345678",
            "123456789012",
            "87654321",
            "qwertyuiop",
            "QWERTY123!",
            "1q2w3e4r",
            "1qaz2wsx",
            "aaaaaaaa",
            "abababab",
            "iloveyou2",
            "Summer2026!",
            "letmein!!",
            "abcdefgh",
            "00000000",
            "!!!!!!!!!!",
            "passpass",
        ] {
            assert_eq!(check(common, "somebody", 8), Err(InvalidPassword::Common), "{common}");
        }
    }

    #[test]
    fn uncommon_passwords_are_accepted() {
        for good in [
            "correct horse battery",
            "xk7-Tqm2.p",
            "Gänseblümchen am Weg",
            "пароль на каждый день",
            "8439027718352",
        ] {
            assert_eq!(check(good, "somebody", 8), Ok(()), "{good}");
        }
    }

    #[test]
    fn length_is_counted_in_characters_and_bounded_in_bytes() {
        assert_eq!(check("xk7-Tqm", "ann", 8), Err(InvalidPassword::Short(8)));
        assert_eq!(check("xk7-Tqmä", "ann", 8), Ok(()));
        let long = "xk7-Tqm2".repeat(LONGEST / 8);
        assert_ne!(check(&long, "ann", 8), Err(InvalidPassword::Long));
        assert_eq!(check(&format!("{long}x"), "ann", 8), Err(InvalidPassword::Long));
    }

    #[test]
    fn the_name_is_no_password() {
        for password in ["Elisabetta", "elisabetta99", "!elisabetta!"] {
            assert_eq!(check(password, "Elisabetta", 8), Err(InvalidPassword::Name), "{password}");
        }
    }

    #[test]
    fn the_list_is_in_order_and_in_the_form_that_is_looked_for() {
        let words: Vec<_> = COMMON.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(words.len() > 300 && words.is_sorted());
        assert!(words.iter().all(|word| *word == word.to_lowercase() && !word.is_empty()));
    }
}
