//! The path "From naive to uring": the page of each I/O model, in an order, with its parts and its command.

use std::fs;
use std::path::Path;

/// The files of the models.
const MODELS: &str = "crates/engine/src/models";
/// The pages of the models, and the page with the path.
const PAGES: &str = "docs/explanation/models";
/// The heading of the path.
const TITLE: &str = "From naive to uring";
/// The parts of a page, in their order; the last one ends the page.
const PARTS: [&str; 5] = ["The loop", "One request", "What breaks it", "Exercise", "Next"];
/// The time of the whole path.
const MINUTES: u32 = 60;

/// A row of the path.
struct Station<'a> {
    name: &'a str,
    minutes: &'a str,
    command: &'a str,
}

/// Checks the path, each of its pages, and the file of each model.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let read = |path: &str| {
        fs::read_to_string(root.join(path)).map_err(|error| format!("cannot read {path}: {error}"))
    };
    let overview = read(&format!("{PAGES}/README.md"))?;
    let stations = stations(&overview);
    let mut wrong = Vec::from_iter(wrong_path(&stations));
    for (at, station) in stations.iter().enumerate() {
        let next = stations.get(at + 1).map_or("README", |next| next.name);
        let page = format!("{PAGES}/{}.md", station.name);
        wrong
            .extend(wrong_page(&read(&page)?, station, next).into_iter().map(|why| format!("{page}: {why}")));
    }
    for entry in fs::read_dir(root.join(MODELS)).map_err(|error| format!("cannot read {MODELS}: {error}"))? {
        let file = entry.map_err(|error| format!("cannot read {MODELS}: {error}"))?.file_name();
        let file = format!("{MODELS}/{}", file.to_string_lossy());
        let text = read(&file)?;
        // The other files have the common parts of models.
        if text.contains("fn run<") {
            let exists = |path: &str| root.join(path).is_file();
            let is_known = |name: &str| stations.iter().any(|station| station.name == name);
            wrong.extend(wrong_model(&file, &text, is_known, exists));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// The part of a page below the heading `title`, up to the next heading of the same level.
fn part<'a>(page: &'a str, title: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&format!("\n## {title}\n"))?;
    Some(rest.split("\n## ").next().unwrap_or(rest))
}

/// The first block in `language` of a part, and its place.
fn block<'a>(part: &'a str, language: &str) -> Option<&'a str> {
    let (_, rest) = part.split_once(&format!("```{language}\n"))?;
    rest.split_once("```").map(|(block, _)| block)
}

/// The rows of the path: `| [epoll](epoll.md) | 5 | a question | a command in backticks |`.
fn stations(overview: &str) -> Vec<Station<'_>> {
    let rows = part(overview, TITLE).unwrap_or_default().lines();
    let station = |row| {
        let [_, link, minutes, _, command, _] = *str::split(row, '|').collect::<Vec<_>>() else {
            return None;
        };
        let (name, page) = link.trim().strip_prefix('[')?.strip_suffix(".md)")?.split_once("](")?;
        (name == page).then_some(Station {
            name,
            minutes: minutes.trim(),
            command: command.trim().trim_matches('`'),
        })
    };
    rows.filter_map(station).collect()
}

