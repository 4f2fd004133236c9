//! Charts: a fenced block `chart` becomes bars or lines, drawn from a table of the book.
//!
//! The block has a line for each of these keys, and is readable as text:
//!
//! ```text
//! title: Senders
//! bars: times the floor
//! mark: 1
//! from: costs.md#senders-on-epoll
//! column: 64 KiB
//! ```
//!
//! `title` begins the caption. `bars` is the unit, and `mark` a value with a line. `from` selects the first table below
//! a heading; without it, the next table on the page is used. Each column of cells like `1.04 [0.97–1.10]` becomes a
//! chart with a value and an interval for each row. `column` selects columns by the start of their name.
//!
//! With `lines`, which is also a unit, the first cell of a row is a number of connections, and each other column is a
//! line of one chart. Rows without a number are not drawn.
//!
//! With `percentiles`, also a unit, each column whose name begins with `p` and a digit is a percentile. Each row is a
//! bar from the first to the third percentile, with a whisker to the fourth.

use std::collections::BTreeMap;

use pulldown_cmark::{Event, Tag, TagEnd};
use tenfold_chart::{Bar, GrowthCurve, Spread, bars, figure, growth, spreads, standalone};

use crate::page::{BookPage, events};

/// The language of the fenced block.
pub(crate) const LANGUAGE: &str = "chart";

/// The content of a block.
#[derive(Default)]
struct Wanted<'a> {
    title: &'a str,
    unit: &'a str,
    kind: Kind,
    mark: Option<f64>,
    from: Option<(&'a str, &'a str)>,
    column: &'a str,
}

/// The form of a chart.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Bars,
    Lines,
    Percentiles,
}

/// A table with the anchor of the heading above it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    anchor: String,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// The charts of a block as HTML. `before` is the number of tables above it on its page.
pub(crate) fn draw(
    text: &str,
    page: &BookPage,
    before: usize,
    pages: &BTreeMap<String, BookPage>,
) -> Result<String, String> {
    let charts = charts(text, page, before, pages)?;
    let figures: Vec<String> = charts.iter().map(|(title, svg)| figure(title, svg)).collect();
    Ok(format!("<div class=\"charts\">\n{}\n</div>\n", figures.join("\n")))
}

/// The first chart of a block, as an image with its own style.
pub(crate) fn image(text: &str, pages: &BTreeMap<String, BookPage>) -> Result<String, String> {
    let (_, svg) = charts(text, &BookPage::default(), 0, pages)?.swap_remove(0);
    Ok(standalone(&svg))
}

/// The titles of a block's charts, and the charts.
fn charts(
    text: &str,
    page: &BookPage,
    before: usize,
    pages: &BTreeMap<String, BookPage>,
) -> Result<Vec<(String, String)>, String> {
    let wanted = Wanted::parse(text)?;
    let table = match wanted.from {
        None => tables(page).into_iter().nth(before).ok_or("no table follows the chart")?,
        Some((path, anchor)) => {
            let other = pages.get(path).ok_or(format!("{path}, which the chart names, is not a page"))?;
            let mut all = tables(other).into_iter();
            all.find(|table| table.anchor == anchor).ok_or(format!("{path} has no table below #{anchor}"))?
        }
    };
    match wanted.kind {
        Kind::Lines => return Ok(vec![wanted.growth(&table)?]),
        Kind::Percentiles => return Ok(vec![wanted.percentiles(&table)?]),
        Kind::Bars => {}
    }
    let charts: Vec<_> = (0..table.header.len()).filter_map(|column| wanted.chart(&table, column)).collect();
    if charts.is_empty() {
        return Err(format!("no column {:?} of the table has cells like `1.04 [0.97–1.10]`", wanted.column));
    }
    Ok(charts)
}

