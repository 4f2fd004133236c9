//! The scope of a step: every crate, or the crates that changed since the step last passed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file with a line for each step that depends on changes: its name, and the commit on which it last passed.
pub(crate) const PASSED: &str = ".ci/passed";

/// Files whose change concerns every crate: versions and flags of compilers, and the steps that depend on changes.
const COMMON: &[&str] =
    &["Cargo.toml", "Cargo.lock", ".cargo/config.toml", "xtask/src/checks.rs", "xtask/src/fuzz.rs"];

/// A tier of tests.
pub(crate) struct Tier {
    pub(crate) name: &'static str,
    /// Its steps.
    pub(crate) steps: &'static [&'static str],
    /// The arguments that select its cases of the whole server.
    pub(crate) cases: &'static [&'static str],
}

/// The tiers, as in CONTRIBUTING.md. The suite prints `[measure]` in front of the names of cases that measure.
pub(crate) const TIERS: &[Tier] = &[
    Tier { name: "spec", steps: &["workspace", "unit"], cases: &[] },
    Tier { name: "system", steps: &["server", "browser"], cases: &["--skip", "[measure]"] },
    Tier { name: "measure", steps: &["server"], cases: &["[measure]"] },
];

/// The scope of a step.
pub(crate) struct Scope {
    /// The folder of the workspace.
    pub(crate) root: PathBuf,
    /// Whether the long suites run.
    pub(crate) all: bool,
    /// The only tier whose cases of the whole server run.
    pub(crate) tier: Option<&'static Tier>,
    /// The changed packages; `None`: all of them.
    changed: Option<BTreeSet<String>>,
}

impl Scope {
    /// Every crate.
    pub(crate) fn everything(root: &Path, all: bool) -> Scope {
        Scope { root: root.to_owned(), all, tier: None, changed: None }
    }

    /// The crates that changed since the commit of the step in [`PASSED`]. Without this line or this commit, every
    /// crate.
    pub(crate) fn since_passed(root: &Path, step: &str) -> Scope {
        let commit = passed(root).remove(step);
        let changed = commit.and_then(|commit| {
            let files = changed_files(root, &commit)?;
            changed_packages(&files, &manifests(root)?)
        });
        Scope { root: root.to_owned(), all: false, tier: None, changed }
    }

    /// The same for the cases of one tier.
    pub(crate) fn of(self, tier: Option<&'static Tier>) -> Scope {
        Scope { tier, ..self }
    }

    /// Whether a package is in scope.
    pub(crate) fn has(&self, package: &str) -> bool {
        self.changed.as_ref().is_none_or(|changed| changed.contains(package))
    }

    /// The arguments of cargo that select the packages in scope.
    pub(crate) fn select<'a>(&self, packages: &[&'a str]) -> Vec<&'a str> {
        packages.iter().filter(|package| self.has(package)).flat_map(|package| ["-p", *package]).collect()
    }
}

/// A number that differs between commits, or 0 outside a repository.
pub(crate) fn turn(root: &Path) -> String {
    let head = git(root, &["rev-parse", "HEAD"]).unwrap_or_default();
    head.get(..7).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0).to_string()
}

/// Writes the current commit into the lines of `steps` in [`PASSED`].
pub(crate) fn record(root: &Path, steps: &[&str]) -> Result<(), String> {
    let head = git(root, &["rev-parse", "HEAD"]).ok_or("git reports no commit")?;
    let mut lines = passed(root);
    lines.extend(steps.iter().map(|step| ((*step).to_owned(), head.clone())));
    let text: String = lines.iter().map(|(step, commit)| format!("{step} {commit}\n")).collect();
    fs::write(root.join(PASSED), text).map_err(|error| format!("cannot write {PASSED}: {error}"))?;
    println!("{PASSED} names {head} for {}", steps.join(", "));
    Ok(())
}

/// Whether all files are those of the current commit.
pub(crate) fn is_clean(root: &Path) -> bool {
    git(root, &["status", "--porcelain"]).is_some_and(|changes| changes.is_empty())
}

