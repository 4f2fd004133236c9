//! `tenfold upgrade`: asks a running server to replace its program, and waits for the result.

use std::process::ExitCode;

use tenfold_sys::signal::Signal;

use super::output::{end, print};
use super::running::{RunningServer, ServerChoice};

/// Upgrades the chosen server.
pub(crate) fn upgrade(choice: &ServerChoice) -> ExitCode {
    end(RunningServer::find(choice).and_then(|server| run(&server)))
}

fn run(server: &RunningServer) -> Result<(), String> {
    let number = server.number;
    let before = server.report()?;
    server.signal(Signal::Retire)?;
    // The new program does not respond while it starts.
    let after = server.wait_for("upgrade", |after| {
        let is_over = after.upgrades.failed > before.upgrades.failed
            || after.upgrades.succeeded > before.upgrades.succeeded;
        is_over.then_some(after)
    })?;
    if after.upgrades.failed > before.upgrades.failed {
        let why = after.upgrades.last_failure.unwrap_or_default();
        return Err(format!("{why}; the old program stays in use; the server's diagnostics have details"));
    }
    let (old, new) = (before.version, after.version);
    let result = match after.upgrades.same_file {
        Some(path) => format!(
            "not upgraded: {path} is still the file that ran before, version {new}; it was executed again"
        ),
        None => format!("upgraded from {old} to {new}"),
    };
    print(format!("process {number}: {result}\n").as_bytes())
}
