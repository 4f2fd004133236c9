//! The configuration file of a search: the best setting, with the evidence in comments.

use std::path::Path;

use tenfold_engine::{MODELS, SENDERS};
use tenfold_http::clock;

use crate::machine::environment::LabEnvironment;
use crate::measure::show_count;
use crate::studies::tune::result::{Confirmation, TuneResult};

/// The name of the file in the folder of a search.
pub const FILE: &str = "tenfold.toml";

/// Facts for the comments of a configuration.
#[derive(Debug)]
pub struct ConfigurationFacts<'a> {
    /// The machine.
    pub environment: &'a LabEnvironment,
    /// The folder that is served, absolute.
    pub root: &'a Path,
    /// The command that repeats the search.
    pub command: &'a str,
    /// Seconds since 1970.
    pub at: u64,
    /// The meaning and the default of a setting, in words, and whether it is an experiment.
    pub about: fn(&str) -> Option<(String, String, bool)>,
}

/// The text of the configuration.
pub fn text(
    result: &TuneResult,
    best: &Confirmation,
    facts: &ConfigurationFacts<'_>,
) -> Result<String, String> {
    let root = facts.root.to_str().ok_or_else(|| {
        format!("cannot write {} into a configuration: its name is not UTF-8", facts.root.display())
    })?;
    let machine = facts.environment;
    let date = clock::format_date(facts.at);
    let (server, client) = result.processors;
    let processors = match (server, client) {
        (count, _) if !result.clients.is_empty() => {
            let server = if count == 0 { "one processor".to_owned() } else { show_count(count, "processor") };
            format!("{server} for the server, load by {}", result.clients.join(", "))
        }
        (0, _) => "one processor for server and load".to_owned(),
        _ => format!("{} for the server, {client} for the load", show_count(server, "processor")),
    };
    let noisy = match best.disturbed {
        0 => String::new(),
        count => format!("; {} left out", show_count(count, "disturbed block")),
    };
    let rate = result.rate.map_or(String::new(), |rate| format!(", {rate} per second"));
    let comments = [
        format!("Written by tenfold tune {} on {}.", machine.version, String::from_utf8_lossy(&date)),
        String::new(),
        format!("Goal: {}, by the measure {}.", result.goal.name(), result.goal.measure().name()),
        format!(
            "Best over default: {} (95 % interval, {}{noisy}).",
            best.ratio(),
            show_count(best.blocks(), "fresh block")
        ),
        format!(
            "Search: {} in {}.",
            show_count(result.tried, "setting"),
            show_count(result.rounds as usize, "round")
        ),
        format!("Requests: {}{}.", result.requests(), rate),
        format!(
            "Machine: {}, {} MB, Linux {}; {processors}.",
            machine.processor, machine.memory_mb, machine.kernel
        ),
        format!("Repeat: {}", facts.command),
        String::new(),
        "The lines below the root were measured together. What each of them contributes was not measured."
            .to_owned(),
    ];
    let mut text = String::new();
    comments.iter().for_each(|line| comment(&mut text, line));
    text.push_str(&format!("\nroot = {}\n", quoted(root)));
    let is_experiment = |name: &str| (facts.about)(name).is_some_and(|(.., experiment)| experiment);
    let (experiments, settings): (Vec<_>, Vec<_>) =
        best.settings.iter().partition(|(name, _)| is_experiment(name));
    let first = experiments.first().map(|(name, _)| *name);
    for (name, value) in settings.into_iter().chain(experiments) {
        text.push('\n');
        if first == Some(name) {
            text.push_str("[experiment]\n");
        }
        if let Some((about, default, _)) = (facts.about)(name) {
            comment(&mut text, &format!("{about}."));
            comment(&mut text, &format!("The default is {default}."));
        }
        if let Some(summary) = summary(name, value) {
            comment(&mut text, &format!("{value}: {summary}."));
        }
        text.push_str(&format!("{}\n", line(name, value)));
    }
    Ok(text)
}

/// Returns the line of a setting, without its end.
pub fn line(name: &str, value: &str) -> String {
    format!("{name} = {}", self::value(value))
}

