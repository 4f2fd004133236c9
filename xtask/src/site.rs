//! The book on the demonstration site: every Markdown page of `docs/` as a page of `examples/site/book/`.
//!
//! `docs/README.md` is the table of contents: its second-level headings are the groups of the navigation,
//! the first link of each list item is a page, and the order is the order of "previous" and "next". A page
//! that is not listed, a link that leads nowhere and a heading that does not exist are errors, so that the
//! text and its table of contents cannot drift apart. Links that leave `docs/` (to source files) are for
//! who reads the repository; the site shows their text only.
//!
//! Nothing in the output depends on anything but `docs/`: no date, no version, no absolute path. The files
//! are committed, and [`check`] says which of them is not what the text gives.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// Where the text is, below the root of the repository.
const DOCS: &str = "docs";
/// Where the pages go, below the root of the repository.
const BOOK: &str = "examples/site/book";
/// The page that is also the table of contents.
const CONTENTS: &str = "README.md";

/// Renders every page of `docs/` below `examples/site/book/`, removes pages whose text is gone, and returns
/// the files that were written.
///
/// # Errors
/// Says which text cannot be read, is not listed, or links to something that does not exist, or which file
/// cannot be written.
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

/// Compares the committed pages with what `docs/` gives, and looks whether the source files that the text
/// names are there.
///
/// # Errors
/// Lists every page that differs, is missing or has no text, and every link to a file that does not exist.
pub fn check(root: &Path) -> Result<(), String> {
    let pages = book(root)?;
    let mut wrong = Vec::new();
    for (output, text) in &pages {
        match fs::read_to_string(root.join(BOOK).join(output)) {
            Ok(found) if found == *text => {}
            Ok(_) => wrong.push(format!("{BOOK}/{output} is not what {DOCS}/ gives")),
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

/// A text of `docs/`, parsed as far as other pages need to know it.
struct Page {
    /// The text of its first-level heading.
    title: String,
    /// The identifiers of its headings, which links may name.
    anchors: Vec<String>,
    markdown: String,
}

/// One heading of the navigation with the pages below it.
struct Group {
    title: String,
    /// Pages, as paths below `docs/`, in the order in which they are read.
    pages: Vec<String>,
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

/// The pages before and after this one.
struct Around<'a> {
    previous: Option<&'a String>,
    next: Option<&'a String>,
}

/// Markdown with what the book uses beyond CommonMark: tables.
fn events(markdown: &str) -> Parser<'_> {
    Parser::new_ext(markdown, Options::ENABLE_TABLES)
}

fn parse_page(path: &str, markdown: String) -> Result<Page, String> {
    let mut anchors = Vec::new();
    let mut title = None;
    let mut heading: Option<String> = None;
    for event in events(&markdown) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            Event::End(TagEnd::Heading(level)) => {
                let text = heading.take().unwrap_or_default();
                anchors.push(slug(&text));
                if level == HeadingLevel::H1 && title.is_none() {
                    title = Some(text);
                }
            }
            _ => {}
        }
    }
    let title = title.ok_or(format!("{DOCS}/{path} has no first-level heading"))?;
    Ok(Page { title, anchors, markdown })
}

/// The groups of the table of contents: second-level headings, and the first link of each item below them.
fn parse_contents(markdown: &str) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let (mut in_heading, mut item_open) = (false, false);
    for event in events(markdown) {
        match event {
            Event::Start(Tag::Heading { level: HeadingLevel::H2, .. }) => {
                in_heading = true;
                groups.push(Group { title: String::new(), pages: Vec::new() });
            }
            Event::End(TagEnd::Heading(_)) => in_heading = false,
            Event::Text(text) if in_heading => {
                if let Some(group) = groups.last_mut() {
                    group.title.push_str(&text);
                }
            }
            Event::Start(Tag::Item) => item_open = true,
            Event::Start(Tag::Link { dest_url, .. }) if item_open => {
                item_open = false;
                if let Some(group) = groups.last_mut() {
                    group.pages.push(dest_url.into_string());
                }
            }
            _ => {}
        }
    }
    groups
}

