//! `tenfold lab museum`: published mistakes, before and after their correction.

use clap::ArgMatches;
use tenfold_lab::experiment::library;
use tenfold_lab::experiment::museum::{HEADER, exhibit};
use tenfold_lab::machine::environment::LabEnvironment;
use tenfold_lab::plan::RunPlan;
use tenfold_lab::plan::profile::Profile;
use tenfold_lab::report::results::RunResults;
use tenfold_lab::studies::museum;

use super::failure::{LabFailure, print, usage};
use super::live::LiveView;
use super::start::{study, wishes};

/// Runs exhibits, or prints their programs.
pub(super) fn museum(typed: &ArgMatches) -> Result<u8, LabFailure> {
    let names: Vec<String> = typed.get_many::<String>("NAME").into_iter().flatten().cloned().collect();
    let chosen = library::museum(&names).map_err(usage)?;
    if typed.get_flag("source") {
        return source(&names);
    }
    let mut wishes = wishes(typed)?;
    if !typed.contains_id("profile") {
        wishes.profile = Profile::Smoke;
    }
    // The exhibits determine the length of a run.
    wishes.budget = Some(Profile::Quick.seconds());
    let environment = LabEnvironment::find();
    let plan = RunPlan::new(chosen, &wishes, &environment);
    let text = |results: &RunResults| museum::text(&plan, &results.trials, &results.verdicts);
    study(typed, "lab-museum", (&plan, &environment), &mut LiveView::without_verdicts(&plan), text)
}

fn source(names: &[String]) -> Result<u8, LabFailure> {
    if names.is_empty() {
        return Err(usage("--source prints the program of an exhibit: name one, such as `accept-one`"));
    }
    for name in names {
        match exhibit(name) {
            Some(exhibit) => print(exhibit.source)?,
            None => return Err(usage(format!("{name} runs in process, and has no program of its own"))),
        }
    }
    print("\n/* museum.h */\n")?;
    print(HEADER)?;
    Ok(0)
}
