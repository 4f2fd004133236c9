//! The configuration file: TOML with the settings as keys. Problems of keys and values name their line.

use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::problem::Problem;
use super::row::SettingRow;
use super::rows::{row, rows};
use super::tables::reader::{Keyed, TableReader};
use super::tables::top::{Remedy, TOP, remedy};
use super::units::meant;
use crate::config::values::{SettingSource, Settings};

/// The table of experiments.
pub(crate) const EXPERIMENT: &str = "experiment";

/// Reads the file at `path` into `settings`, and its problems into `problems`.
pub(super) fn read(path: &Path, settings: &mut Settings, problems: &mut Vec<Problem>) {
    match std::fs::read_to_string(path) {
        Ok(content) => read_text(path, &content, settings, problems),
        Err(error) => {
            let mend = match error.kind() {
                ErrorKind::NotFound => "; name an existing file",
                ErrorKind::IsADirectory => "; name the file in it, such as tenfold.toml",
                _ => "",
            };
            let what = format!("cannot read the configuration {}: {error}{mend}", path.display());
            problems.push(Problem::failure(what));
        }
    }
}

pub(super) fn read_text(path: &Path, content: &str, settings: &mut Settings, problems: &mut Vec<Problem>) {
    let base = path.parent().unwrap_or(Path::new(""));
    let mut complain = |what: String, bytes: Range<usize>, mend: String| {
        problems.push(Problem::at(what, path, content, bytes, mend));
    };
    let document = match DeTable::parse(content) {
        Ok(document) => document,
        Err(error) => {
            let end = content.len();
            let mend = match foreign(content) {
                Some(server) => {
                    format!("this is {server}; `tenfold migrate {}` translates it", path.display())
                }
                None => error
                    .span()
                    .and_then(|place| in_quotes(content, place))
                    .unwrap_or_else(|| error.message().into()),
            };
            return complain("this is not TOML".into(), error.span().unwrap_or(end..end), mend);
        }
    };
    let mut entries = Vec::new();
    for (key, value) in document.get_ref() {
        match value.get_ref() {
            DeValue::Table(table) if key.get_ref() == EXPERIMENT => {
                entries.extend(table.iter().map(|(key, value)| (key, value, true)));
            }
            _ => entries.push((key, value, false)),
        }
    }
    entries.sort_by_key(|(key, ..)| key.span().start);
    for (key, value, in_experiment) in entries {
        let name = key.get_ref().as_ref();
        let Some(row) = row(name) else {
            if in_experiment {
                complain(format!("there is no experiment {name:?}"), key.span(), mend_key(name));
                continue;
            }
            let is_setting = |name: &str| super::rows::row(name).is_some();
            let mut reader = TableReader { base, complain: &mut complain, is_setting };
            if TOP.read_entry(name, value, settings, &mut reader).is_none() {
                complain(format!("there is no setting {name:?}"), key.span(), mend_key(name));
            }
            continue;
        };
        if row.is_experiment() != in_experiment {
            let mend = match in_experiment {
                true => "write it above the first table",
                false => "write it below [experiment], after all settings without a table",
            };
            complain(format!("{name} is in the wrong place"), key.span(), mend.into());
            continue;
        }
        let result = texts(row, value.get_ref()).and_then(|texts| {
            let texts: Vec<_> = texts.iter().map(String::as_str).collect();
            settings.take(row, &texts, base, SettingSource::File)
        });
        if let Err(why) = result {
            complain(format!("invalid value of {name}"), value.span(), why);
        }
    }
}

/// Returns the first problem of a piece of a configuration, without its place.
pub(crate) fn first_problem(piece: &str) -> Option<String> {
    let (mut settings, mut problems) = (Settings::default(), Vec::new());
    read_text(Path::new(""), piece, &mut settings, &mut problems);
    problems.first().map(Problem::remedy)
}

/// The remedy if the line of an error has a text without quotes as its value.
fn in_quotes(content: &str, error: Range<usize>) -> Option<String> {
    let line = content[..error.start.min(content.len())].matches('\n').count();
    let (key, value) = content.lines().nth(line)?.split_once('=')?;
    let value = value.split('#').next()?.trim();
    let begins = value.starts_with(|first: char| first.is_alphanumeric() || "./~:*".contains(first));
    begins.then(|| format!("a text is in quotes: {} = {value:?}", key.trim()))
}

/// The name of the other server that reads this kind of file.
fn foreign(content: &str) -> Option<&'static str> {
    let mut lines = content.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let first = lines.next()?;
    let block = |names: &[&str]| first.ends_with('{') && names.iter().any(|name| first.starts_with(name));
    if first.starts_with('<')
        || ["ServerRoot ", "Listen ", "LoadModule "].iter().any(|word| first.starts_with(word))
    {
        Some("a configuration of Apache")
    } else if first.ends_with(';') || block(&["http", "events", "server", "upstream", "map"]) {
        Some("a configuration of nginx")
    } else if first.ends_with('{') {
        Some("a Caddyfile")
    } else {
        None
    }
}

/// The remedy for an unknown key.
fn mend_key(name: &str) -> String {
    if name == "config" {
        return "a configuration cannot name another one".into();
    }
    if name == EXPERIMENT {
        return "it is a table: [experiment]".into();
    }
    let tables = TOP.keys().into_iter().map(|(name, ..)| name);
    match (remedy(name), meant(name, rows().map(|row| row.name).chain(tables))) {
        (Some(Remedy::Setting(setting)), _) => format!("did you mean {setting}?"),
        (Some(Remedy::Sentence(sentence)), _) => sentence,
        (None, Some(near)) => format!("did you mean {near}?"),
        (None, None) => "`tenfold serve --help-all` lists them all".into(),
    }
}

/// The texts of a value, as a flag would have them.
fn texts(row: &SettingRow, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    match value {
        DeValue::Array(values) if row.is_many() => {
            values.iter().map(|value| text(row, value.get_ref())).collect()
        }
        DeValue::Array(_) => Err("one value is needed, not a list".into()),
        _ => Ok(vec![text(row, value)?]),
    }
}

fn text(row: &SettingRow, value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) if row.takes_numbers() && number.radix() == 10 => {
            Ok(number.as_str().to_owned())
        }
        DeValue::Boolean(true) if row.value.starts_with("on|") => Ok("on".into()),
        DeValue::Boolean(false) if row.value.ends_with("|off") => Ok("off".into()),
        _ => Err(match row.words().as_slice() {
            [] => format!("{} is not written as a TOML {}; put it in quotes", row.name, value.type_str()),
            words => format!("{} is a word in quotes, such as {}", row.name, words.join(", ")),
        }),
    }
}
