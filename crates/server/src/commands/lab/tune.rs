//! `tenfold tune`: finds the best settings for a folder of the user.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, value_parser};
use tenfold_lab::machine::doctor::{self, Gravity};
use tenfold_lab::machine::environment::LabEnvironment;
use tenfold_lab::machine::processes;
use tenfold_lab::plan::Machines;
use tenfold_lab::runner::RunProgress;
use tenfold_lab::studies::tune::candidates::CandidateSettings;
use tenfold_lab::studies::tune::configuration::{self, ConfigurationFacts};
use tenfold_lab::studies::tune::goal::Goal;
use tenfold_lab::studies::tune::requests::RequestMix;
use tenfold_lab::studies::tune::tuner::{LEAST_BUDGET, TuneProgress, Tuner};
use tenfold_lab::trial::bench::interrupted;
use tenfold_sys::limits;

use super::change::FileChange;
use super::failure::{INTERRUPTED, INVALID, LabFailure, end, print, usage};
use super::far;
use super::flags::{clients, flag, on_command, on_copy};
use super::live::ProgressLine;
use super::start::{make_own_folder, new_folder, own_server, wishes};
use crate::config::parse::given::GivenSettings;
use crate::config::parse::row::Initial;
use crate::config::parse::rows;
use crate::config::parse::units;
use crate::config::resolve::ResolvedConfig;
use crate::diagnostics::{info, warning};

const ABOUT: &str = "\
The search does not change the site. In the first half of the time, each round drops the worse half
of the settings. In the second half, new trials compare the best setting with the default, and only
these trials count. Without a difference the default is as good, and no configuration is written.
Nor is one if other programs disturbed the trials, or if the budget is too short for trials in which
each connection gets a response.

The output ends with a diff, which is also in the file tenfold.diff of the folder. Apply it with
`patch tenfold.toml tune-1/tenfold.diff`; with --config, it changes that file.

Exit codes: 0 done; 1 failed; 2 wrong usage; 4 invalid; 130 interrupted.";
/// The default time of a search.
const BUDGET: Duration = Duration::from_secs(300);
/// The time of a transfer over each link, which only shows that a client reaches this machine.
const LINK: Duration = Duration::from_millis(100);
/// The name of the diff in the folder of a search.
const CHANGE: &str = "tenfold.diff";
const LONGEST_BUDGET: Duration = Duration::from_secs(24 * 3600);

pub(crate) fn command() -> clap::Command {
    let goals = PossibleValuesParser::new(Goal::WORDS.map(|(name, _)| name));
    let file = |arg: Arg| arg.value_parser(value_parser!(PathBuf));
    clap::Command::new("tune")
        .about("Find the best settings for a folder by trials")
        .after_help(ABOUT)
        .arg(file(Arg::new("SITE").required(true).help("The folder to serve")))
        .arg(
            flag("for", "GOAL", "The goal: throughput, latency (p99) or memory [default: throughput]")
                .value_parser(goals),
        )
        .arg(file(flag(
            "log",
            "FILE",
            "Request paths as often as they occur in this access log (combined, common or JSON) [default: every file]",
        )))
        .arg(clients().requires("address"))
        .arg(
            flag("address", "ADDRESS", "With --client: the IPv4 address of this machine on which servers listen")
                .requires("client"),
        )
        .arg(on_command().requires("client"))
        .arg(on_copy().requires("client"))
        .arg(file(flag(
            "config",
            "FILE",
            "Show the change of this configuration, whose other settings the trials do not use [default: of a new file]",
        )))
        .arg(flag("budget", "TIME", "Time for everything [default: 5m]"))
        .arg(flag("seed", "N", "Repeat the random choices of an earlier search [default: random]"))
        .arg(file(flag(
            "output",
            "DIR",
            "The folder of the configuration and the raw data [default: a new one, such as tune-1]",
        )))
}

/// Searches, and writes a configuration if it is better than the default.
pub(crate) fn run(typed: &ArgMatches) -> ExitCode {
    end(tune(typed))
}

