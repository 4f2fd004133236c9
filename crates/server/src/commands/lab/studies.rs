//! `tenfold lab why`: two servers or two switches, and the difference of their times.

use clap::ArgMatches;
use tenfold_lab::experiment::subject::{Cell, Subject, Workload};
use tenfold_lab::machine::environment::LabEnvironment;
use tenfold_lab::plan::RunPlan;
use tenfold_lab::report::FILES;
use tenfold_lab::studies::why::{self, Split};
use tenfold_lab::studies::words;

use super::failure::{INTERRUPTED, LabFailure, print, usage};
use super::live::LiveView;
use super::start::{carry_out, expect_success, folder, wishes, write_plan};
use crate::settings::rows;
use crate::settings::units;

/// Compares two cells, and prints the split of their difference.
pub(super) fn why(typed: &ArgMatches) -> Result<u8, LabFailure> {
    let load = load(typed)?;
    let named = |name: &str| {
        let text = typed.get_one::<String>(name).expect("clap requires it");
        let cell = words::cell(text, &load).map_err(usage)?;
        known_settings(&cell)?;
        Ok::<Cell, LabFailure>(cell)
    };
    let (a, b) = (named("A")?, named("B")?);
    let environment = LabEnvironment::find();
    let plan = RunPlan::new(why::experiments(&a, &b), &wishes(typed)?, &environment);
    // The pass under a tracer may be impossible; without the first experiment there is no comparison.
    if let Some(reason) = plan.experiments[0].untestable.values().next() {
        return Err(LabFailure(1, reason.clone()));
    }
    let folder = folder(typed, "lab-why")?;
    write_plan(&plan, &environment, &folder)?;
    let Some(results) = carry_out(&plan, &folder, LiveView::without_verdicts(&plan))? else {
        return Ok(INTERRUPTED);
    };
    expect_success(&plan, &results)?;
    print(&Split::of(&plan, &results.trials).to_string())?;
    print(&format!("report: {}\n", folder.join(FILES[0]).display()))?;
    Ok(0)
}

/// The load that was typed.
fn load(typed: &ArgMatches) -> Result<Workload, LabFailure> {
    let number = |name: &str, range| {
        let text = typed.get_one::<String>(name);
        text.map(|text| units::number(text, range))
            .transpose()
            .map_err(|why| usage(format!("--{name}: {why}")))
    };
    let file = typed.get_one::<String>("file").map(|text| units::size(text, 0..=1 << 30));
    Ok(Workload {
        connections: Some(number("connections", 1..=100_000)?.unwrap_or(1)),
        idle: number("idle", 0..=1_000_000)?,
        file: file.transpose().map_err(|why| usage(format!("--file: {why}")))?,
        close: typed.get_flag("close"),
        ..Workload::default()
    })
}

/// A setting that does not exist would fail in every trial.
fn known_settings(cell: &Cell) -> Result<(), LabFailure> {
    let unknown = |name: &&String| cell.subject == Subject::Tenfold && rows::row(name).is_none();
    let Some(name) = cell.settings.keys().find(unknown) else { return Ok(()) };
    let fix = match units::meant(name, rows::rows().map(|row| row.name)) {
        Some(near) => format!("did you mean --{near}?"),
        None => "`tenfold serve --help` lists them".to_owned(),
    };
    Err(usage(format!("`{}`: there is no setting --{name}: {fix}", cell.about)))
}
