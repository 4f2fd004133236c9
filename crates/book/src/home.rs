//! The charts and tables of the demonstration's home page. A comment in its HTML is a block in the language of
//! [`chart`], or a block `table`. The result is between this comment and the next comment `end`, so the file is a
//! complete page.
//!
//! A block `table` has a line `from` with a page, whose first table it uses, and a line `row` with the start of each
//! row to show.

use std::collections::BTreeMap;

use crate::chart;
use crate::escape::html;
use crate::page::BookPage;

const BEHIND: &str = "-->\n";
const END: &str = "<!-- end -->";

type Pages = BTreeMap<String, BookPage>;

/// The page with the charts and rows of the book's tables.
pub(crate) fn with_blocks(page: &str, pages: &Pages) -> Result<String, String> {
    let chart = |block: &str| chart::draw(block, &BookPage::default(), 0, pages);
    let page = drawn(page, "<!-- chart\n", chart)?;
    drawn(&page, "<!-- table\n", |block| table(block, pages))
}

fn drawn(page: &str, begin: &str, draw: impl Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let mut parts = page.split(begin);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (block, rest) = part.split_once(BEHIND).ok_or(format!("a comment {begin:?} does not end"))?;
        let (_, rest) = rest.split_once(END).ok_or(format!("no `{END}` follows the block {block}"))?;
        out.extend([begin, block, BEHIND, &draw(block)?, END, rest]);
    }
    Ok(out)
}

/// The rows of a table that a block names.
fn table(block: &str, pages: &Pages) -> Result<String, String> {
    let values = |key: &'static str| block.lines().filter_map(move |line| line.strip_prefix(key));
    let path = values("from: ").next().ok_or("a table has a line `from: PAGE`")?;
    let table = pages.get(path).and_then(|page| chart::tables(page).into_iter().next());
    let table = table.ok_or(format!("{path} is no page with a table"))?;
    let cells = |tag: &str, row: &[String]| -> String {
        row.iter().map(|cell| format!("<{tag}>{}</{}>", html(cell), &tag[..2])).collect()
    };
    let mut text = format!(
        "<div class=\"table\" tabindex=\"0\"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n",
        cells("th scope=\"col\"", &table.header)
    );
    for beginning in values("row: ") {
        let is_it = |row: &&Vec<String>| row.first().is_some_and(|cell| cell.starts_with(beginning));
        let row = table.rows.iter().find(is_it);
        let row = row.ok_or(format!("the table of {path} has no row that begins with {beginning:?}"))?;
        text.push_str(&format!("<tr>{}</tr>\n", cells("td", row)));
    }
    Ok(text + "</tbody>\n</table></div>\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::parse_page;

    #[test]
    fn charts_replace_the_text_between_the_comments() {
        let costs = "# C\n\n## Two\n\n| | a |\n| --- | --- |\n| x | 1.5 [1.0–2.0] |\n";
        let pages = BTreeMap::from([(
            "costs.md".to_owned(),
            parse_page("costs.md", costs.to_owned()).expect("it has a heading"),
        )]);
        let home = |between: &str| {
            format!("<p>\n<!-- chart\nbars: times\nfrom: costs.md#two\n-->\n{between}<!-- end -->\n</p>\n")
        };
        let once = with_blocks(&home("old\n"), &pages).expect("it is right");
        assert!(
            once.contains(">1.5<") && !once.contains("old") && once.ends_with("<!-- end -->\n</p>\n"),
            "{once}"
        );
        assert_eq!(with_blocks(&once, &pages).as_deref(), Ok(once.as_str()), "it does not change again");
        assert!(
            with_blocks("<!-- chart\nbars: times\n-->\n", &pages)
                .is_err_and(|why| why.contains("<!-- end -->"))
        );
    }

    #[test]
    fn rows_come_from_the_table_and_a_missing_row_is_an_error() {
        let text = "# R\n\n| claim | verdict |\n| --- | --- |\n| a < b | HOLDS |\n| c | REVERSED |\n";
        let page = parse_page("run.md", text.to_owned()).expect("it has a heading");
        let pages = BTreeMap::from([("run.md".to_owned(), page)]);
        let block = |row: &str| format!("<!-- table\nfrom: run.md\nrow: {row}\n-->\n<!-- end -->\n");
        let drawn = with_blocks(&block("a"), &pages).expect("it is right");
        assert!(drawn.contains("<tr><td>a &lt; b</td><td>HOLDS</td></tr>"), "{drawn}");
        assert!(drawn.contains("<th scope=\"col\">claim</th>") && !drawn.contains("REVERSED"), "{drawn}");
        assert!(with_blocks(&block("d"), &pages).is_err_and(|why| why.contains("\"d\"")));
    }
}
