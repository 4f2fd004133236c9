//! Rules that neither rustc nor clippy checks: the place of `unsafe` and the lints that guard it, the arrows between
//! crates, the length of files, and the imports inside a crate.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::source::Source;
use crate::structure;

/// The length of a file above which a warning is printed.
const LONG_FILE: usize = 600;

/// The folder of the I/O models, and the most lines of a model: one small file shows its cost.
const MODELS: (&str, usize) = ("crates/engine/src/models", 200);

/// The crates of ours that each crate may use outside its tests; arrows point one way.
const ARROWS: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("http", &["tenfold-wire"]),
    ("sys", &[]),
    ("agents", &["tenfold-sys"]),
    ("accounts", &["tenfold-http", "tenfold-tls"]),
    ("chart", &[]),
    ("migrate", &[]),
    ("book", &["tenfold-chart"]),
    ("site", &["tenfold-http", "tenfold-sys"]),
    ("engine", &["tenfold-http", "tenfold-sys"]),
    (
        "load",
        &["tenfold-agents", "tenfold-chart", "tenfold-http", "tenfold-sys", "tenfold-tls", "tenfold-wire"],
    ),
    ("tls", &["tenfold-http"]),
    ("rounds", &["tenfold-engine", "tenfold-http"]),
    ("testkit", &["tenfold-wire"]),
    (
        "lab",
        &[
            "tenfold-agents",
            "tenfold-chart",
            "tenfold-load",
            "tenfold-rounds",
            "tenfold-engine",
            "tenfold-http",
            "tenfold-sys",
        ],
    ),
    (
        "server",
        &[
            "tenfold-accounts",
            "tenfold-agents",
            "tenfold-chart",
            "tenfold-http",
            "tenfold-site",
            "tenfold-sys",
            "tenfold-engine",
            "tenfold-load",
            "tenfold-migrate",
            "tenfold-tls",
            "tenfold-rounds",
            "tenfold-lab",
        ],
    ),
];

/// Checks every rule on every source file of the repository. Long files are warnings, every other violation is an
/// error.
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
            println!("warning: {} has {lines} lines, more than {LONG_FILE}", file.display());
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

/// The folder of a source file's crate, and its path beneath `src`. The structure of the test crate is not checked.
fn inside_crate(file: &Path) -> Option<(String, PathBuf)> {
    let text = file.to_str()?;
    let (folder, inside) = text.split_once("/src/").filter(|_| !text.starts_with("tests/"))?;
    Some((folder.to_owned(), PathBuf::from(inside)))
}

/// Finds `unsafe` outside `crates/sys`, and disabled lints. With these lints, clippy checks that each block has a
/// `SAFETY:` comment.
fn misplaced_unsafe(file: &Path, text: &str) -> Vec<String> {
    const GUARDS: [&str; 2] = ["undocumented_unsafe_blocks", "unsafe_op_in_unsafe_fn"];
    let in_sys = file.starts_with("crates/sys");
    let mut broken = Vec::new();
    let source = if text.contains("unsafe") { Source::of(text) } else { Source::default() };
    for (number, (line, source)) in (1..).zip(text.lines().zip(&source.lines)) {
        let code = &source.code;
        let words: Vec<&str> = code.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let place = || format!("{}:{number}", file.display());
        if !in_sys && words.iter().any(|word| ["unsafe", "unsafe_code"].contains(word)) && !forbids(line) {
            broken.push(format!("{}: unsafe is only allowed in crates/sys", place()));
        }
        if let Some(guard) = words.iter().find(|word| GUARDS.contains(word)) {
            broken.push(format!("{}: {guard} must not be disabled or weakened", place()));
        }
    }
    broken
}

/// Whether the line forbids or denies the lint, which is the opposite of disabling it.
fn forbids(line: &str) -> bool {
    ["#![forbid(unsafe_code)]", "#![deny(unsafe_code)]"].contains(&line.trim())
}

/// Finds a manifest without the workspace's lints, or with a crate that the arrows exclude.
fn wrong_manifest(name: &str, text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    // The workspace denies unsafe code, so the crate with unsafe code has lints of its own.
    let (table, line) = match name {
        "sys" => ("[lints.clippy]", "undocumented_unsafe_blocks = \"deny\""),
        _ => ("[lints]", "workspace = true"),
    };
    if section(text, table).all(|found| found != line) {
        broken.push(format!("crates/{name}/Cargo.toml: {table} {line} is missing"));
    }
    let Some((_, may_use)) = ARROWS.iter().find(|(of, _)| *of == name) else {
        broken.push(format!("crates/{name}: add the crates that it may use to xtask/src/house.rs"));
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

/// Every Rust file of the repository, relative to its root, except build output.
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
    let failed = |e: std::io::Error| format!("cannot read the folder {}: {e}", folder.display());
    let read = fs::read_dir(folder).map_err(failed)?;
    let mut paths =
        read.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    paths.sort();
    Ok(paths)
}

fn read(root: &Path, file: &Path) -> Result<String, String> {
    fs::read_to_string(root.join(file)).map_err(|e| format!("cannot read {}: {e}", file.display()))
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
