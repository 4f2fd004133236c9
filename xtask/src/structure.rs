//! The structure inside each crate: few files and folders at its top, few levels, no upward imports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::imports::{Imports, Module};

/// The most files and folders at the top of a crate.
const MOST_ENTRIES: usize = 12;
/// The most levels of a crate: an entry is one level above the highest entry that it imports from.
const MOST_LEVELS: usize = 8;
/// The most circles of files in the whole workspace.
const MOST_CIRCLES: usize = 3;

/// Checks crates, each given by its folder and its sources (paths relative to `src`, with text).
pub(crate) fn check(crates: &BTreeMap<String, Vec<(PathBuf, String)>>) -> Vec<String> {
    let (mut broken, mut all_circles) = (Vec::new(), Vec::new());
    for (folder, sources) in crates {
        let imports = Imports::of(sources);
        let of_files: Vec<String> = circles(&imports.arrows)
            .iter()
            .map(|circle| {
                format!("{folder}/src: {}", names(circle.iter().map(|module| shown(&imports, module))))
            })
            .collect();
        broken.extend(entries(folder, &imports));
        all_circles.extend(of_files);
    }
    if all_circles.len() > MOST_CIRCLES {
        let (count, list) = (all_circles.len(), all_circles.join("\n  "));
        broken.push(format!("{count} circles of files import each other; at most {MOST_CIRCLES}:\n  {list}"));
    }
    broken
}

/// The violations among the entries at the top of one crate.
fn entries(folder: &str, imports: &Imports) -> Vec<String> {
    let top = |module: &Module| module.first().cloned().unwrap_or_else(|| "the root".to_owned());
    let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for module in imports.files.keys() {
        let targets = imports.arrows.get(module).into_iter().flatten().map(top);
        let targets = targets.filter(|target| *target != top(module));
        arrows.entry(top(module)).or_default().extend(targets);
    }
    let mut broken = Vec::new();
    if arrows.len() > MOST_ENTRIES {
        let count = arrows.len();
        broken.push(format!("{folder}/src: {count} files and folders at the top; at most {MOST_ENTRIES}"));
    }
    let circles = circles(&arrows);
    for circle in &circles {
        let ties = circle.iter().flat_map(|from| {
            let targets = arrows[from].intersection(circle);
            targets.map(move |to| format!("{from} -> {to}"))
        });
        broken.push(format!("{folder}/src: a circle at the top: {}", names(ties)));
    }
    // A circle has no levels.
    if circles.is_empty() {
        let levels = arrows.keys().map(|entry| level(entry, &arrows)).max().unwrap_or_default();
        if levels > MOST_LEVELS {
            broken.push(format!("{folder}/src: {levels} levels; at most {MOST_LEVELS}"));
        }
    }
    broken
}

fn names(all: impl Iterator<Item = String>) -> String {
    all.collect::<Vec<_>>().join(", ")
}

fn shown(imports: &Imports, module: &Module) -> String {
    imports.files[module].display().to_string()
}

/// The groups of nodes in which each node reaches every other.
fn circles<N: Ord + Clone>(arrows: &BTreeMap<N, BTreeSet<N>>) -> BTreeSet<BTreeSet<N>> {
    let reached: BTreeMap<&N, BTreeSet<N>> = arrows.keys().map(|from| (from, reach(from, arrows))).collect();
    let of = |node: &N| -> BTreeSet<N> {
        reached[node]
            .iter()
            .filter(|other| reached.get(other).is_some_and(|back| back.contains(node)))
            .cloned()
            .collect()
    };
    arrows.keys().map(of).filter(|circle| !circle.is_empty()).collect()
}

/// The nodes reachable from `from`.
fn reach<N: Ord + Clone>(from: &N, arrows: &BTreeMap<N, BTreeSet<N>>) -> BTreeSet<N> {
    let (mut found, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(node) = left.pop() {
        left.extend(arrows.get(node).into_iter().flatten().filter(|next| found.insert((*next).clone())));
    }
    found
}

fn level(entry: &str, arrows: &BTreeMap<String, BTreeSet<String>>) -> usize {
    let below = arrows.get(entry).into_iter().flatten().map(|next| level(next, arrows));
    1 + below.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(crates: &[(&str, &[(String, String)])]) -> Vec<String> {
        let sources = |files: &[(String, String)]| {
            files.iter().map(|(file, text)| (PathBuf::from(file), text.clone())).collect()
        };
        check(&crates.iter().map(|(folder, files)| ((*folder).to_owned(), sources(files))).collect())
    }

    fn file(name: &str, text: &str) -> (String, String) {
        (name.to_owned(), text.to_owned())
    }

    /// `count` files, each of which imports the next.
    fn chain(count: usize) -> Vec<(String, String)> {
        let one = |number: usize| file(&format!("m{number}.rs"), &format!("use crate::m{};", number + 1));
        (1..count).map(one).chain([file(&format!("m{count}.rs"), "")]).collect()
    }

    #[test]
    fn a_circle_at_the_top_is_named_with_its_arrows() {
        let files = [file("a/x.rs", "use crate::b::Y;"), file("b.rs", "use crate::a;"), file("a/mod.rs", "")];
        let said = broken(&[("crates/new", &files)]);
        assert_eq!(said, ["crates/new/src: a circle at the top: a -> b, b -> a"]);
        assert!(broken(&[("crates/new", &[file("a.rs", "use crate::b;"), file("b.rs", "")])]).is_empty());
    }

    #[test]
    fn entries_and_levels_have_a_bound() {
        assert!(broken(&[("crates/new", &chain(MOST_LEVELS))]).is_empty());
        let said = broken(&[("crates/new", &chain(MOST_LEVELS + 1))]);
        assert_eq!(said, ["crates/new/src: 9 levels; at most 8"]);
        let flat =
            |count: usize| (0..count).map(|number| file(&format!("m{number}.rs"), "")).collect::<Vec<_>>();
        assert!(broken(&[("crates/new", &flat(MOST_ENTRIES))]).is_empty());
        let said = broken(&[("crates/new", &flat(MOST_ENTRIES + 1))]);
        assert_eq!(said, ["crates/new/src: 13 files and folders at the top; at most 12"]);
    }

    #[test]
    fn circles_of_files_are_counted_in_the_whole_workspace() {
        let pair = |folder: &str| {
            [
                file(&format!("{folder}/a.rs"), "use super::b;"),
                file(&format!("{folder}/b.rs"), "use super::a;"),
            ]
        };
        let two = [pair("x"), pair("y")].concat();
        assert!(broken(&[("crates/new", &two), ("crates/other", &pair("x"))]).is_empty(), "three");
        let said = broken(&[("crates/new", &two), ("crates/other", &two)]);
        assert!(
            said[0].starts_with("4 circles of files") && said[0].contains("crates/other/src: y/a.rs, y/b.rs")
        );
    }
}
