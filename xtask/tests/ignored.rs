//! The last lines of `cargo test --workspace`: the ignored tests, their needs, and the command that runs them.
//!
//! Cargo runs test targets in the order of packages and their kinds, and documentation tests after them. So this target
//! is the last as long as no library has documentation tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The attribute of an ignored test before its reason.
const MARK: &str = "#[ignore = \"";

fn main() {
    // A filter, a list, or a run that includes ignored tests.
    if std::env::args().len() > 1 {
        return;
    }
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is a folder of the workspace");
    let mut by_reason: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in sources(root) {
        let text =
            fs::read_to_string(&file).unwrap_or_else(|why| panic!("cannot read {}: {why}", file.display()));
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        for (reason, test) in ignored(&text) {
            by_reason.entry(reason).or_default().push(format!("{name}: {test}"));
        }
    }
    for (reason, tests) in &by_reason {
        println!("\nignored, {reason}");
        tests.iter().for_each(|test| println!("    {test}"));
    }
    println!("\nevery test, also of the whole server on every configuration: cargo xtask test");
}

/// The Rust files of all packages, in order.
fn sources(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), ["crates", "xtask/src"].map(|name| root.join(name)).to_vec());
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).unwrap_or_else(|why| panic!("cannot read {}: {why}", folder.display()));
        for path in entries.map(|entry| entry.expect("the folder stays as it is").path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The reason and the name of each ignored test of a file.
fn ignored(text: &str) -> Vec<(String, String)> {
    let mut lines = text.lines().map(str::trim);
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let Some(reason) = line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix("\"]")) else {
            continue;
        };
        let function = lines.find_map(|line| line.strip_prefix("fn ")).unwrap_or_default();
        let name = function.split('(').next().unwrap_or_default();
        found.push((reason.to_owned(), name.to_owned()));
    }
    found
}
