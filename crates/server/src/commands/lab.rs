//! `tenfold lab`: published comparisons, repeated on this machine.

mod flags;
mod live;

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::ArgMatches;
use tenfold_lab::doctor::{self, Gravity};
use tenfold_lab::experiment::subject::Subject;
use tenfold_lab::experiment::{Experiment, library};
use tenfold_lab::machine::environment::LabEnvironment;
use tenfold_lab::plan::profile::Profile;
use tenfold_lab::plan::{PLAN, RunPlan, Wishes};
use tenfold_lab::report::results::{ENVIRONMENT, RunResults};
use tenfold_lab::report::{self as page, FILES, compare};
use tenfold_lab::runner::{self, RunEnd};

pub(crate) use self::flags::command;
use self::live::LiveView;
use crate::settings::units;

/// No trial succeeded.
const INVALID: u8 = 4;
/// 128 plus the number of SIGINT, as in shells.
const INTERRUPTED: u8 = 130;

/// An error with its exit code.
struct LabFailure(u8, String);

impl From<String> for LabFailure {
    fn from(why: String) -> Self {
        LabFailure(1, why)
    }
}

fn usage(why: impl Into<String>) -> LabFailure {
    LabFailure(2, why.into())
}

/// Runs the subcommand that was typed.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    let path = |matches: &ArgMatches, name: &str| {
        matches.get_one::<PathBuf>(name).cloned().expect("clap requires it")
    };
    let done = match matches.subcommand() {
        Some(("list", _)) => list(),
        Some(("show", typed)) => show(typed),
        Some(("doctor", _)) => examine(),
        Some(("run", typed)) => start(typed),
        Some(("report", typed)) => report(&path(typed, "DIR")),
        Some(("compare", typed)) => compare_runs(&path(typed, "A"), &path(typed, "B")),
        _ => unreachable!("a subcommand is required, and these are all"),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(LabFailure(code, why)) => {
            eprintln!("tenfold lab: {why}");
            ExitCode::from(code)
        }
    }
}

fn print(text: &str) -> Result<(), LabFailure> {
    let written = io::stdout().write_all(text.as_bytes());
    written.map_err(|error| LabFailure(1, format!("cannot write to standard output: {error}")))
}

fn list() -> Result<u8, LabFailure> {
    let environment = LabEnvironment::find();
    let plan = RunPlan::new(library::all(), &Wishes::default(), &environment);
    let mut text = String::new();
    for planned in &plan.experiments {
        let one = &planned.experiment;
        let claims = match planned.untestable.len() {
            0 => format!("{} claims", one.claims.len()),
            lost => format!("{} claims, {lost} not testable here", one.claims.len()),
        };
        let smoke = if one.smoke { ", in smoke" } else { "" };
        let _ = writeln!(text, "{:<16}{}: {claims}{smoke}", one.name, one.title);
    }
    print(&text)?;
    Ok(0)
}

fn show(typed: &ArgMatches) -> Result<u8, LabFailure> {
    let name = typed.get_one::<String>("NAME").cloned().expect("clap requires it");
    let environment = LabEnvironment::find();
    let chosen = library::select(&[name]).map_err(usage)?;
    let mut text = String::new();
    for planned in RunPlan::new(chosen, &Wishes::default(), &environment).experiments {
        let one = &planned.experiment;
        if typed.get_flag("file") {
            text.push_str(&one.text);
            continue;
        }
        let _ = writeln!(
            text,
            "{}: {}\n\nsource:   {}\noriginal: {}\nhere:     {}",
            one.name, one.title, one.source, one.setting, one.scaled
        );
        for deviation in &one.deviations {
            let _ = writeln!(text, "differs:  {deviation}");
        }
        for (number, claim) in one.claims.iter().enumerate() {
            let _ = writeln!(
                text,
                "\n{}. {}\n   published: {}\n   rule: {claim}",
                number + 1,
                claim.says,
                claim.published
            );
            if let Some(confound) = &claim.confound {
                let _ = writeln!(text, "   confound: {}", confound.name);
            }
            if let Some(reason) = planned.untestable.get(&number) {
                let _ = writeln!(text, "   NOT TESTABLE HERE: {reason}");
            }
        }
        text.push_str("\ncells:\n");
        for (name, cell) in &one.cells {
            let settings: Vec<String> =
                cell.settings.iter().map(|(name, value)| format!("--{name} {value}")).collect();
            let about = if cell.about.is_empty() { String::new() } else { format!(" ({})", cell.about) };
            let _ = writeln!(text, "  {name}{about}: {} {}", cell.subject.name(), settings.join(" "));
        }
        text.push('\n');
    }
    print(&text)?;
    Ok(0)
}

fn examine() -> Result<u8, LabFailure> {
    let mut text = String::new();
    for one in doctor::examine(&LabEnvironment::find()) {
        let word = match one.gravity {
            Gravity::Good => "good  ",
            Gravity::Limits => "limits",
            Gravity::Spoils => "SPOILS",
        };
        let _ = writeln!(text, "{word}  {}", one.found);
        if !one.mend.is_empty() {
            let _ = writeln!(text, "        {}", one.mend);
        }
    }
    print(&text)?;
    Ok(0)
}

