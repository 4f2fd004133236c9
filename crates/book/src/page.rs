//! A text of `docs/`: its title, its headings, and the table of contents.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// The folder of the book, below the root of the repository.
pub(crate) const DOCS: &str = "docs";
/// The page that is also the table of contents.
pub(crate) const CONTENTS: &str = "README.md";
/// A text of `docs/`, with the parts that other pages need.
#[derive(Default)]
pub(crate) struct BookPage {
    /// The text of its first-level heading.
    pub(crate) title: String,
    /// The identifiers of its headings, which links may name.
    pub(crate) anchors: Vec<String>,
    pub(crate) markdown: String,
}

/// One heading of the navigation with the pages below it.
pub(crate) struct Group {
    /// `H2` for a part of the book, `H3` for a group within a part.
    pub(crate) level: HeadingLevel,
    pub(crate) title: String,
    /// Pages in reading order, as paths below `docs/`.
    pub(crate) pages: Vec<String>,
}

/// Parses Markdown with tables.
pub(crate) fn events(markdown: &str) -> Parser<'_> {
    Parser::new_ext(markdown, Options::ENABLE_TABLES)
}

pub(crate) fn parse_page(path: &str, markdown: String) -> Result<BookPage, String> {
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
    Ok(BookPage { title, anchors, markdown })
}

/// The groups of the table of contents: headings of the second and third level, and the first link of each item below
/// them.
pub(crate) fn parse_contents(markdown: &str) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let (mut in_heading, mut item_open) = (false, false);
    for event in events(markdown) {
        match event {
            Event::Start(Tag::Heading { level: level @ (HeadingLevel::H2 | HeadingLevel::H3), .. }) => {
                in_heading = true;
                groups.push(Group { level, title: String::new(), pages: Vec::new() });
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

/// A heading's identifier, as forges generate it: lower case, words joined by hyphens.
fn slug(text: &str) -> String {
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contents_are_the_first_links_of_the_items_below_parts_and_groups() {
        let text = "# Book\n\n## One\n\n- [A](a.md): like [B](b.md)\n\n### Two\n\n- [C](c.md)\n";
        let groups = parse_contents(text);
        let found: Vec<_> = groups.iter().map(|g| (g.level, g.title.as_str(), g.pages.join(" "))).collect();
        let (part, group) = (HeadingLevel::H2, HeadingLevel::H3);
        assert_eq!(found, [(part, "One", "a.md".to_owned()), (group, "Two", "c.md".to_owned())]);
    }

    #[test]
    fn a_heading_is_linked_to_by_its_words() {
        assert_eq!(slug("What it is"), "what-it-is");
        assert_eq!(slug("`head-timeout` and others"), "head-timeout-and-others");
    }
}
