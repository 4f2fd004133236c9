//! The content of pages as HTML, and the links between them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Tag, TagEnd, html};

use crate::chart;
use crate::page::{BookPage, DOCS, events};
use crate::sequence::{self, Sequence};

/// The book's folder of source pages.
pub(crate) const SOURCE_PAGES: &str = "source/";

/// The page's text as HTML: headings with anchors, tables and code that scroll on narrow screens, and links between
/// pages. Adds the source files that it links to, to `sources`.
pub(crate) fn render_body(
    root: &Path,
    path: &str,
    page: &BookPage,
    pages: &BTreeMap<String, BookPage>,
    sources: &mut BTreeSet<String>,
) -> Result<String, String> {
    let mut anchors = page.anchors.iter();
    let mut output = Vec::new();
    let mut dropped_link = false;
    let (mut drawing, mut diagrams, mut tables) = (None, 0, 0);
    for event in events(&page.markdown) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language)))
                if [sequence::LANGUAGE, chart::LANGUAGE].contains(&&*language) =>
            {
                drawing = Some((language, String::new()));
            }
            Event::Text(text) if drawing.is_some() => {
                drawing.iter_mut().for_each(|(_, block)| block.push_str(&text));
            }
            Event::End(TagEnd::CodeBlock) if drawing.is_some() => {
                let (language, block) = drawing.take().expect("a block was open");
                let drawn = if *language == *chart::LANGUAGE {
                    chart::draw(&block, page, tables, pages)
                } else {
                    diagrams += 1;
                    Sequence::parse(&block).map(|diagram| diagram.svg(diagrams))
                };
                output.push(Event::Html(drawn.map_err(|why| format!("{DOCS}/{path}: {why}"))?.into()));
            }
            Event::Start(Tag::Heading { level, .. }) => {
                let id = anchors.next().expect("parse_page collected an anchor for each heading");
                output.push(Event::Html(format!("<{level} id=\"{id}\">").into()));
            }
            Event::Start(Tag::Table(columns)) => {
                output.push(Event::Html("<div class=\"table\" tabindex=\"0\">".into()));
                output.push(Event::Start(Tag::Table(columns)));
            }
            Event::End(TagEnd::Table) => {
                tables += 1;
                output.push(Event::End(TagEnd::Table));
                output.push(Event::Html("</div>\n".into()));
            }
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let source = source_file(root, path, &dest_url);
                let target = match &source {
                    Some(file) => {
                        Some(format!("{}{}", "../".repeat(path.matches('/').count()), source_path(file)))
                    }
                    None => rewrite_link(path, page, &dest_url, pages)?,
                };
                sources.extend(source);
                match target {
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
    // Code scrolls on narrow screens, so the keyboard must reach it. An empty corner of a table is not a heading. The
    // replacements match only tags, because `<` is escaped in text.
    Ok(body.replace("<pre>", "<pre tabindex=\"0\">").replace("<th></th>", "<td></td>"))
}

/// The diagrams of a page.
pub(crate) fn diagrams(markdown: &str) -> Result<Vec<Sequence>, String> {
    let mut found = Vec::new();
    let mut open: Option<String> = None;
    for event in events(markdown) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language)))
                if *language == *sequence::LANGUAGE =>
            {
                open = Some(String::new());
            }
            Event::Text(text) => open.iter_mut().for_each(|block| block.push_str(&text)),
            Event::End(TagEnd::CodeBlock) => {
                if let Some(block) = open.take() {
                    found.push(Sequence::parse(&block)?);
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

/// The file below `crates/` that a link names, by its path in the repository.
fn source_file(root: &Path, path: &str, link: &str) -> Option<String> {
    let file = resolve(&format!("{DOCS}/{path}"), link)?;
    (file.starts_with("crates/") && root.join(&file).is_file()).then_some(file)
}

/// The target of a link on the site; `None` if it leaves the book.
fn rewrite_link(
    path: &str,
    page: &BookPage,
    link: &CowStr<'_>,
    pages: &BTreeMap<String, BookPage>,
) -> Result<Option<String>, String> {
    if link.starts_with("https://") || link.starts_with("http://") {
        return Ok(Some(link.to_string()));
    }
    let (target, fragment) = link.split_once('#').map_or((link.as_ref(), None), |(t, f)| (t, Some(f)));
    let (to, linked) = if target.is_empty() {
        (path.to_owned(), page)
    } else {
        let Some(to) = resolve(path, target) else { return Ok(None) };
        let linked = pages.get(&to).ok_or(format!("{DOCS}/{path} links to {link}, which is not a page"))?;
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

/// Links out of `docs/` to missing files of the repository.
pub(crate) fn links_to_missing_files(root: &Path, path: &str) -> Result<Vec<String>, String> {
    let file = root.join(DOCS).join(path);
    let markdown = fs::read_to_string(&file).map_err(|e| format!("cannot read {DOCS}/{path}: {e}"))?;
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

/// The path below `docs/` that a relative link names; `None` if it leaves `docs/`.
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
pub(crate) fn relative(from: &str, to: &str) -> String {
    let up = "../".repeat(from.matches('/').count());
    let (folder, shared) = (from.rsplit_once('/').map(|(f, _)| f), to.rsplit_once('/'));
    match (folder, shared) {
        (Some(folder), Some((other, name))) if folder == other => html_path(name),
        _ => format!("{up}{}", html_path(to)),
    }
}

/// `models/epoll.md` is `models/epoll.html`, and a folder's `README.md` its `index.html`.
pub(crate) fn html_path(markdown: &str) -> String {
    let stem = markdown.strip_suffix(".md").unwrap_or(markdown);
    match stem.strip_suffix("README") {
        Some(folder) => format!("{folder}index.html"),
        None => format!("{stem}.html"),
    }
}

/// The page of a source file, by its path in the repository.
pub(crate) fn source_path(file: &str) -> String {
    format!("{SOURCE_PAGES}{file}.html")
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
}