/// The page's own text as HTML: headings that can be linked to, tables that scroll on a narrow screen,
/// links between pages.
fn render_body(path: &str, page: &Page, pages: &BTreeMap<String, Page>) -> Result<String, String> {
    let mut anchors = page.anchors.iter();
    let mut output = Vec::new();
    let mut dropped_link = false;
    for event in events(&page.markdown) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                let id = anchors.next().expect("parse_page collected an anchor for each heading");
                output.push(Event::Html(format!("<{level} id=\"{id}\">").into()));
            }
            Event::Start(Tag::Table(columns)) => {
                output.push(Event::Html("<div class=\"table\" tabindex=\"0\">".into()));
                output.push(Event::Start(Tag::Table(columns)));
            }
            Event::End(TagEnd::Table) => {
                output.push(Event::End(TagEnd::Table));
                output.push(Event::Html("</div>\n".into()));
            }
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                match rewrite_link(path, page, &dest_url, pages)? {
                    Some(dest_url) => {
                        output.push(Event::Start(Tag::Link {
                            link_type,
                            dest_url: dest_url.into(),
                            title,
                            id,
                        }));
                    }
                    None => dropped_link = true,
                }
            }
            Event::End(TagEnd::Link) if dropped_link => dropped_link = false,
            Event::Html(raw) | Event::InlineHtml(raw) => {
                return Err(format!("{DOCS}/{path}: raw HTML is not part of the book: {}", raw.trim()));
            }
            other => output.push(other),
        }
    }
    let mut body = String::new();
    html::push_html(&mut body, output.into_iter());
    Ok(body)
}

/// What a link of the text becomes on the site; `None` where it leaves the book.
fn rewrite_link(
    path: &str,
    page: &Page,
    link: &CowStr<'_>,
    pages: &BTreeMap<String, Page>,
) -> Result<Option<String>, String> {
    if link.starts_with("https://") || link.starts_with("http://") {
        return Ok(Some(link.to_string()));
    }
    let (target, fragment) = link.split_once('#').map_or((link.as_ref(), None), |(t, f)| (t, Some(f)));
    let (to, linked) = if target.is_empty() {
        (path.to_owned(), page)
    } else {
        let Some(to) = resolve(path, target) else { return Ok(None) };
        let linked = pages.get(&to).ok_or(format!("{DOCS}/{path} links to {link}, which is no page"))?;
        (to, linked)
    };
    if let Some(fragment) = fragment
        && !linked.anchors.iter().any(|anchor| anchor == fragment)
    {
        return Err(format!("{DOCS}/{path} links to {link}: {DOCS}/{to} has no such heading"));
    }
    let suffix = fragment.map(|f| format!("#{f}")).unwrap_or_default();
    Ok(Some(if target.is_empty() { suffix } else { format!("{}{suffix}", relative(path, &to)) }))
}

/// Links that lead out of `docs/` to a file of the repository that is not there.
fn links_to_missing_files(root: &Path, path: &str) -> Result<Vec<String>, String> {
    let file = root.join(DOCS).join(path);
    let markdown = fs::read_to_string(&file).map_err(|e| format!("read {DOCS}/{path}: {e}"))?;
    let folder = file.parent().expect("a page lies in a folder");
    let mut missing = Vec::new();
    for event in events(&markdown) {
        if let Event::Start(Tag::Link { dest_url, .. }) = event
            && !dest_url.contains("://")
            && !dest_url.starts_with('#')
            && !folder.join(dest_url.split('#').next().unwrap_or_default()).exists()
        {
            missing.push(format!("{DOCS}/{path} links to {dest_url}, which does not exist"));
        }
    }
    Ok(missing)
}

