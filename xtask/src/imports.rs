//! The imports between the files of a crate, according to its source code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::source::Source;

/// The path of a module from the root of its crate; empty for the root itself.
pub(crate) type Module = Vec<String>;

/// The files of a crate without tests, each with the files that it imports from.
#[derive(Debug, Default)]
pub(crate) struct Imports {
    /// The file of each module, relative to `src`.
    pub(crate) files: BTreeMap<Module, PathBuf>,
    /// The modules that each module imports from.
    pub(crate) arrows: BTreeMap<Module, BTreeSet<Module>>,
}

impl Imports {
    /// Reads files, each as its path relative to `src` and its text.
    pub(crate) fn of(sources: &[(PathBuf, String)]) -> Imports {
        let has_library = sources.iter().any(|(file, _)| file == Path::new("lib.rs"));
        let (mut files, mut codes, mut tests) = (BTreeMap::new(), Vec::new(), Vec::new());
        // If there is a library, the program is another crate.
        let is_other = |file: &Path| has_library && file == Path::new("main.rs");
        for (file, text) in sources.iter().filter(|(file, _)| !is_other(file)) {
            let module = module_of(file);
            let source = Source::of(text);
            tests.extend(source.test_modules.iter().map(|name| child(&module, name)));
            let code = source.lines.iter().filter(|line| !line.is_test).map(|line| &line.code[..]);
            let code = code.collect::<Vec<_>>().join("\n");
            // A module in a file of another name is still not this file.
            let placed = placed(text).map(|name| (child(&module, name), file.with_file_name(name)));
            files.extend(placed);
            files.insert(module.clone(), file.clone());
            codes.push((module, code));
        }
        let is_test = |module: &Module| tests.iter().any(|test| module.starts_with(test));
        files.retain(|module, _| !is_test(module));
        let mut arrows: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
        for (module, code) in codes.iter().filter(|(module, _)| !is_test(module)) {
            let named = paths(code).into_iter().filter_map(|path| resolve(module, &path, &files));
            let targets = named.filter(|target| target != module && files.contains_key(target));
            arrows.entry(module.clone()).or_default().extend(targets);
        }
        Imports { files, arrows }
    }
}

/// The names of the modules whose files an attribute names.
fn placed(text: &str) -> impl Iterator<Item = &str> {
    let attributed = text.lines().zip(text.lines().skip(1)).filter(|(line, _)| line.starts_with("#[path"));
    attributed.filter_map(|(_, item)| item.split_once("mod ")?.1.strip_suffix(';'))
}

fn child(module: &Module, name: &str) -> Module {
    module.iter().map(String::as_str).chain([name]).map(str::to_owned).collect()
}

fn module_of(file: &Path) -> Module {
    let name = file.with_extension("");
    let mut module: Module = name.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let is_root = ["lib.rs", "main.rs"].map(Path::new).contains(&file);
    if is_root || module.last().is_some_and(|last| last == "mod") {
        module.pop();
    }
    module
}

/// Every path in the code: each name of a `use` declaration, and each path of an expression.
fn paths(code: &str) -> Vec<Module> {
    let tokens = tokens(code);
    let (mut found, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        if tokens[at] == "use" {
            at = tree(&tokens, at + 1, &Module::new(), &mut found);
            continue;
        }
        let mut path = Module::new();
        let begins = at == 0 || !["::", "$"].contains(&tokens[at - 1]);
        while begins && is_name(tokens[at]) {
            path.push(tokens[at].to_owned());
            if tokens.get(at + 1) != Some(&"::") || tokens.get(at + 2).is_none_or(|next| !is_name(next)) {
                break;
            }
            at += 2;
        }
        if path.len() > 1 {
            found.push(path);
        }
        at += 1;
    }
    found
}

