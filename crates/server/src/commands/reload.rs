//! `tenfold reload`: asks a running server to read its configuration again, and waits for the result.

use std::process::ExitCode;

use tenfold_sys::signal::Signal;

use super::output::{end, print};
use super::running::{RunningServer, ServerChoice};
use crate::diagnostics::{self, Level};

/// Reloads the chosen server.
pub(crate) fn reload(choice: &ServerChoice) -> ExitCode {
    end(RunningServer::find(choice).and_then(|server| run(&server)))
}

fn run(server: &RunningServer) -> Result<(), String> {
    let number = server.number;
    // The result of an earlier reload would look like the result of this one.
    let before = server.wait_for("finish an earlier reload", |report| {
        let is_starting = report.workers.iter().any(|worker| worker.state == "starting");
        (!is_starting || report.draining).then_some(report)
    })?;
    if before.draining {
        return Err(format!("process {number} is stopping and reads no configuration"));
    }
    server.signal(Signal::HangUp)?;
    let after = server.wait_for("reload", |after| {
        let is_over = after.reloads.failed > before.reloads.failed
            || after.reloads.succeeded > before.reloads.succeeded;
        is_over.then_some(after)
    })?;
    if after.reloads.failed == before.reloads.failed {
        let serves = format!("process {number}: serving with the new configuration");
        return print(format!("{serves} (generation {})\n", after.generation).as_bytes());
    }
    let why = match after.reloads.last_failure.as_slice() {
        [only] => only,
        lines => {
            diagnostics::lines(Level::Error, &format!("{}\n\n", lines.join("\n")));
            "the configuration was not applied"
        }
    };
    Err(format!("{why}; the old configuration stays in use"))
}