fn tune(typed: &ArgMatches) -> Result<u8, LabFailure> {
    let begin = Instant::now();
    let path = |name: &str| typed.get_one::<PathBuf>(name);
    let goal = typed.get_one::<String>("for").map_or(Goal::default().name(), String::as_str);
    let goal = units::word(goal, "goal", &Goal::WORDS).map_err(usage)?;
    if let Some(why) = processes::closed_memory().filter(|_| goal == Goal::Memory) {
        return Err(LabFailure(1, format!("{why}; run as root, or name another goal with --for")));
    }
    let budget = match typed.get_one::<String>("budget") {
        Some(text) => units::duration(text, LEAST_BUDGET..=LONGEST_BUDGET)
            .map_err(|why| usage(format!("--budget: {why}")))?,
        None => BUDGET,
    };
    let seed = wishes(typed)?.seed;
    let root = site(path("SITE").expect("clap requires it"))?;
    if let Some(file) = path("config") {
        accepted(file, None).map_err(|why| usage(format!("cannot use the configuration: {why}")))?;
    }
    let mix = match path("log") {
        Some(log) => RequestMix::of_log(log),
        None => RequestMix::of_folder(&root, seed),
    };
    let mix = mix.map_err(usage)?;
    let folder = output(path("output"), &root)?;
    let environment = LabEnvironment::find();
    for one in doctor::examine(&environment).iter().filter(|one| one.gravity == Gravity::Spoils) {
        warning!("{}: {}", one.found, one.mend);
    }
    let own = own_server()?;
    let mut machines = match typed.get_one::<String>("address") {
        Some(text) => {
            let address = far::address(text).map_err(|why| usage(format!("--address: {why}")))?;
            let machines = Machines { server: None, address, clients: far::clients(typed)? };
            let mut far = far::start(typed, &machines, LINK)?;
            far.prepare(&[])?;
            Some(far)
        }
        None => None,
    };
    let tuner = Tuner { own: &own, environment: &environment, folder: &folder, goal, begin, budget, seed };
    let mut line = ProgressLine::new();
    let found = tuner.run(&root, &mix, machines.as_mut(), &mut |progress| tell(&mut line, progress));
    drop(machines);
    line.end();
    // A signal may be the reason why a step failed.
    let Some(result) = (if interrupted() { None } else { found? }) else {
        info!("interrupted; no configuration was written");
        return Ok(INTERRUPTED);
    };
    if let Some(why) = &result.invalid {
        let folder = folder.display();
        return Err(LabFailure(
            INVALID,
            format!("invalid: {why}; no configuration was written; raw data: {folder}"),
        ));
    }
    print(&format!("{result}\n{}\n", result.decision()))?;
    let Some(best) = result.winner() else {
        print(&format!("nothing was written; raw data: {}\n", folder.display()))?;
        return Ok(0);
    };
    let command = repeat(typed, goal, budget, seed, &root);
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let facts = ConfigurationFacts { environment: &environment, root: &root, command: &command, at, about };
    let file = folder.join(configuration::FILE);
    let text = configuration::text(&result, best, &facts)?;
    write(&file, &text)?;
    let shown = quoted(&file);
    print(&format!("written: {shown}; serve with it: tenfold serve --config {shown}\n"))?;
    print(&change(path("config").map(PathBuf::as_path), &best.settings, &text, &folder)?)?;
    Ok(0)
}

fn write(file: &Path, text: &str) -> Result<(), LabFailure> {
    fs::write(file, text).map_err(|error| LabFailure(1, format!("cannot write {}: {error}", file.display())))
}

/// Writes the change of a configuration, or of a new file with `text`, into the folder of the search. Returns the command
/// that applies it, and the diff.
fn change(
    config: Option<&Path>,
    settings: &CandidateSettings,
    text: &str,
    folder: &Path,
) -> Result<String, LabFailure> {
    let target = config.unwrap_or(Path::new(configuration::FILE));
    let change = match config {
        None => Ok(FileChange::of_new(text)),
        Some(file) => changed(file, settings),
    };
    let shown = quoted(target);
    let change = match change {
        Err(why) => {
            let tuned = quoted(&folder.join(configuration::FILE));
            return Ok(format!("no change of {shown}: {why}; copy the settings from {tuned}\n"));
        }
        Ok(change) if change.is_empty() => return Ok(format!("{shown} has these settings already\n")),
        Ok(change) => change.unified(config, target),
    };
    let file = folder.join(CHANGE);
    write(&file, &change)?;
    Ok(format!("apply the change: patch {shown} {}\n\n{change}", quoted(&file)))
}

