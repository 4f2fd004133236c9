//! `tenfold lab why`, `tenfold lab explain` and `tenfold lab wall`: questions without a published claim.

use std::io::{IsTerminal, Write, stdout};

use clap::ArgMatches;
use tenfold_engine::{Engine, MODELS};
use tenfold_lab::experiment::library;
use tenfold_lab::experiment::museum::{HEADER, exhibit};
use tenfold_lab::experiment::subject::{Cell, Subject, Workload};
use tenfold_lab::machine::environment::LabEnvironment;
use tenfold_lab::measure::Measure;
use tenfold_lab::plan::RunPlan;
use tenfold_lab::plan::profile::Profile;
use tenfold_lab::record::Trial;
use tenfold_lab::report::results::RunResults;
use tenfold_lab::runner::RunProgress;
use tenfold_lab::studies::explain::Explanation;
use tenfold_lab::studies::wall::{ENGINES, IdleWall, most_idle};
use tenfold_lab::studies::why::{self, Split};
use tenfold_lab::studies::{museum, words};
use tenfold_sys::limits;

use crate::commands::lab::failure::{INTERRUPTED, LabFailure, print, usage};
use crate::commands::lab::live::{LiveView, RunView};
use crate::commands::lab::start::{own_server, study, wishes};
use crate::config::check;
use crate::config::parse::{rows, units};
use crate::diagnostics::visible;

/// The default number of idle connections of the wall. A run takes a minute, and `poll` becomes slower by a factor of
/// ten.
const USUAL_MOST: u32 = 8_000;
/// The default number of blocks of the wall.
const WALL_BLOCKS: usize = 3;

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
    // The tracer may be unavailable, but the comparison needs only the first experiment.
    if let Some(reason) = plan.experiments[0].untestable.values().next() {
        return Err(LabFailure(1, reason.clone()));
    }
    let text = |results: &RunResults| Split::of(&plan, &results.trials).to_string();
    study(typed, "lab-why", (&plan, &environment), &mut LiveView::without_verdicts(&plan), text)
}

/// Traces a request on an engine, and prints each system call with its source line.
pub(super) fn explain(typed: &ArgMatches) -> Result<u8, LabFailure> {
    let name = typed.get_one::<String>("ENGINE").expect("clap requires it");
    let engine: Engine = name.parse().map_err(|why| {
        let near = units::meant(name, MODELS.iter().map(|model| model.name));
        usage(format!("{why}{}", near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()))
    })?;
    check::require(engine)?;
    let Some(explanation) = Explanation::trace(engine, &own_server()?)? else { return Ok(INTERRUPTED) };
    print(&if typed.get_flag("table") { explanation.table() } else { explanation.to_string() })?;
    Ok(0)
}

/// The load of the command line.
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

/// Refuses an unknown setting, with which every trial would fail.
fn known_settings(cell: &Cell) -> Result<(), LabFailure> {
    let unknown = |name: &&String| cell.subject == Subject::Tenfold && rows::row(name).is_none();
    let Some(name) = cell.settings.keys().find(unknown) else { return Ok(()) };
    let fix = match units::meant(name, rows::rows().map(|row| row.name)) {
        Some(near) => format!("did you mean --{near}?"),
        None => "`tenfold serve --help-all` lists them".to_owned(),
    };
    Err(usage(format!("`{}`: there is no setting --{name}: {fix}", cell.about)))
}

/// Measures engines with a growing number of idle connections, and draws a chart.
pub(super) fn wall(typed: &ArgMatches) -> Result<u8, LabFailure> {
    let engines: Vec<String> = match typed.get_many::<String>("engines") {
        Some(names) => names.cloned().collect(),
        None => ENGINES.map(str::to_owned).into(),
    };
    let descriptors = limits::raise_descriptors()
        .map_err(|error| LabFailure(1, format!("cannot raise the limit of descriptors: {error}")))?;
    let environment = LabEnvironment::find();
    let ports = environment.sysctls.get("net.ipv4.ip_local_port_range").cloned().unwrap_or_default();
    let most = most_idle(descriptors, &ports);
    let idle = match typed.get_one::<String>("idle") {
        Some(text) => units::number(text, 1..=most).map_err(|why| {
            usage(format!("--idle: {why}; descriptors (`ulimit -n`) and local ports allow {most}"))
        })?,
        None => most.min(USUAL_MOST),
    };
    let wall = IdleWall::new(&engines, idle).map_err(usage)?;
    let mut wishes = wishes(typed)?;
    wishes.profile = Profile::Smoke;
    wishes.budget = Some(Profile::Quick.seconds());
    wishes.blocks = wishes.blocks.or(Some(WALL_BLOCKS));
    let plan = wall.plan(&wishes, &environment);
    let text = |results: &RunResults| wall.table(&results.trials);
    study(typed, "lab-wall", (&plan, &environment), &mut WallView::new(&wall), text)
}

/// The view of `tenfold lab wall`: on a terminal, a chart that each trial updates; elsewhere, plain lines.
struct WallView<'a> {
    wall: &'a IdleWall,
    trials: Vec<Trial>,
    terminal: bool,
    /// The lines of the chart on the terminal.
    drawn: usize,
}

impl RunView for WallView<'_> {
    fn tell(&mut self, progress: &RunProgress<'_>) {
        match progress {
            RunProgress::Trial { cell, block, blocks, .. } if self.terminal => {
                self.draw(&format!("measuring {cell}, block {block} of {blocks}; Ctrl-C stops\n"));
            }
            RunProgress::Ended(trial) => {
                if !self.terminal {
                    self.write(&line(trial));
                }
                self.trials.push((*trial).clone());
            }
            _ => {}
        }
    }

    /// Draws the last chart, without the line of progress.
    fn end(&mut self) {
        if self.terminal {
            self.draw("\n");
        }
    }
}

impl WallView<'_> {
    fn new(wall: &IdleWall) -> WallView<'_> {
        WallView { wall, trials: Vec::new(), terminal: stdout().is_terminal(), drawn: 0 }
    }

    fn draw(&mut self, below: &str) {
        let text = format!("{}{below}", self.wall.chart(&self.trials));
        // Moves to the first line of the last chart, and clears everything below (ECMA-48).
        let back = if self.drawn > 0 { format!("\x1b[{}A\x1b[J", self.drawn) } else { String::new() };
        self.drawn = text.lines().count();
        self.write(&format!("{back}{text}"));
    }

    fn write(&self, text: &str) {
        // If the output is closed, the print of the final table reports the error.
        let _ = stdout().write_all(text.as_bytes()).and_then(|()| stdout().flush());
    }
}

fn line(trial: &Trial) -> String {
    let result = match (&trial.failed, trial.values.get(&Measure::Cpu)) {
        (Some(why), _) => visible(&format!("failed: {why}")),
        (None, Some(cpu)) => Measure::Cpu.show(*cpu),
        (None, None) => "no response".to_owned(),
    };
    let control = if trial.control { " again" } else { "" };
    format!("block {:<3} {:<16}{result}\n", trial.block + 1, format!("{}{control}", trial.cell))
}

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
