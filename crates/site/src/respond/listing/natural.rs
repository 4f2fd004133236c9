//! The natural order of names: `IMG_2` precedes `IMG_10`.

use std::cmp::Ordering;

/// A name, ordered as people count: numbers by their value, and letters without their case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NaturalName {
    lower: String,
    name: String,
}

impl NaturalName {
    pub(super) fn new(name: &str) -> NaturalName {
        NaturalName { lower: name.to_lowercase(), name: name.to_owned() }
    }
}

impl Ord for NaturalName {
    fn cmp(&self, other: &NaturalName) -> Ordering {
        natural(&self.lower, &other.lower).then_with(|| self.name.cmp(&other.name))
    }
}

impl PartialOrd for NaturalName {
    fn partial_cmp(&self, other: &NaturalName) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares two texts by their characters, but runs of digits by the number that they write.
fn natural(mut one: &str, mut other: &str) -> Ordering {
    loop {
        let (a, b) = (digits(one), digits(other));
        if !a.is_empty() && !b.is_empty() {
            let (left, right) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
            let numbers = left.len().cmp(&right.len()).then_with(|| left.cmp(right));
            if numbers.is_ne() {
                return numbers;
            }
            (one, other) = (&one[a.len()..], &other[b.len()..]);
            continue;
        }
        let (mut left, mut right) = (one.chars(), other.chars());
        match (left.next(), right.next()) {
            (Some(a), Some(b)) if a == b => (one, other) = (left.as_str(), right.as_str()),
            (a, b) => return a.cmp(&b),
        }
    }
}

/// Returns the digits at the beginning of a text.
fn digits(text: &str) -> &str {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_ordered_by_value() {
        let sorted = [
            "1.txt",
            "2.txt",
            "10.txt",
            "99999999999999999999998",
            "99999999999999999999999",
            "a",
            "A1b2",
            "a1b10",
            "a2",
            "IMG_1.jpg",
            "IMG_2.jpg",
            "img_002.jpg",
            "IMG_10.jpg",
            "img_10a.jpg",
            "v1.2",
            "v1.10",
            "é",
        ];
        let mut names = sorted.map(NaturalName::new);
        names.reverse();
        names.sort();
        assert_eq!(names.map(|name| name.name), sorted);
    }

    proptest! {
        /// Sorting panics or loses entries without a total order.
        #[test]
        fn the_order_is_total(names in prop::collection::vec("[01a-bA_é]{0,6}", 3)) {
            let [a, b, c] = [0, 1, 2].map(|at| NaturalName::new(&names[at]));
            prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
            prop_assert_eq!(a.cmp(&b).is_eq(), a == b);
            prop_assert!(a > b || b > c || a <= c);
        }
    }
}
