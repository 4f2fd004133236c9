//! `tenfold stop`: asks a running server to end, and waits for its end.

use std::process::ExitCode;

use tenfold_sys::signal::Signal;

use super::output::{end, print};
use super::running::{PATIENCE, RunningServer, ServerChoice};

/// Stops the chosen server. With `now`, running responses are cut off.
pub(crate) fn stop(choice: &ServerChoice, now: bool) -> ExitCode {
    end(RunningServer::find(choice).and_then(|server| run(&server, now)))
}

fn run(server: &RunningServer, now: bool) -> Result<(), String> {
    let number = server.number;
    if now {
        server.signal(Signal::Interrupt)?;
    } else if !server.report()?.draining {
        // A second TERM would cut off running responses.
        server.signal(Signal::Terminate)?;
    }
    match server.wait_for_end()? {
        true => print(format!("process {number} has stopped\n").as_bytes()),
        false => Err(format!(
            "process {number} has not stopped within {PATIENCE:?}; `tenfold stop --now` cuts off its running responses"
        )),
    }
}
