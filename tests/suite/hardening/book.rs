//! The page of the book that lists every case: each has its test, and each test is named there.

use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use tenfold_tests::binary::workspace;
use tenfold_tests::cases;
use tenfold_tests::harness::Theme;

pub(crate) const THEME: Theme =
    Theme { name: "hardening", cases: cases![Every Once: every_case_in_the_book_has_its_test] };

/// Numbers of cases that there are. Those in between belong to parts that are not here yet.
const NUMBERS: [RangeInclusive<u32>; 4] = [1..=36, 39..=78, 80..=85, 88..=88];

/// Words of a text that are names of numbered tests.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| !numbers(word).is_empty()).collect()
}

/// The numbers that a name begins with: `h08_h11_chunks` has 8 and 11.
fn numbers(name: &str) -> Vec<u32> {
    let number = |part: &str| {
        let digits = part.strip_prefix('h').filter(|digits| digits.len() == 2)?;
        digits.parse().ok()
    };
    name.split('_').map_while(number).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("read {}: {error}", folder.display()));
    for path in entries.map(|entry| entry.expect("a folder of sources can be read").path()) {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Names of functions in all sources below `folder`.
fn functions(folder: &str) -> String {
    let mut found = Vec::new();
    sources(&workspace().join(folder), &mut found);
    let mut all = String::new();
    for path in found {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for line in text.lines().filter_map(|line| line.split("fn ").nth(1)) {
            all.push_str(line.split('(').next().unwrap_or_default());
            all.push('\n');
        }
    }
    all
}

fn every_case_in_the_book_has_its_test() {
    let page = workspace().join("docs/hardening.md");
    let page = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let (suite, crates) = (functions("tests/suite"), functions("crates"));
    let (suite, crates) = (names(&suite), names(&crates));
    let mut covered = BTreeSet::new();
    for row in page.lines().filter_map(|line| line.strip_prefix("| ")) {
        let mut cells = row.split(" | ");
        let Some(number) = cells.next().and_then(|cell| cell.trim().parse::<u32>().ok()) else { continue };
        let tests = names(cells.last().unwrap_or_default());
        assert!(!tests.is_empty(), "case {number} names no test");
        for test in &tests {
            assert!(suite.contains(test) || crates.contains(test), "there is no test {test}");
            assert!(numbers(test).contains(&number), "{test} is named for case {number}");
        }
        assert!(covered.insert(number), "case {number} stands twice");
    }
    let expected: BTreeSet<u32> = NUMBERS.into_iter().flatten().collect();
    assert_eq!(covered, expected, "the cases of the page");
    let untold: Vec<_> = suite.difference(&names(&page)).copied().collect();
    assert!(untold.is_empty(), "the page does not name {untold:?}");
}
