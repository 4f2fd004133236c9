//! `tenfold agent`: load and laboratory for a controller on another machine.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, ArgMatches};
use tenfold_agents::Task;
use tenfold_agents::agent;
use tenfold_lab::trial::remote::SUBJECT_TASK;

use super::lab;
use crate::config::parse::units;
use crate::diagnostics::error;

/// The tasks that a controller can begin.
const TASKS: [(&str, Task); 2] =
    [(tenfold_load::LOAD_TASK, tenfold_load::task), (SUBJECT_TASK, lab::subject)];

const ABOUT: &str = "\
Controllers start this command: `tenfold bench --on NAME`, `tenfold lab run --server NAME=ADDRESS`
and `tenfold tune --client NAME`, by ssh or as --on-command says. It ends with its input, or 10
seconds after the last message.";

pub(crate) fn command() -> clap::Command {
    let wait = Arg::new("wait").long("wait").value_name("TIME").allow_hyphen_values(true);
    clap::Command::new("agent")
        .about("Make load or run trials for a controller on another machine, over standard input and output")
        .after_help(ABOUT)
        .arg(wait.help("Only keep a container up for TIME, so that a controller can start agents in it"))
}

/// Serves a controller, or waits.
pub(crate) fn run(typed: &ArgMatches) -> ExitCode {
    let bounds = Duration::from_secs(1)..=Duration::from_secs(30 * 24 * 3600);
    let wait = typed.get_one::<String>("wait").map(|text| units::duration(text, bounds)).transpose();
    let (result, code) = match wait {
        Ok(Some(time)) => (agent::wait(time), 1),
        Ok(None) => (agent::serve(&TASKS), 1),
        Err(why) => (Err(format!("--wait: {why}")), 2),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            error!("{why}");
            ExitCode::from(code)
        }
    }
}
