//! `tenfold`: an HTTP server for static sites and media whose I/O model is a switch.
//!
//! [`commands`] reads the command line. `serve` reads, checks and resolves the [`config`], and starts the [`supervisor`], which opens everything, forks workers and watches them. A [`worker`] serves on an
//! engine.

#![forbid(unsafe_code)]

mod admission;
mod commands;
mod config;
mod diagnostics;
mod log;
mod members;
mod sandbox;
mod status;
mod supervisor;
mod worker;

use std::process::ExitCode;

use tenfold_sys::signal::Held;

use commands::cli::{self, Command};
use commands::{bench, book, check, engines, lab, manual, next, status as counts, upgrade, users};

/// Runs the command of this process's command line.
pub fn run() -> ExitCode {
    // A signal for a server may come before its command line is read.
    let held = Held::begin();
    let command = cli::parse();
    if !matches!(command, Command::Serve(_) | Command::Book(_)) {
        held.release();
    }
    match command {
        Command::Bench(typed) => bench::run(&typed),
        Command::Lab(typed) => lab::run(&typed),
        Command::Tune(typed) => lab::tune::run(&typed),
        Command::Users(typed) => users::run(&typed),
        Command::NextStep => next::show(),
        Command::Serve(serve) => supervisor::open::serve(serve),
        Command::Book(listen) => book::serve(listen),
        Command::Check(given) => check::check(&given),
        Command::Schema => check::print_schema(),
        Command::Engines { name, matrix, json } => engines::show(name.as_deref(), matrix, json),
        Command::Man { command, folder } => {
            manual::man(cli::program(), command.as_deref(), folder.as_deref())
        }
        Command::Completions(shell) => manual::completions(cli::program(), &shell),
        Command::Status(command) => counts::show(command),
        Command::Upgrade { control } => upgrade::upgrade(control),
    }
}
