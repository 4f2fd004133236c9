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

use commands::{cli, next};

/// Runs the command of this process's command line.
pub fn run() -> ExitCode {
    // A signal for a server may come before its command line is read.
    let held = Held::begin();
    let typed = cli::parse();
    let command = typed.as_ref().and_then(|typed| typed.subcommand());
    if !matches!(command, Some(("serve" | "book", _))) {
        held.release();
    }
    command.map_or_else(next::show, |(name, typed)| cli::run(name, typed))
}
