//! `tenfold lab`: published comparisons, repeated on this machine.

mod change;
mod failure;
pub(crate) mod far;
mod flags;
mod live;
mod start;
mod studies;
pub(crate) mod tune;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ArgMatches;
use tenfold_lab::experiment::library;
use tenfold_lab::machine::doctor::{self, Diagnosis, Gravity};
use tenfold_lab::machine::environment::LabEnvironment;
use tenfold_lab::measure::show_count;
use tenfold_lab::plan::{RunPlan, Wishes};
use tenfold_lab::report::results::RunResults;
use tenfold_lab::report::{self as page, FILES, compare};

use self::failure::{LabFailure, end, print, usage};
pub(crate) use self::flags::command;
use self::start::own_folder;
pub(crate) use self::start::subject;

pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    let path = |matches: &ArgMatches, name: &str| {
        matches.get_one::<PathBuf>(name).cloned().expect("clap requires it")
    };
    let done = match matches.subcommand() {
        Some(("list", _)) => list(),
        Some(("show", typed)) => show(typed),
        Some(("doctor", typed)) => examine(typed),
        Some(("run", typed)) => start::start(typed),
        Some(("why", typed)) => studies::why(typed),
        Some(("explain", typed)) => studies::explain(typed),
        Some(("wall", typed)) => studies::wall(typed),
        Some(("museum", typed)) => studies::museum(typed),
        Some(("report", typed)) => report(&path(typed, "DIR")),
        Some(("compare", typed)) => compare_runs(&path(typed, "A"), &path(typed, "B")),
        _ => unreachable!("a subcommand is required, and these are all"),
    };
    end(done)
}

fn list() -> Result<u8, LabFailure> {
    let environment = LabEnvironment::find();
    let plan = RunPlan::new(library::all(), &Wishes::default(), &environment);
    let mut text = String::new();
    for planned in &plan.experiments {
        let one = &planned.experiment;
        let claims = match planned.untestable.len() {
            0 => show_count(one.claims.len(), "claim"),
            lost => format!("{}, {lost} not testable here", show_count(one.claims.len(), "claim")),
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

fn examine(typed: &ArgMatches) -> Result<u8, LabFailure> {
    let Some(machines) = far::machines(typed)? else {
        print(&findings(doctor::examine(&LabEnvironment::find())))?;
        return Ok(0);
    };
    let mut far = far::start(typed, &machines, far::TRANSFER)?;
    let mut text = String::new();
    for (place, report) in far.examine()?.into_iter().enumerate() {
        let part = if place == 0 { format!("server at {}", machines.address) } else { "client".to_owned() };
        let _ = writeln!(text, "{} ({part})\n{}", report.host.name, findings(report.diagnoses));
    }
    print(&format!("{}\n", text.trim_end()))?;
    Ok(0)
}

/// A line for each finding, and a line for the way to fix it.
fn findings(all: Vec<Diagnosis>) -> String {
    let mut text = String::new();
    for one in all {
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
    text
}

fn report(folder: &Path) -> Result<u8, LabFailure> {
    own_folder(folder)?;
    page::write(&RunResults::read(folder)?, folder)?;
    print(&format!("report: {}\n", folder.join(FILES[0]).display()))?;
    Ok(0)
}

fn compare_runs(a: &Path, b: &Path) -> Result<u8, LabFailure> {
    let (a, b) = (RunResults::read(a)?, RunResults::read(b)?);
    print(&compare::text(&a, &b))?;
    Ok(0)
}
