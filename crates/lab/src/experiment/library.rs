//! The experiments in the program.

use std::collections::BTreeSet;
use std::path::Path;

use crate::experiment::problem::suggestion;
use crate::experiment::{Experiment, file};

/// Files as rows: the list, the prefix of names, the folder, and the names.
macro_rules! files {
    ($list:ident $prefix:literal $folder:literal: $($name:literal)+) => {
        const $list: &[(&str, &str)] =
            &[$((concat!($prefix, $name), include_str!(concat!("../../", $folder, "/", $name, ".toml")))),+];
    };
}

files! { MUSEUM "museum-" "museum":
    "accept-one" "thread-race" "send-once" "not-found" "sleeping-loop"
    "file-in-a-string" "write-per-line" "queue" "timer-list"
}

files! { FILES "" "experiments":
    "n16-tcp" "n16-send" "n16-engines" "n16-text" "n16-idle"
    "n16-strace" "n16-starvation" "t23-timers" "t23-parsing" "t23-webbench" "t23-io"
    "t23-process" "t23-models" "t23-log" "ab-models" "ab-accept-one"
    "ab-backlog" "ab-thread-race" "se20-404" "se20-send" "se20-eagain"
    "se20-url" "w12-libraries" "w12-threads" "w12-aio" "w12-connect"
    "w12-queue" "own-page" "own-models"
}

/// The experiments of the program, in the order of their sources.
pub fn all() -> Vec<Experiment> {
    read_all(FILES)
}

/// The experiments of the museum. Each compares a published mistake with its correction.
pub fn museum(words: &[String]) -> Result<Vec<Experiment>, String> {
    let mut all = read_all(MUSEUM);
    let short = |experiment: &Experiment| experiment.name.trim_start_matches("museum-").to_owned();
    let names: Vec<String> = all.iter().map(short).collect();
    if let Some(wrong) = words.iter().find(|word| !names.contains(word)) {
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        let fix = suggestion(wrong, &known, || format!("use one of: {}", known.join(", ")));
        return Err(format!("there is no exhibit `{wrong}`: {fix}"));
    }
    all.retain(|experiment| words.is_empty() || words.contains(&short(experiment)));
    Ok(all)
}

fn read_all(files: &[(&str, &str)]) -> Vec<Experiment> {
    let read = |(name, text): &(&str, &str)| file::read(&format!("{name}.toml"), text);
    files.iter().map(read).collect::<Result<_, String>>().expect("a test reads each of them")
}

/// Reads every experiment in a user's folder.
pub fn of_folder(folder: &Path) -> Result<Vec<Experiment>, String> {
    let failed = |error: std::io::Error| format!("cannot read the folder {}: {error}", folder.display());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    paths.iter().map(|path| of_file(path)).collect()
}

/// Reads a user's experiment.
pub fn of_file(path: &Path) -> Result<Experiment, String> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
    file::read(&shown, &text)
}

/// Selects experiments by name, by the first part of names (`n16`), or by the path of a file or folder.
pub fn select(words: &[String]) -> Result<Vec<Experiment>, String> {
    let all = all();
    if words.is_empty() {
        return Ok(all);
    }
    let (mut chosen, mut seen) = (Vec::new(), BTreeSet::new());
    for word in words {
        let mut found: Vec<Experiment> = match word.ends_with(".toml") || word.contains('/') {
            true if Path::new(word).is_dir() => of_folder(Path::new(word))?,
            true => vec![of_file(Path::new(word))?],
            false => {
                let fits = |name: &str| {
                    name == word || name.strip_prefix(word.as_str()).is_some_and(|rest| rest.starts_with('-'))
                };
                all.iter().filter(|experiment| fits(&experiment.name)).cloned().collect()
            }
        };
        if found.is_empty() {
            let names: Vec<&str> = all.iter().map(|experiment| experiment.name.as_str()).collect();
            let fix = suggestion(word, &names, || {
                "`tenfold lab list` shows them; a path to a TOML file is also accepted".to_owned()
            });
            return Err(format!("there is no experiment `{word}`: {fix}"));
        }
        found.retain(|experiment| seen.insert(experiment.name.clone()));
        chosen.append(&mut found);
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_valid_and_has_its_name() {
        for (name, text) in FILES.iter().chain(MUSEUM) {
            let found = file::read(name, text).unwrap_or_else(|problem| panic!("{problem}"));
            assert_eq!(found.name, *name);
            assert!(!found.claims.is_empty() && !found.setting.is_empty() && !found.scaled.is_empty());
        }
    }

    #[test]
    fn every_exhibit_is_an_experiment_with_a_before_and_an_after() {
        use crate::experiment::museum::EXHIBITS;
        let all = museum(&[]).expect("all");
        for exhibit in EXHIBITS {
            let found = museum(&[exhibit.name.to_owned()]).expect("it is there");
            let settings = |cell: &str| found[0].cells[cell].settings.clone();
            assert_eq!(settings("before")["exhibit"], exhibit.name);
            assert_eq!((&*settings("before")["corrected"], &*settings("after")["corrected"]), ("off", "on"));
        }
        // `timer-list` is an experiment in process, without an exhibit.
        assert_eq!(all.len(), EXHIBITS.len() + 1);
        assert!(
            museum(&["accept-two".to_owned()]).expect_err("a slip").contains("did you mean `accept-one`?")
        );
    }

    #[test]
    fn a_word_selects_a_name_or_a_source() {
        let names = |words: &[&str]| -> Result<Vec<String>, String> {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            Ok(select(&words)?.into_iter().map(|experiment| experiment.name).collect())
        };
        assert_eq!(names(&["se20-404", "se20-404"]).expect("it is there"), ["se20-404"]);
        assert!(names(&["n16"]).expect("several").len() > 1);
        assert_eq!(names(&[]).expect("all").len(), FILES.len());
        assert!(names(&["n16-tpc"]).expect_err("a slip").contains("did you mean `n16-tcp`?"));
    }
}