impl<'a> Wanted<'a> {
    fn parse(text: &'a str) -> Result<Wanted<'a>, String> {
        let mut wanted = Wanted::default();
        for line in text.lines() {
            let (key, value) = line.split_once(": ").ok_or(format!("{line:?} is not `key: value`"))?;
            match key {
                "bars" => (wanted.unit, wanted.kind) = (value, Kind::Bars),
                "lines" => (wanted.unit, wanted.kind) = (value, Kind::Lines),
                "percentiles" => (wanted.unit, wanted.kind) = (value, Kind::Percentiles),
                "mark" => {
                    wanted.mark = Some(value.parse().map_err(|_| format!("mark {value:?} is no number"))?);
                }
                "from" => {
                    wanted.from = Some(value.split_once('#').ok_or(format!("{value:?} names no heading"))?);
                }
                "title" => wanted.title = value,
                "column" => wanted.column = value,
                _ => return Err(format!("a chart has no {key:?}")),
            }
        }
        if wanted.unit.is_empty() {
            Err("a chart has a line `bars: UNIT`, `lines: UNIT` or `percentiles: UNIT`".to_owned())
        } else {
            Ok(wanted)
        }
    }

    /// The title and the chart of all columns over the first.
    fn growth(&self, table: &Table) -> Result<(String, String), String> {
        let level = |row: &Vec<String>| row.first()?.replace(',', "").parse::<u32>().ok();
        let rows: Vec<(u32, &Vec<String>)> =
            table.rows.iter().filter_map(|row| Some((level(row)?, row))).collect();
        let curve = |(column, name): (usize, &String)| GrowthCurve {
            label: name.clone(),
            points: rows
                .iter()
                .filter_map(|(level, row)| Some((*level, row.get(column)?.parse().ok()?)))
                .collect(),
        };
        let curves: Vec<GrowthCurve> = table.header.iter().enumerate().skip(1).map(curve).collect();
        if !curves.iter().any(|curve| curve.points.len() > 1) {
            return Err("the table has no column with numbers over numbers of connections".to_owned());
        }
        let over = table.header.first().map(String::as_str).unwrap_or_default();
        let title = format!("{}, {}, over {over} (logarithmic)", self.title, self.unit);
        let count = |level| {
            let row = rows.iter().find(|(at, _)| *at == level);
            row.and_then(|(_, row)| row.first()).cloned().unwrap_or_default()
        };
        let value = |value: f64| {
            let decimals = usize::from(value > 0.0 && value < 10.0);
            format!("{value:.decimals$} {}", self.unit)
        };
        let svg = growth(&title, &curves, count, value);
        Ok((title, svg))
    }

    /// The title and the chart of the percentiles of each row.
    fn percentiles(&self, table: &Table) -> Result<(String, String), String> {
        let scale = match self.unit {
            "µs" => 1e-3,
            "ms" => 1.0,
            other => return Err(format!("percentiles are in µs or ms, not in {other:?}")),
        };
        let name = |column: &String| column.split([':', ' ']).next().unwrap_or_default().to_owned();
        let is_one = |column: &String| {
            column.strip_prefix('p').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let columns: Vec<usize> = (0..table.header.len()).filter(|at| is_one(&table.header[*at])).collect();
        let value = |cell: &String| cell.split(' ').next()?.replace(',', "").parse::<f64>().ok();
        let spread = |row: &Vec<String>| Spread {
            label: row.first().cloned().unwrap_or_default(),
            points: columns.iter().map_while(|at| value(row.get(*at)?)).map(|value| value * scale).collect(),
        };
        let rows: Vec<Spread> = table.rows.iter().map(spread).filter(|row| !row.points.is_empty()).collect();
        let names: Vec<String> = columns.iter().map(|at| name(&table.header[*at])).collect();
        let ([first, second, third, fourth], false) = (names.as_slice(), rows.is_empty()) else {
            return Err("the table has no four columns of percentiles".to_owned());
        };
        let title = format!("{}: {first} to {third}, a line at {second}, a whisker to {fourth}", self.title);
        let svg = spreads(&title, &rows);
        Ok((title, svg))
    }

    /// The title and the chart of a column, if the block selects it and it has measured values.
    fn chart(&self, table: &Table, column: usize) -> Option<(String, String)> {
        let name = table.name(column).filter(|name| name.starts_with(self.column))?;
        let bar = |row: &Vec<String>| measured(row.first()?, row.get(column)?);
        let all: Vec<Bar> = table.rows.iter().filter_map(bar).collect();
        let title = if self.title.is_empty() { String::new() } else { format!("{} · ", self.title) };
        let title = format!("{title}{name}: {}", self.unit);
        let svg = || bars(&title, self.mark, &all);
        (!all.is_empty()).then(|| (title.clone(), svg()))
    }
}

impl Table {
    /// The name of a column. Columns with the same name get the name before the colon of the column before them.
    fn name(&self, column: usize) -> Option<&str> {
        let own = self.header.get(column)?;
        if self.header.iter().filter(|name| *name == own).count() == 1 {
            return Some(own);
        }
        let before = self.header.get(column.checked_sub(1)?)?;
        Some(before.split_once(": ").map_or(before.as_str(), |(name, _)| name))
    }
}

/// A cell like `1.04 [0.97–1.10]` as a bar.
fn measured(label: &str, cell: &str) -> Option<Bar> {
    let (shown, interval) = cell.split_once(" [")?;
    let (low, high) = interval.strip_suffix(']')?.split_once('–')?;
    Some(Bar {
        label: label.to_owned(),
        value: shown.parse().ok()?,
        shown: shown.to_owned(),
        interval: Some((low.parse().ok()?, high.parse().ok()?)),
        runs: Vec::new(),
    })
}

/// The tables of a page in their order.
pub(crate) fn tables(page: &BookPage) -> Vec<Table> {
    let mut anchors = page.anchors.iter();
    let (mut anchor, mut found, mut rows, mut cell) = (String::new(), Vec::new(), Vec::new(), None);
    for event in events(&page.markdown) {
        match event {
            Event::Start(Tag::Heading { .. }) => anchor = anchors.next().cloned().unwrap_or_default(),
            Event::Start(Tag::TableHead | Tag::TableRow) => rows.push(Vec::new()),
            Event::Start(Tag::TableCell) => cell = Some(String::new()),
            Event::Text(text) | Event::Code(text) => cell.iter_mut().for_each(|cell| cell.push_str(&text)),
            Event::End(TagEnd::TableCell) => {
                rows.iter_mut().next_back().into_iter().for_each(|row| row.extend(cell.take()))
            }
            Event::End(TagEnd::Table) => {
                let mut rows = std::mem::take(&mut rows).into_iter();
                let header = rows.next().unwrap_or_default();
                found.push(Table { anchor: anchor.clone(), header, rows: rows.collect() });
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::parse_page;

    const COSTS: &str = "# Costs\n\n| a | b |\n| --- | --- |\n| x | y |\n\n## Two\n\n\
        | | 1 KiB, kept: CPU µs | of the floor | 64 KiB: CPU µs | of the floor |\n| --- | --- | --- | --- | --- |\n\
        | floor | 7.5 | 1.00 [1.00–1.00] | 15 | 1.00 [1.00–1.00] |\n| `epoll` | 7.7 | 1.04 [0.97–1.10] |  |  |\n";

    fn drawn(text: &str, before: usize) -> Result<String, String> {
        let page = |markdown: &str| parse_page("costs.md", markdown.to_owned()).expect("it has a heading");
        let pages = BTreeMap::from([("costs.md".to_owned(), page(COSTS))]);
        draw(text, &pages["costs.md"], before, &pages)
    }

    #[test]
    fn each_column_with_intervals_is_a_chart() {
        let html = drawn("bars: times the floor\nmark: 1\n", 1).expect("it is right");
        assert_eq!(html.matches("<figure").count(), 2, "{html}");
        for expected in
            ["<figcaption>1 KiB, kept: times the floor<", "<figcaption>64 KiB: times", ">epoll<", ">1.04<"]
        {
            assert!(html.contains(expected), "{expected} is missing in {html}");
        }
        assert_eq!(html.matches(">epoll<").count(), 1, "an empty cell is no bar");
        let one =
            drawn("bars: times the floor\nfrom: costs.md#two\ncolumn: 64 KiB\n", 9).expect("it is right");
        assert_eq!(one.matches("<figure").count(), 1);
    }

    #[test]
    fn lines_over_connections_are_one_chart() {
        let wall = "# Wall\n\n| idle connections | poll | epoll |\n| ---: | ---: | ---: |\n| 0 | 8.00 | 9.00 |\n\
            | 8,000 | 80.00 | 9.10 |\n| last / first | 10.0 [9.9–10.1] | 1.01 [0.99–1.03] |\n";
        let page = parse_page("wall.md", wall.to_owned()).expect("it has a heading");
        let html = draw("title: CPU time\nlines: µs\n", &page, 0, &BTreeMap::new()).expect("it is right");
        assert_eq!((html.matches("<figure").count(), html.matches("<polyline").count()), (1, 2), "{html}");
        for expected in
            ["<figcaption>CPU time, µs, over idle connections (logarithmic)<", ">poll<", ">8,000<", ">80 µs<"]
        {
            assert!(html.contains(expected), "{expected} is missing in {html}");
        }
        let calls = wall.replace("80.00", "3.02").replace("9.", "2.").replace("8.00", "3.00");
        let page = parse_page("calls.md", calls).expect("it has a heading");
        let html = draw("title: Calls\nlines: calls\n", &page, 0, &BTreeMap::new()).expect("it is right");
        assert!([">3.0 calls<", ">1.5 calls<", ">0 calls<"].iter().all(|one| html.contains(one)), "{html}");
    }

    #[test]
    fn percentiles_of_each_row_are_one_chart() {
        let table = "# L\n\n| | requests/s | p50: µs | p90: µs | p99: µs | p99.9: µs |\n| --- | --- | --- | --- | --- | --- |\n\
            | `epoll` | 20,000 | 50.0 [49.0–51.0] | 60.0 [60.0–60.0] | 100 [99.0–110] | 1200 [900–1300] |\n\
            | `fork` | 600 | 900 [900–900] | 950 [950–950] | 1000 [999–1100] |  |\n| `asio` |  |  |  |  |  |\n";
        let page = parse_page("l.md", table.to_owned()).expect("it has a heading");
        let html =
            draw("title: Latency\npercentiles: µs\n", &page, 0, &BTreeMap::new()).expect("it is right");
        assert_eq!((html.matches("<figure").count(), html.matches("<rect").count()), (1, 2), "{html}");
        for expected in
            ["<figcaption>Latency: p50 to p99, a line at p90, a whisker to p99.9<", ">epoll<", ">10 ms<"]
        {
            assert!(html.contains(expected), "{expected} is missing in {html}");
        }
        let wrong = draw("title: x\npercentiles: s\n", &page, 0, &BTreeMap::new());
        assert!(wrong.is_err_and(|why| why.contains("not in \"s\"")));
    }

    #[test]
    fn a_chart_without_its_table_is_an_error() {
        let refused = |text, before, expected: &str| {
            let result = drawn(text, before);
            assert!(result.as_ref().is_err_and(|why| why.contains(expected)), "{text}: {result:?}");
        };
        for (text, expected) in [
            ("bars: x\n", "no column"),
            ("bars: x\nfrom: costs.md#three\n", "no table below #three"),
            ("bars: x\nfrom: other.md#two\n", "not a page"),
        ] {
            refused(text, 0, expected);
        }
        for (text, expected) in [
            ("bars: x\ncolumn: 2 KiB\n", "no column \"2 KiB\""),
            ("mark: 1\n", "a line `bars: UNIT`"),
            ("lines: µs\n", "no column with numbers over"),
            ("percentiles: µs\n", "no four columns of percentiles"),
            ("bars: x\nmark: one\n", "is no number"),
            ("pie: x\n", "has no \"pie\""),
        ] {
            refused(text, 1, expected);
        }
        refused("bars: x\n", 2, "no table follows");
    }
}
