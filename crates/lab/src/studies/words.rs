//! Cells on the command line: `epoll`, `nginx`, `"epoll --send copy"`, or `n16-tcp:cork`.

use std::collections::BTreeMap;

use tenfold_engine::MODELS;

use crate::experiment::library;
use crate::experiment::problem::suggestion;
use crate::experiment::subject::{Cell, Subject, Workload};

/// Reads a cell. A cell of an experiment keeps the parts of its load that `load` does not set.
pub fn cell(words: &str, load: &Workload) -> Result<Cell, String> {
    let mut rest = words.split_whitespace().peekable();
    let peer = |word: &str| Subject::ALL.iter().find(|one| one.is_peer() && one.name() == word).copied();
    let mut cell = Cell {
        about: words.to_owned(),
        settings: BTreeMap::from([("workers".to_owned(), "1".to_owned())]),
        load: load.clone(),
        ..Cell::default()
    };
    match rest.next_if(|word| !word.starts_with("--")) {
        None if words.trim().is_empty() => return Err("the name of a server is empty".to_owned()),
        None => {}
        Some(word) if peer(word).is_some() => {
            cell.subject = peer(word).unwrap_or_default();
            cell.settings.clear();
            if rest.peek().is_some() {
                return Err(format!("`{words}`: settings are for this server; {word} takes none"));
            }
        }
        Some(word) if word.contains(':') => cell = of_experiment(words, word, load)?,
        Some(word) if MODELS.iter().any(|model| model.name == word) => {
            cell.settings.insert("engine".to_owned(), word.to_owned());
        }
        Some(word) => return Err(unknown(word)),
    }
    while let Some(word) = rest.next() {
        let name = word.strip_prefix("--").filter(|name| !name.is_empty());
        let name =
            name.ok_or_else(|| format!("`{words}`: `{word}` is not a setting, such as `--send copy`"))?;
        let (name, value) = match name.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (name, rest.next()),
        };
        let value = value.ok_or_else(|| format!("`{words}`: --{name} has no value"))?;
        cell.settings.insert(name.to_owned(), value.to_owned());
    }
    Ok(cell)
}

fn of_experiment(words: &str, word: &str, load: &Workload) -> Result<Cell, String> {
    let (experiment, name) = word.split_once(':').unwrap_or((word, ""));
    let found = library::select(&[experiment.to_owned()])?;
    let cells = || found.iter().flat_map(|one| one.cells.iter());
    let Some((_, cell)) = cells().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = cells().map(|(name, _)| name.as_str()).collect();
        return Err(format!("{experiment} has no cell `{name}`; use one of: {}", names.join(", ")));
    };
    if cell.subject.is_in_process() {
        return Err(format!("{word} runs in process, and has no requests"));
    }
    let load = load.clone().over(&cell.load);
    Ok(Cell { about: words.to_owned(), load, ..cell.clone() })
}

fn unknown(word: &str) -> String {
    let peers = Subject::ALL.iter().filter(|subject| subject.is_peer()).map(|subject| subject.name());
    let known: Vec<&str> = MODELS.iter().map(|model| model.name).chain(peers).collect();
    let fix = suggestion(word, &known, || {
        format!("use an engine or a server ({}), or EXPERIMENT:CELL", known.join(", "))
    });
    format!("there is no engine or server `{word}`: {fix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Cell, String> {
        cell(words, &Workload { connections: Some(3), ..Workload::default() })
    }

    #[test]
    fn words_are_cells() {
        let found = read("epoll --send copy --tcp-cork=on").expect("legal");
        let settings: Vec<String> =
            found.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
        assert_eq!(settings, ["engine epoll", "send copy", "tcp-cork on", "workers 1"]);
        assert_eq!(found.load.active(), 3);
        assert_eq!(read("nginx").expect("a peer").subject, Subject::Nginx);
        assert_eq!(read("--workers 2").expect("the default engine").settings["workers"], "2");
        let found = read("n16-tcp:cork --workers 2").expect("a cell of an experiment");
        assert_eq!((found.settings["tcp-cork"].as_str(), found.load.active()), ("on", 3));
        assert_eq!(found.settings["workers"], "2");
    }

    #[test]
    fn wrong_words_have_a_fix() {
        for (words, expected) in [
            ("eppoll", "did you mean `epoll`?"),
            ("nginx --send copy", "nginx takes none"),
            ("epoll send copy", "`send` is not a setting"),
            ("epoll --send", "--send has no value"),
            ("n16-tcp:korc", "use one of:"),
            ("t23-timers:wheel-1k", "runs in process"),
            ("n16-tpc:cork", "did you mean `n16-tcp`?"),
            (" ", "is empty"),
        ] {
            let said = read(words).expect_err(words);
            assert!(said.contains(expected), "{words}: {said}");
        }
    }
}