fn start(typed: &ArgMatches) -> Result<u8, LabFailure> {
    let (plan, folder) = match typed.get_one::<PathBuf>("resume") {
        Some(folder) => (RunPlan::read(folder)?, folder.clone()),
        None => new_run(typed)?,
    };
    let program = std::env::current_exe().map_err(|error| {
        LabFailure(1, format!("cannot find this program, to start it as a server: {error}"))
    })?;
    let mut view = LiveView::new(&plan);
    let end = runner::run(&plan, &program, &folder, &mut |progress| view.tell(&progress))?;
    view.end();
    let results = RunResults::read(&folder)?;
    page::write(&results, &folder)?;
    let shown = folder.display();
    if end == RunEnd::Interrupted {
        eprintln!("tenfold lab: interrupted; continue with: tenfold lab run --resume {shown}");
        return Ok(INTERRUPTED);
    }
    print(&live::verdicts(&results))?;
    print(&format!("report: {}\n", folder.join(FILES[0]).display()))?;
    let wanted = plan.experiments.iter().any(|planned| !planned.cells.is_empty());
    let succeeded = results.trials.iter().any(|trial| trial.failed.is_none());
    if wanted && !succeeded {
        let why = results.trials.iter().find_map(|trial| trial.failed.clone()).unwrap_or_default();
        return Err(LabFailure(INVALID, format!("no trial succeeded: {why}")));
    }
    Ok(0)
}

/// The plan of a new run, written into a folder of its own.
fn new_run(typed: &ArgMatches) -> Result<(RunPlan, PathBuf), LabFailure> {
    let profile = typed.get_one::<String>("profile").map_or("quick", String::as_str);
    let profile = units::word(profile, "profile", &Profile::WORDS).map_err(usage)?;
    let parsed = |name: &str, range| {
        let text = typed.get_one::<String>(name);
        text.map(|text| units::number(text, range))
            .transpose()
            .map_err(|why| usage(format!("--{name}: {why}")))
    };
    let budget = typed.get_one::<String>("budget").map(|text| {
        units::duration(text, Duration::from_secs(1)..=Duration::from_secs(7 * 24 * 3600))
            .map_err(|why| usage(format!("--budget: {why}")))
    });
    let peers = typed.get_many::<String>("peers").map(|names| {
        let subject = |name: &String| Subject::ALL.iter().find(|subject| subject.name() == name).copied();
        names.filter_map(subject).collect()
    });
    let wishes = Wishes {
        profile,
        blocks: parsed("blocks", 1..=10_000)?.map(|count: u64| count as usize),
        budget: budget.transpose()?.map(|time| time.as_secs()),
        seed: parsed("seed", 0..=u64::MAX)?.unwrap_or_else(random_seed),
        peers,
    };
    let words: Vec<String> = typed.get_many::<String>("only").into_iter().flatten().cloned().collect();
    let mut chosen: Vec<Experiment> = library::select(&words).map_err(usage)?;
    if profile == Profile::Smoke && words.is_empty() {
        chosen.retain(|experiment| experiment.smoke);
    }
    let environment = LabEnvironment::find();
    let plan = RunPlan::new(chosen, &wishes, &environment);
    let folder = match typed.get_one::<PathBuf>("output") {
        Some(folder) if folder.join(PLAN).exists() => {
            let shown = folder.display();
            return Err(usage(format!(
                "{shown} has a run already; continue it with --resume {shown}, or name another folder"
            )));
        }
        Some(folder) => folder.clone(),
        None => free_folder(profile),
    };
    let failed =
        |path: &Path, error: io::Error| LabFailure(1, format!("cannot write {}: {error}", path.display()));
    std::fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
    let path = folder.join(ENVIRONMENT);
    let text =
        serde_json::to_string_pretty(&environment).map_err(|error| LabFailure(1, error.to_string()))?;
    std::fs::write(&path, text).map_err(|error| failed(&path, error))?;
    plan.write(&folder)?;
    Ok((plan, folder))
}

fn free_folder(profile: Profile) -> PathBuf {
    let name = |number: u32| PathBuf::from(format!("lab-{}-{number}", profile.name()));
    (1..).map(name).find(|folder| !folder.exists()).expect("numbers do not end")
}

/// A seed that is short enough to type.
fn random_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::from(now.subsec_micros()) + 1
}

fn report(folder: &Path) -> Result<u8, LabFailure> {
    page::write(&RunResults::read(folder)?, folder)?;
    print(&format!("report: {}\n", folder.join(FILES[0]).display()))?;
    Ok(0)
}

fn compare_runs(a: &Path, b: &Path) -> Result<u8, LabFailure> {
    let (a, b) = (RunResults::read(a)?, RunResults::read(b)?);
    print(&compare::text(&a, &b))?;
    Ok(0)
}