/// The change of a configuration that sets `settings`, if the server accepts the result.
fn changed(file: &Path, settings: &CandidateSettings) -> Result<FileChange, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("cannot read it: {error}"))?;
    let change = FileChange::edit(&text, settings)?;
    accepted(file, Some(&change.text()))?;
    Ok(change)
}

/// Fails if the server does not accept a configuration file, or the file with another `content`.
fn accepted(file: &Path, content: Option<&str>) -> Result<(), String> {
    let given = GivenSettings { config: Some(file.to_owned()), ..GivenSettings::default() };
    let settings = content.map_or_else(|| given.resolve(), |content| given.resolve_content(content));
    let settings = settings.map_err(|problems| match problems.iter().find(|one| !one.is_placed()) {
        Some(problem) => problem.remedy(),
        None => format!("`tenfold check {}` shows each problem", quoted(file)),
    })?;
    let descriptors = limits::raise_descriptors().unwrap_or(u64::MAX);
    ResolvedConfig::resolve(&settings, descriptors).map(drop)
}

/// The absolute path of the folder to serve.
fn site(typed: &Path) -> Result<PathBuf, LabFailure> {
    let shown = typed.display();
    let root = fs::canonicalize(typed)
        .map_err(|error| usage(format!("cannot find the site {shown}: {error}; name a folder")))?;
    match root.is_dir() {
        true => Ok(root),
        false => Err(usage(format!("{shown} is not a folder; name the folder that is served"))),
    }
}

/// The folder for results: new or empty, and outside the site, because the search measures the files of the site.
fn output(typed: Option<&PathBuf>, root: &Path) -> Result<PathBuf, LabFailure> {
    let place = typed.map_or(Path::new("."), PathBuf::as_path);
    let shown = typed.map_or("the current folder".to_owned(), |folder| folder.display().to_string());
    let failed = |error: std::io::Error| LabFailure(1, format!("cannot use the folder {shown}: {error}"));
    let absolute = std::path::absolute(place).map_err(failed)?;
    // The existing part of the path may contain links.
    let existing = absolute.ancestors().find_map(|part| fs::canonicalize(part).ok()).unwrap_or_default();
    if existing.starts_with(root) {
        return Err(usage(format!("{shown} is in the site; name a folder outside of it with --output")));
    }
    let Some(folder) = typed else { return new_folder("tune") };
    let used = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if used {
        return Err(usage(format!("{shown} is not empty; name a new folder with --output")));
    }
    make_own_folder(folder)?;
    Ok(folder.clone())
}

/// The command that repeats a search.
fn repeat(typed: &ArgMatches, goal: Goal, budget: Duration, seed: u64, root: &Path) -> String {
    let mut words = format!(
        "tenfold tune --for {} --budget {} --seed {seed}",
        goal.name(),
        units::shown_duration(budget)
    );
    for name in ["log", "config"] {
        if let Some(file) = typed.get_one::<PathBuf>(name) {
            let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
            words.push_str(&format!(" --{name} {}", quoted(&file)));
        }
    }
    if let Some(address) = typed.get_one::<String>("address") {
        words.push_str(&format!(" --address {address}"));
        far::clients(typed)
            .into_iter()
            .flatten()
            .for_each(|client| words.push_str(&format!(" --client {client}")));
    }
    format!("{words} {}", quoted(root))
}

/// A path as a word of a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=@%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// The meaning and the default of a setting.
fn about(name: &str) -> Option<(String, String, bool)> {
    let row = rows::row(name)?;
    let default = match row.initial {
        Initial::Value(value) | Initial::Follows(value) => value,
    };
    // The help has the rest: a list of all values.
    let meaning = row.about.split([':', ';']).next().unwrap_or_default();
    Some((meaning.to_owned(), default.to_owned(), row.is_experiment()))
}

