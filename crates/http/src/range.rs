//! Which bytes a `Range` field asks for (RFC 9110 §14).
//!
//! A field that is malformed, names another unit or asks for several ranges is ignored, as §14.2 lets a
//! server do: the whole representation is always a right answer.

use std::ops::Range;

/// What of a representation is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// All of it: 200.
    Whole,
    /// These bytes, at least one, all of them within the representation: 206.
    One(Range<u64>),
    /// Nothing that was asked for exists: 416.
    Unsatisfiable,
}

/// Selects what `value`, the only `Range` field of a GET request, asks for of a representation of `size`
/// bytes. Ranges have no meaning for other methods (RFC 9110 §14.2).
pub fn select(value: &[u8], size: u64) -> Ranges {
    let Some(set) = value.split_at_checked(6).filter(|(unit, _)| unit.eq_ignore_ascii_case(b"bytes=")) else {
        return Ranges::Whole;
    };
    match only_member(set.1).and_then(Spec::parse) {
        Some(spec) => spec.of(size),
        None => Ranges::Whole,
    }
}

/// The one member of a list; empty members count for nothing (RFC 9110 §5.6.1.2).
fn only_member(list: &[u8]) -> Option<&[u8]> {
    // Blanks belong to the commas: none may stand in front of a first member.
    if list.starts_with(b" ") || list.starts_with(b"\t") {
        return None;
    }
    let mut members =
        list.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty());
    let first = members.next()?;
    members.next().is_none().then_some(first)
}

/// A well-formed range of bytes, of a representation of any size.
#[derive(Clone, Copy)]
enum Spec {
    /// From a position to another, both included.
    Between(u64, u64),
    /// So many bytes at the end.
    Suffix(u64),
}

impl Spec {
    fn parse(member: &[u8]) -> Option<Spec> {
        let hyphen = member.iter().position(|&byte| byte == b'-')?;
        let (first, last) = (&member[..hyphen], &member[hyphen + 1..]);
        match (first.is_empty(), last.is_empty()) {
            (true, _) => Some(Spec::Suffix(clamped(last)?)),
            (false, true) => Some(Spec::Between(clamped(first)?, u64::MAX)),
            (false, false) => {
                let (first, last) = (clamped(first)?, clamped(last)?);
                (first <= last).then_some(Spec::Between(first, last))
            }
        }
    }

    fn of(self, size: u64) -> Ranges {
        match self {
            Spec::Suffix(0) => Ranges::Unsatisfiable,
            // Satisfiable, and yet there is no byte that a `Content-Range` could name.
            Spec::Suffix(_) if size == 0 => Ranges::Whole,
            Spec::Suffix(count) => Ranges::One(size.saturating_sub(count)..size),
            Spec::Between(first, _) if first >= size => Ranges::Unsatisfiable,
            Spec::Between(first, last) => Ranges::One(first..last.min(size - 1) + 1),
        }
    }
}

/// A number of decimal digits and nothing else. One that does not fit is past the end of every file, and
/// so is the greatest that does.
fn clamped(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(
        digits.iter().fold(0u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'))),
    )
}

#[cfg(test)]
mod tests {
    use super::Ranges::{One, Unsatisfiable, Whole};
    use super::*;

    #[track_caller]
    fn check(value: &str, size: u64, expected: Ranges) {
        assert_eq!(select(value.as_bytes(), size), expected, "{value:?} of {size} bytes");
    }

    #[test]
    fn a_range_ends_with_the_representation() {
        check("bytes=0-0", 10, One(0..1));
        check("bytes=2-5", 10, One(2..6));
        check("bytes=2-", 10, One(2..10));
        check("bytes=9-9", 10, One(9..10));
        check("bytes=9-10", 10, One(9..10));
        check("bytes=0-", 10, One(0..10));
    }

    #[test]
    fn a_suffix_is_at_most_everything() {
        check("bytes=-1", 10, One(9..10));
        check("bytes=-10", 10, One(0..10));
        check("bytes=-11", 10, One(0..10));
    }

    #[test]
    fn h34_numbers_past_every_end_are_clamped() {
        check("bytes=0-18446744073709551615", 10, One(0..10));
        check("bytes=0-18446744073709551616", 10, One(0..10));
        check("bytes=0-99999999999999999999999999999999", u64::MAX, One(0..u64::MAX));
        check("bytes=-99999999999999999999999999999999", 10, One(0..10));
        check("bytes=00000000000000000000000000000001-2", 10, One(1..3));
    }

    #[test]
    fn h34_what_no_byte_satisfies_is_unsatisfiable() {
        check("bytes=10-", 10, Unsatisfiable);
        check("bytes=10-12", 10, Unsatisfiable);
        check("bytes=18446744073709551616-", 10, Unsatisfiable);
        check("bytes=-0", 10, Unsatisfiable);
        check("bytes=0-", 0, Unsatisfiable);
        check("bytes=-0", 0, Unsatisfiable);
    }

    #[test]
    fn a_suffix_of_an_empty_representation_is_all_of_it() {
        check("bytes=-5", 0, Whole);
    }

    #[test]
    fn h34_what_is_malformed_is_ignored() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=5-2",
            "bytes=a-b",
            "bytes=1-b",
            "bytes=1",
            "bytes=--1",
            "bytes=1--2",
            "bytes=1-2-3",
            "bytes=+1-2",
            "bytes=0x1-2",
            "bytes= 1-2",
            "bytes=1 -2",
            "bytes=1- 2",
            "bytes =1-2",
            " bytes=1-2",
            "bytes:1-2",
            "byte=1-2",
            "lines=1-2",
            "bytes=\t1-2",
            "bytes=,",
            "bytes=1-2;",
        ] {
            check(value, 10, Whole);
        }
    }

    #[test]
    fn units_are_compared_without_regard_to_case() {
        check("Bytes=1-2", 10, One(1..3));
        check("BYTES=1-2", 10, One(1..3));
    }

    #[test]
    fn several_ranges_are_answered_with_everything() {
        check("bytes=0-0,2-3", 10, Whole);
        check("bytes=0-0, -1", 10, Whole);
        check("bytes=20-30,40-50", 10, Whole);
    }

    #[test]
    fn empty_members_of_the_list_count_for_nothing() {
        check("bytes=1-2,", 10, One(1..3));
        check("bytes=, ,1-2 , ,", 10, One(1..3));
    }
}