/// The commits in [`PASSED`] by step.
fn passed(root: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(root.join(PASSED)).unwrap_or_default();
    text.lines().filter_map(|line| line.split_once(' ')).map(|(step, at)| (step.into(), at.into())).collect()
}

/// The files that differ from a commit, also files that git does not track.
fn changed_files(root: &Path, commit: &str) -> Option<Vec<String>> {
    let differ = git(root, &["diff", "--name-only", "--no-renames", commit, "--"])?;
    let new = git(root, &["ls-files", "--others", "--exclude-standard"])?;
    Some(differ.lines().chain(new.lines()).map(str::to_owned).collect())
}

/// The output of git, without the last line break.
fn git(root: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).current_dir(root).output().ok()?;
    let text = output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned());
    text.map(|text| text.trim_end().to_owned())
}

/// A package of the workspace: the folder below `crates`, its name, and its manifest.
type Manifest = (String, String, String);

fn manifests(root: &Path) -> Option<Vec<Manifest>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join("crates")).ok()? {
        let folder = entry.ok()?.file_name().to_string_lossy().into_owned();
        let text = fs::read_to_string(root.join("crates").join(&folder).join("Cargo.toml")).ok()?;
        let name = text.lines().find_map(|line| line.strip_prefix("name = "))?.trim_matches('"').to_owned();
        found.push((folder, name, text));
    }
    Some(found)
}

/// The packages with a changed file, and the packages that depend on them, also for tests. `None`: all of them.
fn changed_packages(files: &[String], manifests: &[Manifest]) -> Option<BTreeSet<String>> {
    if files.iter().any(|file| COMMON.contains(&file.as_str())) {
        return None;
    }
    let has_file = |folder: &str| {
        let folder = format!("crates/{folder}/");
        files.iter().any(|file| file.starts_with(&folder))
    };
    let changed = manifests.iter().filter(|(folder, ..)| has_file(folder));
    let mut changed: BTreeSet<String> = changed.map(|(_, name, _)| name.clone()).collect();
    loop {
        let depends = |text: &str| {
            let mut used = text.lines().filter_map(|line| line.split([' ', '.', '=']).next());
            used.any(|used| changed.contains(used))
        };
        let more: Vec<String> = manifests
            .iter()
            .filter(|(_, name, text)| !changed.contains(name) && depends(text))
            .map(|(_, name, _)| name.clone())
            .collect();
        if more.is_empty() {
            return Some(changed);
        }
        changed.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(files: &[&str]) -> Option<Vec<String>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        let manifests = manifests(&root).expect("the workspace has crates");
        changed_packages(&files, &manifests).map(|names| names.into_iter().collect())
    }

    #[test]
    fn a_change_concerns_the_crates_that_depend_on_it() {
        assert_eq!(changed(&[]), Some(Vec::new()));
        assert_eq!(changed(&["docs/README.md", "tests/suite/main.rs"]), Some(Vec::new()));
        assert_eq!(changed(&["crates/server/src/main.rs"]), Some(vec!["tenfold".to_owned()]));
        assert_eq!(
            changed(&["crates/accounts/src/lib.rs"]),
            Some(vec!["tenfold".to_owned(), "tenfold-accounts".to_owned()])
        );
        let of_http = changed(&["crates/http/src/lib.rs"]).expect("only some crates");
        for name in ["tenfold", "tenfold-engine", "tenfold-accounts", "tenfold-tls"] {
            assert!(of_http.iter().any(|changed| changed == name), "{name} depends on http: {of_http:?}");
        }
        assert!(of_http.iter().all(|name| name != "tenfold-sys"), "sys does not depend on http");
    }

    #[test]
    fn a_change_of_versions_or_flags_concerns_every_crate() {
        assert_eq!(changed(&["Cargo.lock"]), None);
        assert_eq!(changed(&["crates/server/src/main.rs", ".cargo/config.toml"]), None);
    }
}
