//! The book on the demonstration site: every Markdown page of `docs/` as a page of `examples/site/book/`.
//!
//! `docs/README.md` is the table of contents: its second-level headings are the groups of the navigation, the first
//! link of each list item is a page, in the order of "previous" and "next". Unlisted pages, broken links and missing
//! headings are errors, so the text and its table of contents cannot drift apart. Links out of `docs/` (to source
//! files) are for readers of the repository; the site shows only their text.
//!
//! The output depends only on `docs/`: no date, no version, no absolute path. The files are committed, and [`check`]
//! reports outdated ones.

mod document;
mod text;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use self::document::{Around, document};
use self::text::{
    CONTENTS, DOCS, html_path, links_to_missing_files, parse_contents, parse_page, render_body,
};

/// The folder of the pages, below the root of the repository.
const BOOK: &str = "examples/site/book";

/// Renders every page of `docs/` below `examples/site/book/`, removes pages without a text, and returns the written
/// files.
///
/// # Errors
/// A text that cannot be read, is unlisted, or has a broken link, or a file that cannot be written.
pub fn render(root: &Path) -> Result<Vec<PathBuf>, String> {
    let pages = book(root)?;
    let mut written = Vec::new();
    for (output, text) in &pages {
        let file = root.join(BOOK).join(output);
        let folder = file.parent().expect("a page lies in the folder of the book");
        fs::create_dir_all(folder).map_err(|e| format!("create {}: {e}", folder.display()))?;
        fs::write(&file, text).map_err(|e| format!("write {}: {e}", file.display()))?;
        written.push(file);
    }
    for stale in files_below(&root.join(BOOK), "html")?.iter().filter(|f| !pages.contains_key(*f)) {
        let file = root.join(BOOK).join(stale);
        fs::remove_file(&file).map_err(|e| format!("remove {}: {e}", file.display()))?;
    }
    Ok(written)
}

/// Compares the committed pages with `docs/`, and checks that linked source files exist.
///
/// # Errors
/// All pages that differ, are missing or have no text, and all links to missing files.
pub fn check(root: &Path) -> Result<(), String> {
    let pages = book(root)?;
    let mut wrong = Vec::new();
    for (output, text) in &pages {
        match fs::read_to_string(root.join(BOOK).join(output)) {
            Ok(found) if found == *text => {}
            Ok(_) => wrong.push(format!("{BOOK}/{output} does not match {DOCS}/")),
            Err(e) => wrong.push(format!("read {BOOK}/{output}: {e}")),
        }
    }
    for file in files_below(&root.join(BOOK), "html")? {
        if !pages.contains_key(&file) {
            wrong.push(format!("{BOOK}/{file} has no text in {DOCS}/"));
        }
    }
    for path in files_below(&root.join(DOCS), "md")? {
        wrong.extend(links_to_missing_files(root, &path)?);
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!("{}\nrun `cargo xtask site` and commit the result", wrong.join("\n")))
}

/// All pages of the book: the path below `examples/site/book/`, and the whole document.
fn book(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let docs = root.join(DOCS);
    let mut pages = BTreeMap::new();
    for path in files_below(&docs, "md")? {
        let markdown =
            fs::read_to_string(docs.join(&path)).map_err(|e| format!("read {DOCS}/{path}: {e}"))?;
        pages.insert(path.clone(), parse_page(&path, markdown)?);
    }
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
    for (at, path) in order.iter().enumerate() {
        let page = pages.get(path).ok_or(format!("{DOCS}/{CONTENTS} lists {path}, which does not exist"))?;
        let body = render_body(path, page, &pages)?;
        let previous = at.checked_sub(1).and_then(|before| order.get(before));
        let around = Around { previous, next: order.get(at + 1) };
        rendered.insert(html_path(path), document(path, page, &body, &groups, &pages, &around));
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
        let entries = fs::read_dir(&at).map_err(|e| format!("read folder {}: {e}", at.display()))?;
        for entry in entries {
            let file = entry.map_err(|e| format!("read folder {}: {e}", at.display()))?.path();
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
        root
    }

    #[test]
    fn what_was_rendered_is_what_is_checked() {
        let text = "# B\n\n[c](c/README.md#more) [code](../code.rs)\n";
        let root = repository(
            "fresh",
            &[
                ("code.rs", ""),
                ("docs/README.md", "# A\n\n## Part\n\n- [B](b.md)\n- [C](c/README.md)\n"),
                ("docs/b.md", text),
                ("docs/c/README.md", "# C\n\n## More\n"),
                ("examples/site/book/old.html", "a page whose text is gone"),
            ],
        );
        assert!(check(&root).is_err_and(|e| e.contains("old.html")));
        assert_eq!(render(&root).map(|files| files.len()), Ok(3));
        assert_eq!(check(&root), Ok(()));
        let page = fs::read_to_string(root.join(BOOK).join("b.html")).expect("the page was rendered");
        assert!(page.contains("<p><a href=\"c/index.html#more\">c</a> code</p>"), "{page}");
        fs::write(root.join("docs/b.md"), "# B\n\nchanged\n").expect("a file can be written");
        assert!(check(&root).is_err_and(|e| e.contains("book/b.html does not match docs/")));
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
            let result = render(&root);
            assert!(result.as_ref().is_err_and(|e| e.contains(says)), "{name}: {result:?}");
            fs::remove_dir_all(root).expect("the folder was made by this test");
        }
    }
}
