//! The charts of the demonstration's home page. A comment of its HTML is a block of the language of [`chart`], and the
//! charts stand between it and the next comment `end`, so that the file is a whole page without any tool.

use std::collections::BTreeMap;

use crate::chart;
use crate::page::BookPage;

const BEGIN: &str = "<!-- chart\n";
const BEHIND: &str = "-->\n";
const END: &str = "<!-- end -->";

/// The page with the charts of the book's tables.
///
/// # Errors
/// Names the comment that does not end, or the chart that cannot be drawn.
pub(crate) fn with_charts(page: &str, pages: &BTreeMap<String, BookPage>) -> Result<String, String> {
    let mut parts = page.split(BEGIN);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (block, rest) = part.split_once(BEHIND).ok_or("a comment `chart` does not end")?;
        let (_, rest) = rest.split_once(END).ok_or(format!("no `{END}` follows the chart of {block}"))?;
        let empty = BookPage::default();
        out.extend([BEGIN, block, BEHIND, &chart::draw(block, &empty, 0, pages)?, END, rest]);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::parse_page;

    #[test]
    fn charts_replace_what_stands_between_the_comments() {
        let costs = "# C\n\n## Two\n\n| | a |\n| --- | --- |\n| x | 1.5 [1.0–2.0] |\n";
        let pages = BTreeMap::from([(
            "costs.md".to_owned(),
            parse_page("costs.md", costs.to_owned()).expect("it has a heading"),
        )]);
        let home = |between: &str| {
            format!("<p>\n<!-- chart\nbars: times\nfrom: costs.md#two\n-->\n{between}<!-- end -->\n</p>\n")
        };
        let once = with_charts(&home("old\n"), &pages).expect("it is right");
        assert!(
            once.contains(">1.5<") && !once.contains("old") && once.ends_with("<!-- end -->\n</p>\n"),
            "{once}"
        );
        assert_eq!(with_charts(&once, &pages).as_deref(), Ok(once.as_str()), "it does not change again");
        assert!(
            with_charts("<!-- chart\nbars: times\n-->\n", &pages)
                .is_err_and(|why| why.contains("<!-- end -->"))
        );
    }
}