/// The errors of the path itself.
fn wrong_path(stations: &[Station<'_>]) -> Option<String> {
    let minutes: u32 = stations.iter().filter_map(|station| station.minutes.parse::<u32>().ok()).sum();
    let says = format!("{PAGES}/README.md: the path {TITLE:?} takes {minutes} minutes instead of {MINUTES}");
    (minutes != MINUTES).then_some(says)
}

/// The errors of the page of a station. `next` is the name of the page after it.
fn wrong_page(page: &str, station: &Station<'_>, next: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let places = PARTS.map(|title| page.find(&format!("\n## {title}\n")));
    for (title, place) in PARTS.iter().zip(places) {
        if place.is_none() {
            wrong.push(format!("the part \"## {title}\" is missing"));
        }
    }
    if !places.is_sorted() {
        wrong.push(format!("the order of the parts is not {}", PARTS.join(", ")));
    }
    let [the_loop, _, breaks, exercise, last] = PARTS.map(|title| part(page, title).unwrap_or_default());
    let lines = block(the_loop, "text").unwrap_or_default().lines().filter(|line| !line.is_empty()).count();
    if !(8..=20).contains(&lines) {
        wrong.push(format!("the loop has {lines} lines of pseudo-code instead of 8 to 20"));
    }
    if block(breaks, "chart").is_none() {
        wrong.push("\"What breaks it\" has no chart; bench/models.py measures and writes it".to_owned());
    }
    if block(exercise, "sh").is_none() {
        wrong.push("the exercise has no block `sh`".to_owned());
    }
    if !last.contains(&format!("({next}.md")) {
        wrong.push(format!("the last part has no link to the next page, {next}.md"));
    }
    let end = format!("```sh\n{}\n```\n", station.command);
    if !last.ends_with(&end) {
        wrong.push(format!("the page does not end with its command in the path, {}", station.command));
    }
    wrong
}

/// The errors of the file of a model: it names its page, and the file of its loop.
fn wrong_model(
    file: &str,
    text: &str,
    is_known: impl Fn(&str) -> bool,
    exists: impl Fn(&str) -> bool,
) -> Vec<String> {
    let name = file.trim_start_matches(MODELS).trim_matches('/').trim_end_matches(".rs").replace('_', "-");
    let head: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
    let named: Vec<&str> =
        head.iter().flat_map(|line| line.split('`')).filter(|word| word.contains('/')).collect();
    let mut wrong = Vec::new();
    if !is_known(&name) {
        wrong.push(format!("{file}: the path {TITLE:?} in {PAGES}/README.md lacks {name}"));
    }
    if !named.contains(&format!("{PAGES}/{name}.md").as_str()) {
        wrong.push(format!("{file}: the description at its top does not name {PAGES}/{name}.md"));
    }
    if !named.iter().any(|path| path.starts_with("crates/engine/src/drivers/")) {
        wrong.push(format!("{file}: the description at its top does not name the file of its loop"));
    }
    let missing = named.iter().filter(|path| path.ends_with(".rs") && !exists(path));
    wrong.extend(missing.map(|path| format!("{file} names {path}, which does not exist")));
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# poll\n\n## The loop\n\n```text\n1\n2\n3\n4\n\n5\n6\n7\n8\n```\n\n\
        ## One request\n\n## What breaks it\n\n```chart\nbars: µs\n```\n\n## Exercise\n\n```sh\nls\n```\n\n\
        ## Next\n\n[epoll](epoll.md)\n\n```sh\ntenfold lab wall\n```\n";

    fn errors(page: &str) -> Vec<String> {
        wrong_page(page, &Station { name: "poll", minutes: "5", command: "tenfold lab wall" }, "epoll")
    }

    #[test]
    fn a_page_has_every_part_its_next_page_and_its_command() {
        assert_eq!(errors(PAGE), Vec::<String>::new());
        for title in PARTS {
            let without = PAGE.replace(&format!("## {title}\n"), "## Other\n");
            let wrong = errors(&without);
            assert!(wrong.iter().any(|why| why.contains(&format!("\"## {title}\" is missing"))), "{wrong:?}");
        }
        for (from, to, expected) in [
            ("(epoll.md)", "(fork.md)", "no link to the next page, epoll.md"),
            (
                "tenfold lab wall",
                "tenfold lab why",
                "does not end with its command in the path, tenfold lab wall",
            ),
            ("wall\n```\n", "wall\n```\n\nText\n", "does not end with its command"),
            ("7\n8\n", "", "6 lines of pseudo-code"),
            ("```sh\nls\n```", "", "the exercise has no block"),
            ("```chart\n", "```text\n", "has no chart; bench/models.py"),
        ] {
            let wrong = errors(&PAGE.replace(from, to));
            assert!(wrong.len() == 1 && wrong[0].contains(expected), "{from:?}: {wrong:?}");
        }
        let swapped = PAGE
            .replace("## The loop", "## x")
            .replace("## Exercise", "## The loop")
            .replace("## x", "## Exercise");
        assert!(errors(&swapped).iter().any(|why| why.contains("order of the parts")));
    }

    #[test]
    fn the_path_is_a_table_of_an_hour() {
        let row = |name: &str, minutes: u32| {
            format!("| [{name}]({name}.md) | {minutes} | Why? | `tenfold lab why` |\n")
        };
        let text = |minutes| {
            format!(
                "# M\n\n## {TITLE}\n\n| page | minutes | question | command |\n{}{}\n## Other\n{}",
                row("poll", 20),
                row("epoll", minutes),
                row("no", 9)
            )
        };
        let overview = text(40);
        let found = stations(&overview);
        let names: Vec<_> = found.iter().map(|station| (station.name, station.command)).collect();
        assert_eq!(names, [("poll", "tenfold lab why"), ("epoll", "tenfold lab why")]);
        assert_eq!(wrong_path(&found), None);
        assert!(wrong_path(&stations(&text(41))).is_some_and(|why| why.contains("61 minutes")));
    }

    #[test]
    fn the_file_of_a_model_names_its_page_and_its_loop() {
        let file = "crates/engine/src/models/asio_proactor.rs";
        let text = "//! A.\n//! Loop: `crates/engine/src/drivers/a.rs`.\n\
            //! Page: `docs/explanation/models/asio-proactor.md`.\n\nfn run<P>() {}\n";
        let errors =
            |text: &str, known: &str, exists: bool| wrong_model(file, text, |name| name == known, |_| exists);
        assert_eq!(errors(text, "asio-proactor", true), Vec::<String>::new());
        for (text, known, exists, expected) in [
            (text.to_owned(), "asio", true, "lacks asio-proactor"),
            (text.to_owned(), "asio-proactor", false, "drivers/a.rs, which does not exist"),
            (text.replace("proactor.md", "x.md"), "asio-proactor", true, "does not name docs/explanation"),
            (text.replace("src/drivers", "src/models"), "asio-proactor", true, "the file of its loop"),
        ] {
            let wrong = errors(&text, known, exists);
            assert!(wrong.len() == 1 && wrong[0].contains(expected), "{wrong:?}");
        }
    }
}
