//! The pages of the book that name tests: every case has a test, each test is named, and each name exists.

use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use tenfold_tests::binary::workspace;
use tenfold_tests::cases;
use tenfold_tests::harness::Theme;

pub(crate) const THEME: Theme = Theme {
    name: "hardening",
    cases: cases![Once: every_case_in_the_book_has_its_test, every_test_of_the_threat_model_exists],
};

/// The numbers of existing cases.
const NUMBERS: [RangeInclusive<u32>; 4] = [1..=36, 39..=85, 88..=88, 96..=96];

/// Words of a text that are names of numbered tests.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| !numbers(word).is_empty()).collect()
}

/// The numbers at the start of a name: `h08_h11_chunks` has 8 and 11.
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
    let page = workspace().join("docs/internals/hardening.md");
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

/// Each row of the threat model names a test, or the number of a case (`h23_`), which represents all of its tests.
fn every_test_of_the_threat_model_exists() {
    let page = workspace().join("docs/internals/threat-model.md");
    let page = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let known = [functions("tests/suite"), functions("crates")].concat();
    let known: BTreeSet<&str> = known.lines().collect();
    let exists = |name: &str| match name.ends_with('_') {
        true => known.iter().any(|test| test.starts_with(name)),
        false => known.contains(name),
    };
    let rows: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")).collect();
    let rows = rows.iter().map(|row| row.split(" | ").collect::<Vec<_>>());
    let rows: Vec<_> =
        rows.filter(|cells| cells.len() == 3 && !matches!(cells[0], "cannot" | "---")).collect();
    assert!(rows.len() > 20, "the page has {} rows", rows.len());
    let mut missing = Vec::new();
    for cells in rows {
        let tests: Vec<&str> = cells[2].split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "{:?} names no test", cells[0]);
        missing.extend(tests.into_iter().filter(|name| !exists(name)));
    }
    assert!(missing.is_empty(), "docs/internals/threat-model.md names tests that do not exist: {missing:?}");
}
