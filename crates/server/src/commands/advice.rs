//! Hints for wrong command lines: words of other programs, and the command or flag of Tenfold with the same purpose.

use std::path::Path;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::config::parse::tables::top::{Remedy, remedy};
use crate::config::parse::units::distance;

/// Words that other programs use in place of a command.
const COMMANDS: &[(&[&str], &str)] = &[
    (
        &[
            "run",
            "start",
            "http.server",
            "file-server",
            "file_server",
            "http-server",
            "static",
            "site",
            "web",
        ],
        "`tenfold serve DIR` serves a folder",
    ),
    (&["ab", "wrk", "wrk2", "hey", "oha", "load", "benchmark"], "`tenfold bench URL` measures a server"),
    (&["test", "validate", "configtest", "-t", "--test"], "`tenfold check FILE` checks a configuration"),
    (&["restart"], "`tenfold reload` applies a changed configuration, and `tenfold stop` stops a server"),
    (&["quit", "kill", "shutdown"], "`tenfold stop` stops a running server"),
    (&["new", "create", "config"], "`tenfold init DIR` writes a configuration for a folder"),
    (&["docs", "manual", "doc"], "`tenfold book` shows the manual"),
    (&["user", "members", "member"], "`tenfold users` manages members"),
    (
        &["-c", "--config", "-p", "--port", "-l", "--listen"],
        "flags follow a command: `tenfold serve` has this one",
    ),
];

/// Flags of wrk, wrk2, ab, hey and oha, and the flags of `tenfold bench` with the same purpose.
const BENCH: &[(&[&str], &str)] = &[
    (&["-R", "--qps"], "--rate R sends R requests a second"),
    (&["-r"], "--rate R sends R requests a second; a failed request never ends a run"),
    (&["-z"], "-d TIME ends the run after that time"),
    (&["--concurrency"], "-c N sets the number of connections"),
    (&["-s", "--script"], "in place of a script there are --method, --header, --body, --urls and --pipeline"),
    (&["--latency"], "remove it: latencies are always printed"),
    (&["-o", "--output"], "--json and --csv print to standard output, and --report FILE writes a page"),
    (&["-L", "--location", "--follow"], "redirects are not followed: name the final URL"),
    (&["-A", "--auth"], "-H 'Authorization: Basic ...' sends a password"),
    (&["-p", "-D"], "--body FILE sends a body, with --method POST"),
    (&["-C"], "-H 'Cookie: ...' sends a cookie"),
    (&["-T"], "-H 'Content-Type: ...' sets the type of the body; --timeout TIME the timeout"),
];

/// Replaces the hint of an error about an unknown word if the purpose of the word is known.
pub(super) fn advise(mut error: clap::Error) -> clap::Error {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let command = words.get(1).map_or("", String::as_str);
    let hint = match (error.kind(), command) {
        (ErrorKind::InvalidSubcommand, word) => hint_of_command(word),
        (ErrorKind::UnknownArgument, word) if word.starts_with('-') => found(COMMANDS, word),
        (ErrorKind::UnknownArgument, _) => {
            let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else {
                return error;
            };
            match hint_of_argument(command, words.get(2).map_or("", String::as_str), argument) {
                Some(Remedy::Setting(setting)) => {
                    error.remove(ContextKind::Suggested);
                    error.insert(ContextKind::SuggestedArg, ContextValue::String(format!("--{setting}")));
                    return error;
                }
                Some(Remedy::Sentence(sentence)) => Some(sentence),
                None => None,
            }
        }
        _ => return error,
    };
    if let (None, Some(ContextValue::Strings(near)), Some(ContextValue::String(typed))) =
        (&hint, error.get(ContextKind::SuggestedSubcommand), error.get(ContextKind::InvalidSubcommand))
    {
        let mut near = near.clone();
        near.sort_by_key(|word| distance(typed, word));
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(near));
    }
    if let Some(hint) = hint {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(hint)]));
    }
    error
}

fn found(table: &[(&[&str], &str)], word: &str) -> Option<String> {
    table.iter().find(|(words, _)| words.contains(&word)).map(|(_, hint)| (*hint).to_owned())
}

fn hint_of_command(word: &str) -> Option<String> {
    let path = Path::new(word);
    if path.is_dir() {
        return Some(format!("`tenfold serve {word}` serves this folder"));
    }
    if path.extension().is_some_and(|end| end == "toml") {
        return Some(format!("`tenfold serve -c {word}` serves the sites of this configuration"));
    }
    found(COMMANDS, word)
}

fn hint_of_argument(command: &str, next: &str, argument: &str) -> Option<Remedy> {
    let sentence = |text: String| Some(Remedy::Sentence(text));
    match command {
        "serve" if argument.starts_with('-') => remedy(argument.trim_start_matches('-')),
        "serve" if argument.parse::<u16>().is_ok() => sentence(format!("-p {argument} listens on this port")),
        "serve" if argument.contains(':') => sentence(format!("-l {argument} listens on this address")),
        "serve" => sentence("one folder is served: [[host]] in a configuration file has further ones".into()),
        "check" if ["-c", "--config"].contains(&argument) => {
            sentence("`tenfold check FILE` needs no flag".into())
        }
        "status" | "reload" | "stop" | "upgrade"
            if ["-c", "--config", "-p", "--port", "-l", "--listen"].contains(&argument) =>
        {
            sentence(format!("`tenfold {command} 8080` selects a server by its port or address"))
        }
        "lab" if next == "run" && !argument.starts_with('-') => {
            sentence(format!("--only {argument} selects an experiment"))
        }
        "bench" => found(BENCH, argument).map(Remedy::Sentence),
        _ => None,
    }
}
