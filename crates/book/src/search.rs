//! The index of the book's search: every section with its heading, and the sections in which each word occurs.

use std::collections::{BTreeMap, BTreeSet};

use pulldown_cmark::{Event, Tag, TagEnd};

use crate::escape::json;
use crate::page::{BookPage, events};
use crate::text::html_path;

/// The script that reads the index in the browser.
pub(crate) const SCRIPT: (&str, &str) = ("search.js", include_str!("../search.js"));
/// The path of the index, next to the pages.
pub(crate) const INDEX: &str = "search.json";

/// A word in more than one of `COMMON` sections is too frequent to select sections: its list in the index is empty.
const COMMON: usize = 4;
/// Words of fewer characters are not indexed.
const SHORTEST: usize = 2;

struct Section {
    page: usize,
    anchor: String,
    heading: String,
    words: BTreeSet<String>,
}

/// The index of `pages` in `order` as JSON. `pages` has paths and titles, `sections` has page, anchor and heading, and
/// `words` has the numbers of sections, each as the distance from the previous number.
pub(crate) fn index(order: &[String], pages: &BTreeMap<String, BookPage>) -> String {
    let (mut sections, mut rows) = (Vec::new(), Vec::new());
    for path in order {
        let Some(page) = pages.get(path) else { continue };
        sections.extend(split_sections(rows.len(), page));
        rows.push(format!("[{},{}]", json(&html_path(path)), json(&page.title)));
    }
    let mut words: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (number, section) in sections.iter().enumerate() {
        for word in &section.words {
            words.entry(word).or_default().push(number);
        }
    }
    let listed = words.iter().map(|(word, found)| {
        let is_common = found.len() * COMMON > sections.len().max(COMMON * COMMON);
        let distances =
            found.iter().scan(0, |last, at| Some((at - std::mem::replace(last, *at)).to_string()));
        let list: Vec<_> = distances.filter(|_| !is_common).collect();
        format!("{}:[{}]", json(word), list.join(","))
    });
    let headings = sections
        .iter()
        .map(|s| format!("[{},{},{}]", s.page, json(&s.anchor), json(&s.heading)))
        .collect::<Vec<_>>();
    format!(
        "{{\"pages\":[{}],\n\"sections\":[{}],\n\"words\":{{{}}}}}\n",
        rows.join(","),
        headings.join(","),
        listed.collect::<Vec<_>>().join(",")
    )
}

/// The sections of a page. Each begins at a heading, whose words belong to it.
fn split_sections(page_number: usize, page: &BookPage) -> Vec<Section> {
    let mut anchors = page.anchors.iter();
    let mut sections: Vec<Section> = Vec::new();
    let mut in_heading = false;
    for event in events(&page.markdown) {
        match event {
            Event::Start(Tag::Heading { .. }) => {
                in_heading = true;
                let anchor = anchors.next().cloned().unwrap_or_default();
                sections.push(Section {
                    page: page_number,
                    anchor,
                    heading: String::new(),
                    words: BTreeSet::new(),
                });
            }
            Event::End(TagEnd::Heading(_)) => in_heading = false,
            Event::Text(text) | Event::Code(text) => {
                if let Some(section) = sections.last_mut() {
                    section.words.extend(split_words(&text));
                    if in_heading {
                        section.heading.push_str(&text);
                    }
                }
            }
            _ => {}
        }
    }
    sections
}

/// The words of a text in lower case. `search.js` splits its query in the same way.
fn split_words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    words.filter(|word| word.chars().count() >= SHORTEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::parse_page;

    #[test]
    fn the_index_names_the_sections_of_each_word() {
        let markdown = "# A \"b\"\n\n`TCP_CORK` x\n\n## More\n\nSendfile\n\n## Rest\n\nsendfile, cork\n";
        let page = parse_page("c/README.md", markdown.to_owned()).expect("the page has a heading");
        let pages = BTreeMap::from([("c/README.md".to_owned(), page)]);
        assert_eq!(
            index(&["c/README.md".to_owned()], &pages),
            "{\"pages\":[[\"c/index.html\",\"A \\\"b\\\"\"]],\n\
             \"sections\":[[0,\"a-b\",\"A \\\"b\\\"\"],[0,\"more\",\"More\"],[0,\"rest\",\"Rest\"]],\n\
             \"words\":{\"cork\":[0,2],\"more\":[1],\"rest\":[2],\"sendfile\":[1,1],\"tcp\":[0]}}\n"
        );
    }

    #[test]
    fn a_word_of_most_sections_has_no_list() {
        let markdown = format!("# A\n\n{}", "## B\n\nthe\n\n".repeat(20));
        let pages = BTreeMap::from([("a.md".to_owned(), parse_page("a.md", markdown).expect("a heading"))]);
        assert!(index(&["a.md".to_owned()], &pages).contains("\"words\":{\"the\":[]}"));
    }
}
