//! `tenfold help`: the help of a command, or the commands, settings and flags with a word in their names and
//! descriptions.

use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::output::{end, print};
use crate::config::parse::row::SettingRow;
use crate::config::parse::rows::rows;
use crate::config::parse::tables::reader::Keyed;
use crate::config::parse::tables::site::HOST;
use crate::config::parse::units::distance;

/// The most near words that an error names.
const MOST_NEAR: usize = 3;
/// The length of the shortest word of a description that an error can name.
const SHORTEST_NEAR: usize = 4;

pub(super) fn command() -> Command {
    Command::new("help")
        .about("Show the help of a command, or find commands, settings and flags by a word")
        .arg(
            Arg::new("WORD")
                .action(ArgAction::Append)
                .num_args(0..)
                .help("A command, or words in names and descriptions, as in `tenfold help timeout`"),
        )
}

/// Prints the help of the command with this name, or the results of a search.
pub(super) fn run(program: Command, typed: &ArgMatches) -> ExitCode {
    let words: Vec<&str> =
        typed.get_many::<String>("WORD").into_iter().flatten().map(String::as_str).collect();
    let is_command = words.iter().try_fold(&program, |command, word| command.find_subcommand(word)).is_some();
    let text = if is_command {
        let line = ["tenfold"].iter().chain(&words).chain(&["--help"]);
        Ok(program.try_get_matches_from(line).expect_err("--help ends the parser").render().to_string())
    } else {
        search(&program, &words.join(" ").to_lowercase())
    };
    end(text.and_then(|text| print(text.as_bytes())))
}

/// A command, setting or flag.
struct HelpEntry {
    name: String,
    about: String,
    /// The description in a few words.
    brief: String,
}

impl HelpEntry {
    fn new(name: String, about: impl ToString) -> HelpEntry {
        let about = about.to_string();
        HelpEntry { name, brief: about.clone(), about }
    }

    fn setting(row: &SettingRow) -> HelpEntry {
        let described = |about: &str| format!("{about} [default: {}]", row.shown_initial());
        HelpEntry {
            name: format!("--{} {}", row.name, row.value),
            about: described(row.about),
            brief: described(row.brief()),
        }
    }

    /// The description: all of it if `word` is the name.
    fn shown(&self, word: &str) -> &str {
        let name = self.name.trim_start_matches("--").split(' ').next();
        if name == Some(word) { &self.about } else { &self.brief }
    }

    fn has(&self, word: &str) -> bool {
        let text = format!("{} {}", self.name, self.about).to_lowercase();
        word.split(' ').all(|part| text.contains(part))
    }

    fn words(&self) -> impl Iterator<Item = String> {
        let text = format!("{} {}", self.name, self.about).to_lowercase();
        let is_gap = |letter: char| !letter.is_alphanumeric();
        text.split(is_gap).map(str::to_owned).collect::<Vec<_>>().into_iter()
    }
}

/// Lists the entries with all words of `words`.
fn search(program: &Command, words: &str) -> Result<String, String> {
    let groups = groups(program);
    let mut text = String::new();
    for (title, entries) in &groups {
        let mut found: Vec<&HelpEntry> = entries.iter().filter(|entry| entry.has(words)).collect();
        // Matches in names come first.
        found.sort_by_key(|entry| !entry.name.contains(words));
        let width = found.iter().map(|entry| entry.name.chars().count()).max().unwrap_or_default();
        for (place, entry) in found.iter().enumerate() {
            if place == 0 {
                text += &format!("{}{title}\n", if text.is_empty() { "" } else { "\n" });
            }
            text += &format!("  {:<width$}   {}\n", entry.name, entry.shown(words));
        }
    }
    if !text.is_empty() {
        return Ok(text + "\n`tenfold serve --help-all` and `tenfold COMMAND --help` have the details.\n");
    }
    let near = near(groups.iter().flat_map(|(_, entries)| entries), words);
    Err(format!(
        "no command, setting or flag has {words:?} in its name or description; the nearest words: {}",
        near.join(", ")
    ))
}

/// Returns the words nearest to `word`.
fn near<'a>(entries: impl Iterator<Item = &'a HelpEntry>, word: &str) -> Vec<String> {
    let all: BTreeSet<String> =
        entries.flat_map(HelpEntry::words).filter(|word| word.len() >= SHORTEST_NEAR).collect();
    let mut all: Vec<String> = all.into_iter().collect();
    all.sort_by_cached_key(|other| distance(word, other));
    all.truncate(MOST_NEAR);
    all
}

/// All entries, by their titles.
fn groups(program: &Command) -> [(&'static str, Vec<HelpEntry>); 4] {
    let (mut commands, mut flags) = (Vec::new(), Vec::new());
    let mut left: Vec<(String, &Command)> = program
        .get_subcommands()
        .map(|command| (format!("tenfold {}", command.get_name()), command))
        .collect();
    left.reverse();
    while let Some((name, command)) = left.pop() {
        commands.push(HelpEntry::new(name.clone(), described(command.get_about())));
        for arg in command.get_arguments() {
            let is_setting = rows().any(|row| Some(row.name) == arg.get_long());
            if let Some(long) = arg.get_long().filter(|_| !is_setting || command.get_name() != "serve") {
                let value = arg.get_value_names().filter(|_| arg.get_action().takes_values());
                let value: String = value.into_iter().flatten().map(|name| format!(" {name}")).collect();
                flags.push(HelpEntry::new(format!("{name} --{long}{value}"), described(arg.get_help())));
            }
        }
        let inner = command.get_subcommands().collect::<Vec<_>>().into_iter().rev();
        left.extend(inner.map(|inner| (format!("{name} {}", inner.get_name()), inner)));
    }
    let settings = rows().map(HelpEntry::setting);
    let keys = HOST.keys().into_iter().map(|(name, _, about)| HelpEntry::new(name.to_owned(), about));
    [
        ("Commands", commands),
        ("Settings: flags of `tenfold serve`, and keys of a configuration without --", settings.collect()),
        ("Keys of [site] and [[host]] in a configuration", keys.collect()),
        ("Flags of commands", flags),
    ]
}

fn described(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::cli::program;

    #[test]
    fn words_find_commands_settings_keys_and_flags() {
        for (words, found) in [
            ("reload", "  tenfold reload "),
            ("histogram", "tenfold bench --hdr FILE"),
            ("idle-timeout", "  --idle-timeout TIME "),
            ("gzip compress", "  --compress on|CODING|off "),
            ("single-page", "fallback"),
            ("argon2", "  --password-memory BYTES "),
        ] {
            let text = search(&program(), words).unwrap_or_else(|why| panic!("{why}"));
            assert!(text.contains(found), "{words}: {text}");
            assert!(
                !text.contains("tenfold serve --idle-timeout"),
                "{words}: a setting is not also a flag: {text}"
            );
        }
    }

    #[test]
    fn an_unknown_word_has_its_nearest_words() {
        for (typed, near) in [("tmieout", "timeout"), ("certifcate", "certificate"), ("relaod", "reload")] {
            let why = search(&program(), typed).expect_err("it is misspelled");
            assert!(why.contains(near), "{why}");
        }
    }
}
