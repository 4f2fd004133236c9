//! The manual as a site: every Markdown page of `docs/` as an HTML page, with style, scripts and a search index.
//!
//! `docs/README.md` is the table of contents. Its second-level headings are the parts of the book, and its third-level
//! headings are groups within a part. The first link of each list item is a page. "Previous" and "next" follow the
//! order of the list. A page that is not listed, a link to a missing page and a link to a missing heading are errors.
//! Links to files of `crates/` lead to pages with their lines. For other links out of `docs/`, the site shows only the
//! text.
//!
//! The output depends only on the repository: it has no date, no version and no absolute path.

#![forbid(unsafe_code)]

mod chart;
mod document;
mod escape;
mod home;
mod page;
mod search;
mod sequence;
mod source;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path};

use document::{Around, document};
use page::{BookPage, CONTENTS, DOCS, parse_contents, parse_page};
use source::source_page;
use text::{SOURCE_PAGES, diagrams, html_path, links_to_missing_files, render_body, source_path};

/// The folder of the demonstration site, below the root of the repository.
const SITE: &str = "examples/site";

/// The home page of that site.
const HOME: &str = "examples/site/index.html";

/// The picture of README, and the block that describes it.
const PICTURE: (&str, &str) = (
    "docs/models.svg",
    "bars: times the floor\nmark: 1\nfrom: explanation/costs.md#io-models\ncolumn: 1 KiB, keep-alive\n",
);

/// The files of that site that each page loads.
const LOADED: [&str; 3] = ["favicon.svg", "site.css", "site.js"];

/// The source folders of the manual.
pub const SOURCES: [&str; 2] = [DOCS, SITE];

/// Returns all files of the manual by path, for the repository at `root`.
pub fn files(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let mut files = pages(root)?;
    for name in LOADED {
        files.insert(name.to_owned(), read(root, &format!("{SITE}/{name}"))?);
    }
    files.insert(search::SCRIPT.0.to_owned(), search::SCRIPT.1.to_owned());
    Ok(files)
}

/// The source files that are also pages of this manual.
pub fn linked(files: &BTreeMap<String, String>) -> impl Iterator<Item = &str> {
    files.keys().filter_map(|path| path.strip_prefix(SOURCE_PAGES)?.strip_suffix(".html"))
}