/// Prints progress: a line for each step, and an updating line for each trial.
fn tell(line: &mut ProgressLine, progress: TuneProgress<'_>) {
    match progress {
        TuneProgress::Step(text) => line.say(&text),
        TuneProgress::Trials(RunProgress::Trial { cell, block, blocks, .. }) => {
            line.update(&format!("  block {block} of {blocks}, {cell}"));
        }
        TuneProgress::Trials(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use tenfold_lab::studies::tune::candidates;
    use tenfold_lab::studies::tune::result::{Confirmation, TuneResult};
    use tenfold_lab::verdict::ruling::{ClaimVerdict, Ruling};
    use tenfold_testkit::folder::TempFolder;

    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        assert_eq!(quoted(Path::new("/srv/my-site_1.0")), "/srv/my-site_1.0");
        assert_eq!(quoted(Path::new("/srv/it's mine")), "'/srv/it'\\''s mine'");
    }

    #[test]
    fn a_search_ends_with_the_change_of_a_configuration_that_the_server_accepts() {
        let folder = TempFolder::new("tune-ends");
        folder.make("site");
        let best = CandidateSettings::from([("engine".to_owned(), "pool".to_owned())]);
        let end = |config: Option<&Path>| {
            let text = change(config, &best, "engine = \"pool\"\n", folder.path());
            text.unwrap_or_else(|LabFailure(_, why)| panic!("{why}"))
        };
        let diff = folder.at(CHANGE);
        let new = end(None);
        let begin = format!("apply the change: patch tenfold.toml {}\n\n--- /dev/null\n", diff.display());
        assert!(new.starts_with(&begin) && new.ends_with("\n@@ -0,0 +1,1 @@\n+engine = \"pool\"\n"), "{new}");
        let config = folder.write("own.toml", "root = \"site\"\nworkers = 2\n");
        let changed = end(Some(&config));
        let written = std::fs::read_to_string(&diff).expect("it is written");
        assert!(changed.ends_with(&format!("\n\n{written}")), "{changed}");
        let lines = "@@ -1,2 +1,2 @@\n root = \"site\"\n-workers = 2\n+engine = \"pool\"\n";
        assert!(written.ends_with(lines), "{written}");
        std::fs::remove_file(&diff).expect("it is written");
        for (text, expected) in [
            ("root = \"site\"\nengine = \"pool\"\n", " has these settings already\n"),
            ("root = \"site\"\nmax-connections = 9\n", "max-connections is for engines fork, "),
            ("root = \"site\"\nengin = 1\n", "` shows each problem; copy the settings from "),
        ] {
            let text = end(Some(&folder.write("own.toml", text)));
            assert!(text.contains(expected) && !text.contains("@@") && !diff.exists(), "{text}");
        }
    }

    #[test]
    fn every_setting_that_is_tried_has_a_meaning_and_a_default() {
        let able = tenfold_engine::MODELS.iter().collect::<Vec<_>>();
        let all = candidates::candidates(&able, 4, 100, 1);
        for name in all.iter().flat_map(|one| one.keys()) {
            let (meaning, default, _) = about(name).unwrap_or_else(|| panic!("{name} is no setting"));
            assert!(!meaning.is_empty() && !default.is_empty(), "{name}");
        }
    }

    #[test]
    fn the_configuration_of_every_candidate_is_read() {
        let folder = TempFolder::new("tune-written");
        let able = tenfold_engine::MODELS.iter().collect::<Vec<_>>();
        let environment = LabEnvironment::default();
        for settings in candidates::candidates(&able, 4, 100, 1) {
            let best = Confirmation {
                settings: settings.clone(),
                verdict: ClaimVerdict { ruling: Ruling::Holds, is_ratio: true, ..ClaimVerdict::default() },
                measures: Vec::new(),
                unanswered: 0.0,
                disturbed: 0,
                limited: (0, 0),
            };
            let facts = ConfigurationFacts {
                environment: &environment,
                root: folder.path(),
                command: "tenfold tune",
                at: 0,
                about,
            };
            let text = configuration::text(&TuneResult::default(), &best, &facts).expect("it is UTF-8");
            let file = folder.write(configuration::FILE, &text);
            let given = GivenSettings { config: Some(file), ..GivenSettings::default() };
            assert!(given.resolve().is_ok(), "{settings:?}: {text}");
        }
    }
}
