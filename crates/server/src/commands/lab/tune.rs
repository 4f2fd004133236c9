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
use tenfold_lab::studies::tune::configuration::{self, ConfigurationFacts};
use tenfold_lab::studies::tune::goal::Goal;
use tenfold_lab::studies::tune::requests::RequestMix;
use tenfold_lab::studies::tune::tuner::{LEAST_BUDGET, TuneProgress, Tuner};
use tenfold_lab::trial::bench::interrupted;

use super::failure::{INTERRUPTED, INVALID, LabFailure, end, print, usage};
use super::far;
use super::flags::{clients, flag, on_command, on_copy};
use super::live::ProgressLine;
use super::start::{make_own_folder, new_folder, own_server, wishes};
use crate::config::parse::row::Initial;
use crate::config::parse::rows;
use crate::config::parse::units;
use crate::diagnostics::{info, warning};

const ABOUT: &str = "\
The search does not change the site. In the first half of the time, each round drops the worse half
of the settings. In the second half, new trials compare the best setting with the default, and only
these trials count. Without a difference the default is as good, and no configuration is written.
Nor is one if other programs disturbed the trials.

Exit codes: 0 done; 1 failed; 2 wrong usage; 4 invalid; 130 interrupted.";
/// The default time of a search.
const BUDGET: Duration = Duration::from_secs(300);
/// The time of a transfer over each link, which only shows that a client reaches this machine.
const LINK: Duration = Duration::from_millis(100);
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
    fs::write(&file, configuration::text(&result, best, &facts)?)
        .map_err(|error| LabFailure(1, format!("cannot write {}: {error}", file.display())))?;
    let shown = quoted(&file);
    print(&format!("written: {shown}; serve with it: tenfold serve --config {shown}\n"))?;
    Ok(0)
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
    if let Some(log) = typed.get_one::<PathBuf>("log") {
        let log = std::path::absolute(log).unwrap_or_else(|_| log.clone());
        words.push_str(&format!(" --log {}", quoted(&log)));
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
    use crate::config::parse::given::GivenSettings;

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        assert_eq!(quoted(Path::new("/srv/my-site_1.0")), "/srv/my-site_1.0");
        assert_eq!(quoted(Path::new("/srv/it's mine")), "'/srv/it'\\''s mine'");
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