/// The files outside of the manual with charts of its present tables, by path: the home page of the demonstration and
/// the picture of README.
pub fn charts(root: &Path) -> Result<[(&'static str, String); 2], String> {
    let texts = texts(root)?;
    let home = home::with_blocks(&read(root, HOME)?, &texts).map_err(|why| format!("{HOME}: {why}"))?;
    let (path, block) = PICTURE;
    let picture = chart::image(block, &texts).map_err(|why| format!("{path}: {why}"))?;
    Ok([(HOME, home), (path, picture)])
}

/// Checks that the files of [`charts`] are up to date.
pub fn check_charts(root: &Path) -> Result<(), String> {
    for (path, drawn) in charts(root)? {
        if drawn != read(root, path)? {
            return Err(format!("{path} has charts of older tables; run `cargo xtask charts`"));
        }
    }
    Ok(())
}

/// Checks that each page can be rendered, and that the source files that the text names exist.
pub fn check(root: &Path) -> Result<(), String> {
    files(root)?;
    let mut missing = Vec::new();
    for path in files_below(&root.join(DOCS), "md")? {
        missing.extend(links_to_missing_files(root, &path)?);
    }
    if missing.is_empty() { Ok(()) } else { Err(missing.join("\n")) }
}

/// The names in backticks of the diagrams of a page: system calls and operations. A page without a diagram has `None`.
pub fn diagram_calls(markdown: &str) -> Result<Option<Vec<String>>, String> {
    let diagrams = diagrams(markdown)?;
    let calls = diagrams.iter().flat_map(|diagram| diagram.calls()).map(str::to_owned).collect();
    Ok(Some(calls).filter(|_| !diagrams.is_empty()))
}

fn read(root: &Path, path: &str) -> Result<String, String> {
    fs::read_to_string(root.join(path)).map_err(|error| format!("cannot read {path}: {error}"))
}

/// The texts of `docs/` by path.
fn texts(root: &Path) -> Result<BTreeMap<String, BookPage>, String> {
    let mut pages = BTreeMap::new();
    for path in files_below(&root.join(DOCS), "md")? {
        let markdown = read(root, &format!("{DOCS}/{path}"))?;
        pages.insert(path.clone(), parse_page(&path, markdown)?);
    }
    Ok(pages)
}

/// All pages: the path of each, and the whole document.
fn pages(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let pages = texts(root)?;
    let contents =
        pages.get(CONTENTS).ok_or(format!("{DOCS}/{CONTENTS}, the table of contents, is missing"))?;
    let groups = parse_contents(&contents.markdown);
    let order: Vec<String> =
        std::iter::once(CONTENTS.to_owned()).chain(groups.iter().flat_map(|g| g.pages.clone())).collect();
    for path in pages.keys() {
        if !order.contains(path) {
            return Err(format!("{DOCS}/{path} is not listed in {DOCS}/{CONTENTS}"));
        }
    }
    let mut rendered = BTreeMap::new();
    let mut sources = BTreeSet::new();
    for (at, path) in order.iter().enumerate() {
        let page = pages.get(path).ok_or(format!("{DOCS}/{CONTENTS} lists {path}, which does not exist"))?;
        let body = render_body(root, path, page, &pages, &mut sources)?;
        let previous = at.checked_sub(1).and_then(|before| order.get(before));
        let around = Around { previous, next: order.get(at + 1) };
        rendered.insert(html_path(path), document(path, page, &body, &groups, &pages, &around));
    }
    rendered.insert(search::INDEX.to_owned(), search::index(&order, &pages));
    for file in sources {
        rendered.insert(source_path(&file), source_page(&file, &read(root, &file)?));
    }
    Ok(rendered)
}

/// The files with this extension below a folder, as sorted relative paths with `/`. A missing folder has none.
fn files_below(folder: &Path, extension: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(at) = waiting.pop() {
        if !at.exists() {
            continue;
        }
        let entries =
            fs::read_dir(&at).map_err(|e| format!("cannot read the folder {}: {e}", at.display()))?;
        for entry in entries {
            let file = entry.map_err(|e| format!("cannot read the folder {}: {e}", at.display()))?.path();
            if file.is_dir() {
                waiting.push(file);
            } else if file.extension().is_some_and(|e| e == extension) {
                let below = file.strip_prefix(folder).expect("the walk started at this folder");
                found.push(slashed(below));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn slashed(path: &Path) -> String {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A repository with these files, in a temporary folder.
    fn repository(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("tenfold-book-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        for (path, text) in files {
            let file = root.join(path);
            fs::create_dir_all(file.parent().expect("a file lies in a folder"))
                .expect("a folder can be made");
            fs::write(file, text).expect("a file can be written");
        }
        for name in LOADED.into_iter().chain(["index.html"]) {
            fs::create_dir_all(root.join(SITE)).expect("a folder can be made");
            fs::write(root.join(SITE).join(name), name).expect("a file can be written");
        }
        root
    }

    #[test]
    fn pages_link_to_each_other_and_to_the_files_that_they_load() {
        let text = "# B\n\n[c](c/README.md#more) [code](../code.rs) [line](../crates/a.rs)\n\n```sh\necho '<pre>'\n```\n\n| a |\n| --- |\n| b |\n";
        let root = repository(
            "fresh",
            &[
                ("code.rs", ""),
                ("crates/a.rs", "let a = 1 < 2;\n"),
                ("docs/README.md", "# A\n\n## Part\n\n- [B](b.md)\n- [C](c/README.md)\n"),
                ("docs/b.md", text),
                ("docs/c/README.md", "# C\n\n## More\n"),
            ],
        );
        assert_eq!(check(&root), Ok(()));
        let files = files(&root).expect("the text is right");
        let names: Vec<_> = files.keys().map(String::as_str).collect();
        let loaded = [
            "favicon.svg",
            "index.html",
            "search.js",
            "search.json",
            "site.css",
            "site.js",
            "source/crates/a.rs.html",
        ];
        assert_eq!(names, [&["b.html", "c/index.html"], &loaded[..]].concat());
        let source = &files["source/crates/a.rs.html"];
        assert!(source.contains("<span id=\"L1\">let a = 1 &lt; 2;\n</span>"), "{source}");
        assert_eq!(linked(&files).collect::<Vec<_>>(), ["crates/a.rs"]);
        assert!(
            files["b.html"].contains(
                "<p><a href=\"c/index.html#more\">c</a> code <a href=\"source/crates/a.rs.html\">line</a></p>"
            ),
            "{}",
            files["b.html"]
        );
        let scrolls = [
            "<pre tabindex=\"0\"><code class=\"language-sh\">echo '&lt;pre&gt;'",
            "<div class=\"table\" tabindex=\"0\">",
        ];
        for part in scrolls {
            assert!(files["b.html"].contains(part), "{part} is missing in {}", files["b.html"]);
        }
        assert!(files["b.html"].contains("<link rel=\"stylesheet\" href=\"site.css\">"));
        assert!(files["c/index.html"].contains("<link rel=\"stylesheet\" href=\"../site.css\">"));
        fs::remove_file(root.join("code.rs")).expect("our own file");
        assert!(
            check(&root)
                .is_err_and(|why| why.contains("docs/b.md links to ../code.rs, which does not exist"))
        );
        fs::remove_dir_all(root).expect("the folder was made by this test");
    }

    #[test]
    fn a_page_that_is_not_listed_and_a_link_that_leads_nowhere_are_errors() {
        let contents = ("docs/README.md", "# A\n\n## Part\n\n- [B](b.md)\n");
        for (name, files, says) in [
            ("unlisted", vec![contents, ("docs/b.md", "# B"), ("docs/x.md", "# X")], "x.md is not listed"),
            ("absent", vec![contents], "links to b.md, which is not a page"),
            ("dead", vec![contents, ("docs/b.md", "# B\n\n[x](x.md)")], "links to x.md, which is not a page"),
            ("anchor", vec![contents, ("docs/b.md", "# B\n\n[x](#x)")], "has no such heading"),
            ("raw", vec![contents, ("docs/b.md", "# B\n\n<b>x</b>")], "raw HTML is not part of the book"),
        ] {
            let root = repository(name, &files);
            let result = check(&root);
            assert!(result.as_ref().is_err_and(|e| e.contains(says)), "{name}: {result:?}");
            fs::remove_dir_all(root).expect("the folder was made by this test");
        }
    }
}
