//! `cargo xtask lines`: the size of the code of a revision.
//!
//! A line of code is a line of a Rust file that is neither blank nor a comment, outside of tests. Tests are files in
//! folders `tests`, files named `tests.rs`, items under `#[cfg(test)]`, the files of modules under `#[cfg(test)]`, and the
//! crate `testkit`.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::checks::output;
use crate::source::Source;

/// Lines by kind.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Count {
    code: usize,
    tests: usize,
    comments: usize,
}

impl Count {
    fn of(source: &Source, is_test: bool) -> Count {
        let mut count = Count::default();
        for line in &source.lines {
            match () {
                () if line.is_comment => count.comments += 1,
                () if line.code.is_empty() => {}
                () if is_test || line.is_test => count.tests += 1,
                () => count.code += 1,
            }
        }
        count
    }

    fn add(&mut self, other: Count) {
        self.code += other.code;
        self.tests += other.tests;
        self.comments += other.comments;
    }
}

/// Prints the lines of each crate below `under`, a file or a folder, and of all of them.
pub(crate) fn print(root: &Path, revision: &str, under: &str) -> Result<(), String> {
    let sources = sources(root, revision).map_err(|why| format!("cannot read revision {revision}: {why}"))?;
    let mut groups: BTreeMap<PathBuf, Count> = BTreeMap::new();
    let mut all = Count::default();
    for (file, count) in counts(&sources).into_iter().filter(|(file, _)| file.starts_with(under)) {
        let names = if file.starts_with("crates") { 2 } else { 1 };
        groups.entry(file.iter().take(names).collect()).or_default().add(count);
        all.add(count);
    }
    if groups.is_empty() {
        return Err(format!("revision {revision} has no Rust file in {under}"));
    }
    print_row("", ["code", "tests", "comments"]);
    for (group, count) in &groups {
        print_row(&group.to_string_lossy(), [count.code, count.tests, count.comments]);
    }
    print_row(&format!("all in {under}"), [all.code, all.tests, all.comments]);
    Ok(())
}

fn print_row(name: &str, columns: [impl Display; 3]) {
    println!("{name:<30} {:>9} {:>9} {:>9}", columns[0], columns[1], columns[2]);
}

/// The count of each file. Files are given by path and text.
fn counts(files: &[(PathBuf, String)]) -> Vec<(&Path, Count)> {
    let sources: Vec<(&Path, Source)> =
        files.iter().map(|(file, text)| (file.as_path(), Source::of(text))).collect();
    let tests: Vec<PathBuf> = sources
        .iter()
        .flat_map(|(file, source)| source.test_modules.iter().map(|module| modules(file).join(module)))
        .collect();
    let is_test = |file: &Path| {
        let in_tests = file.iter().any(|name| name == "tests" || name == "tests.rs" || name == "testkit");
        in_tests || tests.iter().any(|test| file.with_extension("").starts_with(test))
    };
    sources.iter().map(|(file, source)| (*file, Count::of(source, is_test(file)))).collect()
}

/// The folder with the modules that a file declares.
fn modules(file: &Path) -> PathBuf {
    match file.file_name().and_then(|name| name.to_str()) {
        Some("mod.rs" | "lib.rs" | "main.rs") => file.parent().unwrap_or(file).to_owned(),
        _ => file.with_extension(""),
    }
}

/// The Rust files of a revision, by path and text.
fn sources(root: &Path, revision: &str) -> Result<Vec<(PathBuf, String)>, String> {
    let mut list = Command::new("git");
    let list = output(list.args(["ls-tree", "-r", "-z", revision]).current_dir(root))?;
    let mut objects = Command::new("git")
        .args(["cat-file", "--batch"])
        .current_dir(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run git: {error}"))?;
    let (mut requests, replies) = objects.stdin.take().zip(objects.stdout.take()).expect("both are piped");
    let mut replies = BufReader::new(replies);
    let mut read = |object: &str| -> std::io::Result<String> {
        writeln!(requests, "{object}")?;
        // `OBJECT blob LENGTH`, the content, and an end of line.
        let mut header = String::new();
        replies.read_line(&mut header)?;
        let length = header.trim_end().rsplit(' ').next().and_then(|length| length.parse().ok());
        let length: usize = length.ok_or_else(|| std::io::Error::other(header.clone()))?;
        let mut content = vec![0; length + 1];
        replies.read_exact(&mut content)?;
        Ok(String::from_utf8_lossy(&content).into_owned())
    };
    // `MODE blob OBJECT<tab>PATH`
    let rows = list.split('\0').filter_map(|row| row.split_once('\t'));
    let rust = rows.filter(|(_, path)| path.ends_with(".rs"));
    let object = |facts: &str| facts.rsplit(' ').next().unwrap_or_default().to_owned();
    rust.map(|(facts, path)| match read(&object(facts)) {
        Ok(text) => Ok((PathBuf::from(path), text)),
        Err(error) => Err(format!("git cat-file of {path}: {error}")),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_files_in_their_folders_of_their_name_and_of_their_modules() {
        let counted = |file: &str, text: &str| (PathBuf::from(file), text.to_owned());
        let files = [
            counted("crates/a/src/lib.rs", "//! A\nmod b;\n\n#[cfg(test)]\nmod c;\n"),
            counted("crates/a/src/b/mod.rs", "mod d;\n#[cfg(test)]\nmod tests;\n"),
            counted("crates/a/src/b/d.rs", "#[cfg(test)]\nmod c;\n"),
            counted("crates/a/src/b/d/c/deep.rs", "f();\n"),
            counted("crates/a/src/b/c.rs", "f();\n"),
            counted("crates/a/src/b/tests.rs", "// why\nf();\n"),
            counted("crates/a/src/c.rs", "f();\n"),
            counted("crates/a/tests/e.rs", "f();\n"),
        ];
        let counts: Vec<_> =
            counts(&files).iter().map(|(_, count)| [count.code, count.tests, count.comments]).collect();
        let [code, test] = [[1, 0, 0], [0, 1, 0]];
        assert_eq!(counts, [[1, 2, 1], [1, 2, 0], [0, 2, 0], test, code, [0, 1, 1], test, test]);
    }
}
