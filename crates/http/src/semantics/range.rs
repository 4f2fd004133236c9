//! The bytes that a `Range` field demands (RFC 9110 §14).
//!
//! A field that is malformed, has another unit or too many ranges is ignored, as §14.2 permits: the whole
//! representation is always a correct response.

use std::ops::Range;

/// The part of a representation to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// 200: the whole representation.
    Whole,
    /// 206: these bytes of the representation, at least one.
    One(Range<u64>),
    /// 206 with [`crate::semantics::multipart::Multipart`]: at least two such ranges, in the order of the
    /// request. They do not overlap, so their sum never exceeds the whole.
    Many(Vec<Range<u64>>),
    /// 416: the requested bytes do not exist.
    Unsatisfiable,
}

/// The largest gap between two ranges that are merged: the head of a part is at least as long (RFC 9110
/// §15.3.7.2).
pub const NEAR: u64 = 80;

/// Selects the part of a representation of `size` bytes by `value`, the only `Range` field of a GET request.
/// Ranges have no meaning for other methods (RFC 9110 §14.2). More than `most` ranges select the whole
/// representation.
///
/// Every range of an empty representation is ignored. A slicing cache requests the first bytes of each file,
/// and would turn 416 into an error.
pub fn select(value: &[u8], size: u64, most: usize) -> Ranges {
    if size == 0 {
        return Ranges::Whole;
    }
    let Some((_, list)) = value.split_at_checked(6).filter(|(unit, _)| unit.eq_ignore_ascii_case(b"bytes="))
    else {
        return Ranges::Whole;
    };
    // White space is only allowed around commas, so none precedes the first member.
    if list.starts_with(b" ") || list.starts_with(b"\t") {
        return Ranges::Whole;
    }
    // Empty members of a list are ignored (RFC 9110 §5.6.1.2).
    let mut members =
        list.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty());
    let selected = match (members.next(), members.next()) {
        (None, _) => None,
        (Some(only), None) => Spec::parse(only).map(|spec| match spec.of(size) {
            Some(range) => Ranges::One(range),
            None => Ranges::Unsatisfiable,
        }),
        (Some(first), Some(second)) => several([first, second].into_iter().chain(members), size, most),
    };
    selected.unwrap_or(Ranges::Whole)
}

/// Returns the result of several ranges; None if a range is malformed, or if there are too many.
fn several<'v>(members: impl Iterator<Item = &'v [u8]>, size: u64, most: usize) -> Option<Ranges> {
    let mut parts = Vec::new();
    for (number, member) in members.enumerate() {
        if number == most {
            return None;
        }
        if let Some(range) = Spec::parse(member)?.of(size) {
            add(&mut parts, range);
        }
    }
    Some(match parts.len() {
        0 => Ranges::Unsatisfiable,
        1 => Ranges::One(parts.remove(0)),
        _ => Ranges::Many(parts),
    })
}

/// Adds a range to separate ranges. Ranges that overlap or are near are merged, at the position of the first
/// of them.
fn add(parts: &mut Vec<Range<u64>>, mut range: Range<u64>) {
    let near = |known: &Range<u64>, range: &Range<u64>| {
        known.start <= range.end.saturating_add(NEAR) && range.start <= known.end.saturating_add(NEAR)
    };
    let mut index = parts.len();
    while let Some(at) = parts.iter().position(|known| near(known, &range)) {
        let known = parts.remove(at);
        range = range.start.min(known.start)..range.end.max(known.end);
        index = index.min(at);
    }
    parts.insert(index, range);
}

/// A well-formed range, independent of the representation's size.
#[derive(Clone, Copy)]
enum Spec {
    /// From a first to a last position, inclusive.
    Between(u64, u64),
    /// This many bytes at the end.
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

    /// Returns the bytes in a nonempty representation of `size` bytes; None if they do not exist.
    fn of(self, size: u64) -> Option<Range<u64>> {
        match self {
            Spec::Suffix(0) => None,
            Spec::Suffix(count) => Some(size.saturating_sub(count)..size),
            Spec::Between(first, _) if first >= size => None,
            Spec::Between(first, last) => Some(first..last.min(size - 1) + 1),
        }
    }
}

