//! The numbers of cases in the book: each case has tests, and the names of numbered tests begin with numbers of cases.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tenfold_tests::binary::workspace;
use tenfold_tests::cases;
use tenfold_tests::harness::Theme;

pub(crate) const THEME: Theme = Theme {
    name: "hardening",
    cases: cases![Once: every_case_in_the_book_has_its_test_and_every_numbered_test_its_case],
};

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The cells of each row of the tables on a page.
fn rows(page: &str) -> Vec<Vec<String>> {
    let text = read(&workspace().join(page));
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.map(|row| row.split(" | ").map(str::to_owned).collect()).collect()
}

/// The numbers at the start of a name: `h08_h11_chunks` has 8 and 11.
fn numbers(name: &str) -> impl Iterator<Item = u32> {
    name.split('_').map_while(|part| {
        let digits = part.strip_prefix('h').filter(|digits| matches!(digits.len(), 2 | 3))?;
        digits.parse().ok()
    })
}

/// Adds the numbers in the names of functions in all sources below `folder`.
fn tested(folder: &Path, found: &mut BTreeSet<u32>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("read {}: {error}", folder.display()));
    for path in entries.map(|entry| entry.expect("a folder of sources can be read").path()) {
        if path.is_dir() {
            tested(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.extend(read(&path).lines().filter_map(|line| line.split("fn ").nth(1)).flat_map(numbers));
        }
    }
}

fn every_case_in_the_book_has_its_test_and_every_numbered_test_its_case() {
    let mut tests = BTreeSet::new();
    ["tests/suite", "crates"].iter().for_each(|folder| tested(&workspace().join(folder), &mut tests));
    let page = rows("docs/internals/hardening.md");
    let all: Vec<u32> = page.iter().filter_map(|row| row[0].parse().ok()).collect();
    let cases: BTreeSet<u32> = all.iter().copied().collect();
    assert_eq!(all.len(), cases.len(), "docs/internals/hardening.md has a number twice");
    assert_eq!(cases, tests, "cases of docs/internals/hardening.md, and numbers of tests (hNN_)");

    let page = rows("docs/internals/threat-model.md");
    let promises: Vec<_> = page.iter().filter(|row| !matches!(&*row[0], "cannot" | "---")).collect();
    assert!(promises.len() > 20, "docs/internals/threat-model.md has {} rows", promises.len());
    for row in promises {
        for number in row[2].split(", ") {
            let known = number.parse().is_ok_and(|number| cases.contains(&number));
            assert!(known, "docs/internals/threat-model.md: there is no case {number:?}: {}", row[0]);
        }
    }
}