/// Reads the tree of a `use` declaration after `prefix`; returns the index after it.
fn tree(tokens: &[&str], mut at: usize, prefix: &Module, found: &mut Vec<Module>) -> usize {
    let mut path = prefix.clone();
    while let Some(&token) = tokens.get(at) {
        at += 1;
        match token {
            "{" => loop {
                at = tree(tokens, at, &path, found);
                if tokens.get(at - 1).is_none_or(|end| *end != ",") {
                    break path = Module::new();
                }
            },
            "," | "}" | ";" => break,
            "as" => at += 1,
            name if is_name(name) && (name != "self" || path.is_empty()) => path.push(name.to_owned()),
            _ => {}
        }
    }
    if path.len() > prefix.len() {
        found.push(path);
    }
    at
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Names, `::`, and every other character except white space.
fn tokens(code: &str) -> Vec<&str> {
    let (mut found, mut rest) = (Vec::new(), code.trim_start());
    while let Some(first) = rest.chars().next() {
        let named = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let length = match () {
            () if named > 0 => named,
            () if rest.starts_with("::") => 2,
            () => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        found.push(token);
        rest = after.trim_start();
    }
    found
}

/// The module whose file defines or re-exports `path`; `None` for a path that leaves the crate.
fn resolve(module: &Module, path: &[String], files: &BTreeMap<Module, PathBuf>) -> Option<Module> {
    let supers = path.iter().take_while(|name| *name == "super").count();
    let (base, rest) = match path.first()?.as_str() {
        "crate" => (&[][..], &path[1..]),
        "self" => (&module[..], &path[1..]),
        "super" => (&module[..module.len().checked_sub(supers)?], &path[supers..]),
        name if files.contains_key(&child(module, name)) => (&module[..], path),
        _ => return None,
    };
    let mut target = [base, rest].concat();
    while !files.contains_key(&target) {
        target.pop()?;
    }
    Some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows(sources: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<_> =
            sources.iter().map(|(file, text)| (PathBuf::from(file), (*text).to_owned())).collect();
        let imports = Imports::of(&sources);
        let shown = |module: &Module| imports.files[module].display().to_string();
        let lines = imports.arrows.iter();
        let lines =
            lines.flat_map(|(from, all)| all.iter().map(|to| format!("{} {}", shown(from), shown(to))));
        lines.collect()
    }

    #[test]
    fn every_form_of_an_import_is_an_arrow_to_the_file_that_it_names() {
        let all = arrows(&[
            ("lib.rs", "mod a;\nmod b;\npub use a::{Name, deep::{Other as This, self}};\n"),
            ("a/mod.rs", "mod deep;\nfn f() { deep::g(); crate::b::h() }"),
            ("a/deep.rs", "use super::Name;\nuse super::super::b;\nuse std::fmt;\n"),
            ("b.rs", "use crate::{\n    Name,\n    a::deep::Other,\n};"),
            ("main.rs", "use crate::a;\n"),
        ]);
        let expected = [
            "lib.rs a/mod.rs",
            "lib.rs a/deep.rs",
            "a/mod.rs a/deep.rs",
            "a/mod.rs b.rs",
            "a/deep.rs a/mod.rs",
            "a/deep.rs b.rs",
            "b.rs lib.rs",
            "b.rs a/deep.rs",
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn a_module_in_a_file_of_another_name_is_not_its_parent() {
        let hooks = "#[cfg(any(test, feature = \"hooks\"))]\n#[path = \"tests/hooks.rs\"]\npub mod hooks;\n";
        let all =
            arrows(&[("a/mod.rs", &format!("{hooks}mod b;\nuse b::X;")), ("a/b.rs", "use super::hooks;")]);
        assert_eq!(all, ["a/mod.rs a/b.rs", "a/b.rs a/hooks"]);
    }

    #[test]
    fn declarations_comments_strings_and_tests_are_no_arrows() {
        let all = arrows(&[
            ("main.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod cases;\n"),
            (
                "a.rs",
                "//! [`crate::b::X`]\nconst A: &str = \"crate::b::X\";\n#[cfg(test)]\nmod tests {\n    use crate::b::X;\n}\n",
            ),
            ("b.rs", "macro_rules! m { () => { $crate::a::f() } }\nuse other::a;\n"),
            ("cases.rs", "use crate::a;\n"),
        ]);
        assert!(all.is_empty(), "{all:?}");
    }
}
