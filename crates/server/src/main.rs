//! `tenfold`: an HTTP server for static sites and media whose I/O model is a switch.
//!
//! [`cli`] reads what was typed, [`settings`] what it means, [`blueprint`] what will run; [`supervisor`]
//! opens everything, forks the workers and watches over them, and a worker runs [`app`] on an engine.

#![forbid(unsafe_code)]

mod admission;
mod app;
mod bench;
mod blueprint;
mod check;
mod cli;
mod counters;
mod diagnostics;
mod engines;
mod log;
mod manual;
mod members;
mod null;
mod sandbox;
mod settings;
mod startup;
mod status;
mod supervisor;
mod users;
mod worker;

use std::process::ExitCode;

use cli::Command;

fn main() -> ExitCode {
    match cli::parse() {
        Command::Bench(typed) => bench::run(&typed),
        Command::Users(typed) => users::run(&typed),
        Command::Serve(serve) => supervisor::serve(serve),
        Command::Check(given) => check::check(&given),
        Command::Schema => check::print_schema(),
        Command::Engines { matrix, json } => engines::show(matrix, json),
        Command::Man { command, folder } => {
            manual::man(cli::program(), command.as_deref(), folder.as_deref())
        }
        Command::Completions(shell) => manual::completions(cli::program(), &shell),
        Command::Status { control, json } => status::show(control, json),
    }
}
