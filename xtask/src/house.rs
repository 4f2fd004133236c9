//! The rules of the house that neither rustc nor clippy checks by itself: where `unsafe` may stand, that the
//! lints which guard it are on, which crate may use which, how long a file may be, how the files of a crate depend on
//! each other.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::imports::code;
use crate::structure;

/// Lines of a file that are worth a second look; more is a warning, not a failure.
const LONG_FILE: usize = 400;

/// The folder of the I/O models, and the most lines that one may have: who wants to see what a model costs reads
/// one small file.
const MODELS: (&str, usize) = ("crates/engine/src/models", 200);

/// Which of our own crates each crate may use outside its tests; arrows point one way.
const ARROWS: &[(&str, &[&str])] = &[
    ("http", &[]),
    ("sys", &[]),
    ("accounts", &["tenfold-http"]),
    ("site", &["tenfold-http", "tenfold-sys"]),
    ("engine", &["tenfold-http", "tenfold-sys"]),
    ("load", &["tenfold-http", "tenfold-sys"]),
    (
        "server",
        &[
            "tenfold-accounts",
            "tenfold-http",
            "tenfold-site",
            "tenfold-sys",
            "tenfold-engine",
            "tenfold-load",
        ],
    ),
];

/// Checks every rule on every source file of the repository; long files are listed, the rest must hold.
///
/// # Errors
/// Lists each place where a rule is broken, or the file that could not be read.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let mut broken = Vec::new();
    let mut crates: BTreeMap<String, Vec<(PathBuf, String)>> = BTreeMap::new();
    for file in sources(root)? {
        let text = read(root, &file)?;
        broken.extend(misplaced_unsafe(&file, &text));
        let lines = text.lines().count();
        if file.starts_with(MODELS.0) && lines > MODELS.1 {
            broken.push(format!("{}: {lines} lines; an I/O model has at most {}", file.display(), MODELS.1));
        }
        if lines > LONG_FILE {
            println!("warning: {} has {lines} lines, worth a second look above {LONG_FILE}", file.display());
        }
        if let Some((folder, inside)) = inside_crate(&file) {
            crates.entry(folder).or_default().push((inside, text));
        }
    }
    broken.extend(structure::check(&crates));
    for entry in entries(&root.join("crates"))? {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let manifest = PathBuf::from("crates").join(&name).join("Cargo.toml");
        broken.extend(wrong_manifest(&name, &read(root, &manifest)?));
    }
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n")) }
}

/// The folder of the crate that a file is a source of, and its path beneath `src`. The crate of the whole-server tests
/// is none whose structure is checked.
fn inside_crate(file: &Path) -> Option<(String, PathBuf)> {
    let text = file.to_str()?;
    let (folder, inside) = text.split_once("/src/").filter(|_| !text.starts_with("tests/"))?;
    Some((folder.to_owned(), PathBuf::from(inside)))
}

/// `unsafe` outside `crates/sys`, and lints switched off that keep it honest inside. That each block there has
/// its `SAFETY:` comment is clippy's to check, as long as nobody tells it not to.
fn misplaced_unsafe(file: &Path, text: &str) -> Vec<String> {
    const GUARDS: [&str; 2] = ["undocumented_unsafe_blocks", "unsafe_op_in_unsafe_fn"];
    let in_sys = file.starts_with("crates/sys");
    let mut broken = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let code = code(line);
        let words: Vec<&str> = code.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let place = || format!("{}:{number}", file.display());
        if !in_sys && words.iter().any(|word| ["unsafe", "unsafe_code"].contains(word)) && !forbids(line) {
            broken.push(format!("{}: unsafe belongs in crates/sys alone", place()));
        }
        if let Some(guard) = words.iter().find(|word| GUARDS.contains(word)) {
            broken.push(format!("{}: {guard} is not to be switched off or loosened", place()));
        }
    }
    broken
}

/// `#![forbid(unsafe_code)]` and its milder form say the opposite of what is looked for.
fn forbids(line: &str) -> bool {
    ["#![forbid(unsafe_code)]", "#![deny(unsafe_code)]"].contains(&line.trim())
}

