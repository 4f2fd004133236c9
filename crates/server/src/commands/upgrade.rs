//! `tenfold upgrade`: asks a running server to replace its program, and waits for the result.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use tenfold_sys::process::{self, Pid};
use tenfold_sys::signal::Signal;
use tenfold_sys::task;

use super::output::{end, print};
use super::status::source::StatusSource;
use crate::status::place;

/// The longest wait for the result: the bounds of the check and of the start of every process together.
const PATIENCE: Duration = Duration::from_secs(150);
/// The pause between two questions.
const PAUSE: Duration = Duration::from_millis(100);

/// Upgrades the server at this control socket, or the only running one.
pub(crate) fn upgrade(control: Option<PathBuf>) -> ExitCode {
    end(control.map_or_else(place::find, Ok).and_then(run))
}

fn run(control: PathBuf) -> Result<(), String> {
    let source = StatusSource::Control(control);
    let (_, before) = source.ask()?;
    let number = before.process;
    let server = i32::try_from(number).ok().and_then(Pid::from_raw);
    let server = server.ok_or_else(|| format!("the server reports the process {number}, which cannot be"))?;
    process::send_signal(server, Signal::Retire);
    let by = Instant::now() + PATIENCE;
    loop {
        thread::sleep(PAUSE);
        // While the new program starts, it does not answer.
        let after = source.ask();
        match after {
            Ok((_, after)) if after.upgrades.failed > before.upgrades.failed => {
                let why = after.upgrades.last_failure.unwrap_or_default();
                return Err(format!("{why}; the old program goes on; the server's diagnostics have details"));
            }
            Ok((_, after)) if after.upgrades.succeeded > before.upgrades.succeeded => {
                let (old, new) = (before.version, after.version);
                return print(format!("process {number}: upgraded from {old} to {new}\n").as_bytes());
            }
            Err(_) if task::is_gone(server) => {
                return Err(format!("process {number} has ended; its diagnostics have the reason"));
            }
            Ok(_) | Err(_) if Instant::now() < by => {}
            Ok(_) => return Err(format!("process {number} did not upgrade within {PATIENCE:?}")),
            Err(why) => return Err(why),
        }
    }
}