/// The path below `docs/` that a relative link means; `None` when it leaves `docs/`.
fn resolve(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => {
                parts.pop()?;
            }
            "." => {}
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The link from one page's HTML to another's.
fn relative(from: &str, to: &str) -> String {
    let up = "../".repeat(from.matches('/').count());
    let (folder, shared) = (from.rsplit_once('/').map(|(f, _)| f), to.rsplit_once('/'));
    match (folder, shared) {
        (Some(folder), Some((other, name))) if folder == other => html_path(name),
        _ => format!("{up}{}", html_path(to)),
    }
}

/// `models/epoll.md` is `models/epoll.html`, and a folder's `README.md` its `index.html`.
fn html_path(markdown: &str) -> String {
    let stem = markdown.strip_suffix(".md").unwrap_or(markdown);
    match stem.strip_suffix("README") {
        Some(folder) => format!("{folder}index.html"),
        None => format!("{stem}.html"),
    }
}

/// A heading's identifier, as common forges make it: lower case, words joined by hyphens.
fn slug(text: &str) -> String {
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Text inside an element or a quoted attribute.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The whole document. No inline script and no inline style: the pages live under a strict
/// Content-Security-Policy.
fn document(
    path: &str,
    page: &Page,
    body: &str,
    groups: &[Group],
    pages: &BTreeMap<String, Page>,
    around: &Around<'_>,
) -> String {
    let home = "../".repeat(path.matches('/').count() + 1);
    let title = if path == CONTENTS {
        "The Tenfold book".to_owned()
    } else {
        format!("{} · The Tenfold book", escape(&page.title))
    };
    let contents = navigation(path, groups, pages);
    let turn = turn_the_page(path, pages, around);
    format!(
        r##"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="{home}favicon.svg" type="image/svg+xml">
<link rel="stylesheet" href="{home}site.css">
<script src="{home}site.js"></script>
</head>
<body class="book">
<a class="skip" href="#text">Skip to the text</a>
<header class="bar">
<a class="mark" href="{home}index.html"><img src="{home}favicon.svg" alt="" width="28" height="28"> Tenfold</a>
<nav class="places" aria-label="Site">
<a href="{home}book/index.html" aria-current="true">Book</a>
<a href="{home}media.html">Media</a>
</nav>
<button class="theme" type="button" hidden>Theme</button>
</header>
<div class="pages">
<aside class="contents">
<button class="unfold" type="button" aria-expanded="false" aria-controls="contents" hidden>Contents</button>
<nav id="contents" aria-label="Contents">
{contents}</nav>
</aside>
<main id="text">
<article>
{body}</article>
{turn}</main>
</div>
</body>
</html>
"##
    )
}

fn navigation(path: &str, groups: &[Group], pages: &BTreeMap<String, Page>) -> String {
    let mut out = String::new();
    for group in groups {
        out.push_str(&format!("<h2>{}</h2>\n<ul>\n", escape(&group.title)));
        for to in &group.pages {
            let current = if to == path { " aria-current=\"page\"" } else { "" };
            let title = pages.get(to).map_or(to.as_str(), |page| &page.title);
            let link = relative(path, to);
            out.push_str(&format!("<li><a href=\"{link}\"{current}>{}</a></li>\n", escape(title)));
        }
        out.push_str("</ul>\n");
    }
    out
}

fn turn_the_page(path: &str, pages: &BTreeMap<String, Page>, around: &Around<'_>) -> String {
    let mut out = String::from("<nav class=\"turn\" aria-label=\"Pages\">\n");
    for (to, rel, word) in [(around.previous, "prev", "Previous"), (around.next, "next", "Next")] {
        if let Some(to) = to {
            let title = pages.get(to).map_or(to.as_str(), |page| &page.title);
            let link = relative(path, to);
            out.push_str(&format!(
                "<a rel=\"{rel}\" href=\"{link}\"><small>{word}</small> {}</a>\n",
                escape(title)
            ));
        }
    }
    out.push_str("</nav>\n");
    out
}

/// The files with this extension below a folder, as paths relative to it with `/`, sorted. A folder that
/// does not exist has none.
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

    #[test]
    fn a_link_is_resolved_against_the_page_that_has_it() {
        assert_eq!(resolve("models/epoll.md", "uring.md").as_deref(), Some("models/uring.md"));
        assert_eq!(resolve("models/epoll.md", "../http.md").as_deref(), Some("http.md"));
    }

    #[test]
    fn a_link_out_of_the_book_is_not_resolved() {
        assert_eq!(resolve("models/epoll.md", "../../crates/engine/src/lib.rs"), None);
    }

    #[test]
    fn links_between_pages_are_relative() {
        assert_eq!(relative("models/epoll.md", "models/uring.md"), "uring.html");
        assert_eq!(relative("models/epoll.md", "tcp/backlog.md"), "../tcp/backlog.html");
        assert_eq!(relative("http.md", "models/README.md"), "models/index.html");
    }

    #[test]
    fn the_contents_are_the_first_links_of_the_items_below_second_level_headings() {
        let groups = parse_contents("# Book\n\n## One\n\n- [A](a.md): like [B](b.md)\n- [C](c.md)\n");
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].title, "One");
        assert_eq!(groups[0].pages, ["a.md", "c.md"]);
    }

    #[test]
    fn a_heading_is_linked_to_by_its_words() {
        assert_eq!(slug("What it is"), "what-it-is");
        assert_eq!(slug("`head-timeout` and others"), "head-timeout-and-others");
    }

    /// A repository of these files, in a folder of its own.
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
        assert!(check(&root).is_err_and(|e| e.contains("book/b.html is not what docs/ gives")));
        fs::remove_dir_all(root).expect("the folder was made by this test");
    }

    #[test]
    fn a_page_that_is_not_listed_and_a_link_that_leads_nowhere_are_errors() {
        let contents = ("docs/README.md", "# A\n\n## Part\n\n- [B](b.md)\n");
        for (name, files, says) in [
            ("unlisted", vec![contents, ("docs/b.md", "# B"), ("docs/x.md", "# X")], "x.md is not listed"),
            ("absent", vec![contents], "links to b.md, which is no page"),
            ("dead", vec![contents, ("docs/b.md", "# B\n\n[x](x.md)")], "links to x.md, which is no page"),
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