/// A manifest that leaves out the workspace's lints, or that uses a crate which arrows do not reach.
fn wrong_manifest(name: &str, text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    // The workspace denies unsafe code, so the crate that has it keeps lints of its own.
    let (table, line) = match name {
        "sys" => ("[lints.clippy]", "undocumented_unsafe_blocks = \"deny\""),
        _ => ("[lints]", "workspace = true"),
    };
    if section(text, table).all(|found| found != line) {
        broken.push(format!("crates/{name}/Cargo.toml: {table} {line} is missing"));
    }
    let Some((_, may_use)) = ARROWS.iter().find(|(of, _)| *of == name) else {
        broken.push(format!("crates/{name}: xtask/src/house.rs does not say which crates it may use"));
        return broken;
    };
    for line in section(text, "[dependencies]") {
        let used = line.split(['.', ' ', '=']).next().unwrap_or_default();
        if used.starts_with("tenfold") && !may_use.contains(&used) {
            broken.push(format!("crates/{name}/Cargo.toml: {name} must not use {used}; see ARCHITECTURE.md"));
        }
    }
    broken
}

/// The lines of one table of a manifest.
fn section<'a>(text: &'a str, header: &'a str) -> impl Iterator<Item = &'a str> {
    let from = text.lines().map(str::trim).skip_while(move |line| *line != header).skip(1);
    from.take_while(|line| !line.starts_with('['))
}

/// Every Rust file of the repository, relative to its root; built files are not looked at.
fn sources(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> =
        ["crates", "examples", "tests", "xtask"].iter().map(|folder| root.join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for path in entries(&folder)? {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let relative = path.strip_prefix(root).expect("the walk started at the root");
                found.push(relative.to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |e: std::io::Error| format!("read folder {}: {e}", folder.display());
    let read = fs::read_dir(folder).map_err(failed)?;
    let mut paths =
        read.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    paths.sort();
    Ok(paths)
}

fn read(root: &Path, file: &Path) -> Result<String, String> {
    fs::read_to_string(root.join(file)).map_err(|e| format!("read {}: {e}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unsafe_in(file: &str, text: &str) -> usize {
        misplaced_unsafe(Path::new(file), text).len()
    }

    #[test]
    fn unsafe_is_found_outside_sys_and_only_in_code() {
        assert_eq!(unsafe_in("crates/http/src/h1/head.rs", "    unsafe { read(p) }"), 1);
        assert_eq!(unsafe_in("crates/engine/src/lib.rs", "#[allow(unsafe_code)]"), 1);
        assert_eq!(unsafe_in("crates/sys/src/lib.rs", "    unsafe { read(p) }"), 0);
        assert_eq!(unsafe_in("crates/http/src/h1/head.rs", "// unsafe would be faster"), 0);
        assert_eq!(unsafe_in("crates/http/src/h1/head.rs", "let why = \"unsafe\";"), 0);
        assert_eq!(unsafe_in("crates/http/src/lib.rs", "#![forbid(unsafe_code)]"), 0);
    }

    #[test]
    fn the_lint_that_asks_for_safety_comments_stays_on() {
        assert_eq!(unsafe_in("crates/sys/src/lib.rs", "#![allow(clippy::undocumented_unsafe_blocks)]"), 1);
    }

    #[test]
    fn a_manifest_follows_the_arrows_and_takes_the_lints() {
        let lints = "[lints]\nworkspace = true\n";
        let with = |name: &str| format!("{lints}[dependencies]\n{name}.workspace = true\n");
        assert!(wrong_manifest("engine", &with("tenfold-sys")).is_empty());
        assert!(wrong_manifest("http", &with("httparse")).is_empty());
        assert_eq!(wrong_manifest("http", &with("tenfold-sys")).len(), 1);
        assert_eq!(wrong_manifest("http", "[dependencies]\n").len(), 1);
        assert_eq!(wrong_manifest("sys", lints).len(), 1);
        let own_lints = "[lints.clippy]\nundocumented_unsafe_blocks = \"deny\"\n";
        assert!(wrong_manifest("sys", own_lints).is_empty());
        let tests_only = format!("{lints}[dev-dependencies]\ntenfold-engine.workspace = true\n");
        assert!(wrong_manifest("http", &tests_only).is_empty());
    }
}