/// Returns the value of a setting in TOML.
pub fn value(value: &str) -> String {
    if value.parse::<u64>().is_ok() { value.to_owned() } else { quoted(value) }
}

/// The summary of an engine or a sender in its table.
fn summary(name: &str, value: &str) -> Option<&'static str> {
    match name {
        "engine" => MODELS.iter().find(|model| model.name == value).map(|model| model.summary),
        "send" => SENDERS.iter().find(|row| row.sender.name() == value).map(|row| row.summary),
        _ => None,
    }
}

/// Adds a comment line. Control characters are escaped, because the text may come from a file name or a log.
fn comment(text: &mut String, line: &str) {
    let shown: String = line
        .chars()
        .flat_map(|c| {
            let escaped: Vec<char> = if c.is_control() { c.escape_default().collect() } else { vec![c] };
            escaped
        })
        .collect();
    text.push_str(format!("# {shown}").trim_end());
    text.push('\n');
}

/// A basic string of TOML.
fn quoted(value: &str) -> String {
    let mut text = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => text.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::effect::Effect;
    use crate::studies::tune::candidates::CandidateSettings;
    use crate::verdict::ruling::{ClaimVerdict, Ruling};

    fn confirmation(settings: &[(&str, &str)]) -> Confirmation {
        let effect =
            Effect { mean: 1.31, low: 1.25, high: 1.37, blocks: 9, deviation: 0.05, bootstrap: None };
        let pairs = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Confirmation {
            settings: pairs.collect::<CandidateSettings>(),
            verdict: ClaimVerdict {
                ruling: Ruling::Holds,
                effect: Some(effect),
                is_ratio: true,
                p: Some(0.001),
                noisy: (0, 9),
                ..ClaimVerdict::default()
            },
            measures: Vec::new(),
            unanswered: 0.0,
            disturbed: 1,
            limited: (0, 18),
        }
    }

    #[test]
    fn a_configuration_has_its_evidence_and_is_read_as_it_was_meant() {
        let best = confirmation(&[("engine", "uring"), ("notsent-lowat", "64 KiB"), ("workers", "4")]);
        let result = TuneResult {
            paths: 2,
            from: "5 of 9 lines of a\nroot = \"/etc\"".to_owned(),
            refused: 1,
            tried: 24,
            rounds: 5,
            processors: (4, 4),
            ..TuneResult::default()
        };
        let facts = ConfigurationFacts {
            environment: &LabEnvironment { processor: "A processor".to_owned(), ..LabEnvironment::default() },
            root: Path::new("/srv/\"my\"\\\u{7f}site"),
            command: "tenfold tune --seed 7 /srv/site",
            at: 1_795_248_000,
            about: |name| {
                (name == "workers").then(|| ("number of workers".to_owned(), "one".to_owned(), false))
            },
        };
        let text = text(&result, &best, &facts).expect("the name is UTF-8");
        for expected in [
            "on Sat, 21 Nov 2026 08:00:00 GMT.",
            "Best over default: 1.31 [1.25–1.37] (95 % interval, 9 fresh blocks; 1 disturbed block left out).",
            "# Search: 24 settings in 5 rounds.",
            "paths left out: 1 not served with status 200",
            "4 processors for the server, 4 for the load",
            "# Repeat: tenfold tune --seed 7 /srv/site\n",
            "# uring: completion: operations",
            "# number of workers.\n# The default is one.\nworkers = 4\n",
        ] {
            assert!(text.contains(expected), "{expected:?} is not in: {text}");
        }
        let read: toml::Table = text.parse().expect("it is TOML");
        assert_eq!(read["root"].as_str(), Some("/srv/\"my\"\\\u{7f}site"), "a name adds no line of its own");
        assert_eq!(read["engine"].as_str(), Some("uring"));
        assert_eq!(read["workers"].as_integer(), Some(4));
        assert_eq!(read["notsent-lowat"].as_str(), Some("64 KiB"));
        assert_eq!(read.len(), 4);
    }
}
