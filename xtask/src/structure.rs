//! The structure inside each crate: no circles of imports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::imports::{Imports, Module};

/// Finds circles of files, and of files and folders at the top of a crate. Each crate is given by its folder and its
/// sources (paths relative to `src`, with text).
pub(crate) fn check(crates: &BTreeMap<String, Vec<(PathBuf, String)>>) -> Vec<String> {
    let mut broken = Vec::new();
    for (folder, sources) in crates {
        let imports = Imports::of(sources);
        let shown = |module: &Module| imports.files[module].display().to_string();
        broken.extend(circles(&imports.arrows).iter().map(|circle| {
            format!("{folder}/src: files import each other: {}", names(circle.iter().map(shown)))
        }));
        broken.extend(circles_at_top(folder, &imports));
    }
    broken
}

/// Finds circles of the files and folders at the top of a crate.
fn circles_at_top(folder: &str, imports: &Imports) -> Vec<String> {
    let top = |module: &Module| module.first().cloned().unwrap_or_else(|| "the root".to_owned());
    let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, targets) in &imports.arrows {
        let targets = targets.iter().map(top).filter(|target| *target != top(module));
        arrows.entry(top(module)).or_default().extend(targets);
    }
    let shown = |circle: &BTreeSet<String>| {
        let ties = circle.iter().flat_map(|from| {
            let targets = arrows[from].intersection(circle);
            targets.map(move |to| format!("{from} -> {to}"))
        });
        format!("{folder}/src: a circle at the top: {}", names(ties))
    };
    circles(&arrows).iter().map(shown).collect()
}

fn names(all: impl Iterator<Item = String>) -> String {
    all.collect::<Vec<_>>().join(", ")
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

    #[test]
    fn a_circle_at_the_top_is_named_with_its_arrows() {
        let files = [file("a/x.rs", "use crate::b::Y;"), file("b.rs", "use crate::a;"), file("a/mod.rs", "")];
        let found = broken(&[("crates/new", &files)]);
        assert_eq!(found, ["crates/new/src: a circle at the top: a -> b, b -> a"]);
        assert!(broken(&[("crates/new", &[file("a.rs", "use crate::b;"), file("b.rs", "")])]).is_empty());
    }

    #[test]
    fn files_that_import_each_other_are_named() {
        let files = [file("x/a.rs", "use super::b;"), file("x/b.rs", "use super::a;")];
        let found = broken(&[("crates/new", &files)]);
        assert_eq!(found, ["crates/new/src: files import each other: x/a.rs, x/b.rs"]);
    }
}