/// Parses a decimal number. A number that does not fit becomes the maximum: both exceed the size of any file.
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
    use super::Ranges::{Many, One, Unsatisfiable, Whole};
    use super::*;

    #[track_caller]
    fn check(value: &str, size: u64, expected: Ranges) {
        assert_eq!(select(value.as_bytes(), size, 8), expected, "{value:?} of {size} bytes");
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
    fn h34_a_range_outside_the_file_is_unsatisfiable() {
        check("bytes=10-", 10, Unsatisfiable);
        check("bytes=10-12", 10, Unsatisfiable);
        check("bytes=18446744073709551616-", 10, Unsatisfiable);
        check("bytes=-0", 10, Unsatisfiable);
    }

    #[test]
    fn every_range_of_an_empty_representation_is_ignored() {
        for value in ["0-", "0-0", "0-1023", "5-", "-1", "-0", "0-,5-", "0-0,-1", "0-,-0"] {
            check(&format!("bytes={value}"), 0, Whole);
        }
    }

    #[test]
    fn h34_malformed_ranges_are_ignored() {
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
    fn ranges_that_lie_apart_are_parts_in_the_order_of_the_request() {
        check("bytes=0-0,200-299", 1000, Many(vec![0..1, 200..300]));
        check("bytes=500-, 0-0 ,200-299", 1000, Many(vec![500..1000, 0..1, 200..300]));
        check("bytes=0-0,-1", 1000, Many(vec![0..1, 999..1000]));
        check("bytes=-1,0-0", 1000, Many(vec![999..1000, 0..1]));
        check("bytes=0-18446744073709551615,5-5", 1000, One(0..1000));
    }

    #[test]
    fn ranges_that_overlap_or_are_near_become_one() {
        check("bytes=0-9,90-99", 1000, One(0..100));
        check("bytes=0-9,91-99", 1000, Many(vec![0..10, 91..100]));
        check("bytes=90-99,0-9", 1000, One(0..100));
        check("bytes=91-99,0-9", 1000, Many(vec![91..100, 0..10]));
        check("bytes=0-9,5-19", 1000, One(0..20));
        check("bytes=5-19,0-9", 1000, One(0..20));
        check("bytes=0-9,10-19", 1000, One(0..20));
        check("bytes=0-0,0-0,0-0", 1000, One(0..1));
        check("bytes=0-0,-1", 10, One(0..10));
        // A range between two others merges them, at the position of the first.
        check("bytes=0-0,900-900,400-400,200-349,100-199", 1000, Many(vec![0..1, 900..901, 100..401]));
        check("bytes=400-400,0-0,100-350", 1000, Many(vec![100..401, 0..1]));
        check("bytes=400-400,0-0,50-350", 1000, One(0..401));
    }

    #[test]
    fn parts_that_do_not_exist_are_left_out() {
        check("bytes=20-30,40-50", 10, Unsatisfiable);
        check("bytes=0-0,40-50", 10, One(0..1));
        check("bytes=2000-,0-0,500-500,-0", 1000, Many(vec![0..1, 500..501]));
    }

    #[test]
    fn a_malformed_range_invalidates_the_list() {
        for value in ["bytes=0-0,a-b", "bytes=0-0,5-2", "bytes=0-0,200", "bytes=0-0,-", "bytes=0-0;200-200"] {
            check(value, 1000, Whole);
        }
    }

    #[test]
    fn h33_more_ranges_than_the_bound_are_answered_with_everything() {
        let ranges = |count: usize| {
            let list: Vec<String> = (0..count).map(|n| format!("{}-{}", n * 100, n * 100)).collect();
            format!("bytes={}", list.join(","))
        };
        check(&ranges(8), 1_000_000, Many((0..8).map(|n| n * 100..n * 100 + 1).collect()));
        check(&ranges(9), 1_000_000, Whole);
        check(&ranges(1000), 1_000_000, Whole);
        // The bound also applies to ranges that would merge into one.
        let same = |count: usize| format!("bytes={}", vec!["0-999"; count].join(","));
        check(&same(8), 1_000_000, One(0..1000));
        check(&same(9), 1_000_000, Whole);
        check(&same(1000), 1_000_000, Whole);
    }

    #[test]
    fn empty_members_of_the_list_count_for_nothing() {
        check("bytes=1-2,", 10, One(1..3));
        check("bytes=, ,1-2 , ,", 10, One(1..3));
    }
}
