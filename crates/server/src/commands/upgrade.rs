//! `tenfold upgrade`: asks a running server to replace its program, and waits for the result.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use tenfold_sys::process::Pid;
use tenfold_sys::signal::Signal;
use tenfold_sys::socket::listening_process;
use tenfold_sys::task::ProcessWatch;
use tenfold_sys::user;

use super::output::{end, print};
use super::status::source::{StatusSource, unanswered};
use crate::status::place;

/// The longest wait for the result: the time limits of the check and of all process starts together.
const PATIENCE: Duration = Duration::from_secs(150);
/// The pause between two requests of the status.
const PAUSE: Duration = Duration::from_millis(100);

/// Upgrades the server at this control socket, or the only running one.
pub(crate) fn upgrade(control: Option<PathBuf>) -> ExitCode {
    end(control.map_or_else(place::find, Ok).and_then(run))
}

fn run(control: PathBuf) -> Result<(), String> {
    let (server, watch) = server_at(&control)?;
    let number = server.as_raw_nonzero();
    let source = StatusSource::Control(control);
    let (_, before) = source.ask()?;
    watch.send(Signal::Retire).map_err(|error| format!("cannot signal process {number}: {error}"))?;
    let by = Instant::now() + PATIENCE;
    loop {
        thread::sleep(PAUSE);
        // The new program does not respond while it starts.
        let after = source.ask();
        match after {
            Ok((_, after)) if after.upgrades.failed > before.upgrades.failed => {
                let why = after.upgrades.last_failure.unwrap_or_default();
                return Err(format!(
                    "{why}; the old program stays in use; the server's diagnostics have details"
                ));
            }
            Ok((_, after)) if after.upgrades.succeeded > before.upgrades.succeeded => {
                let (old, new) = (before.version, after.version);
                let result = match after.upgrades.same_file {
                    Some(path) => format!(
                        "not upgraded: {path} is still the file that ran before, version {new}; it was executed again"
                    ),
                    None => format!("upgraded from {old} to {new}"),
                };
                return print(format!("process {number}: {result}\n").as_bytes());
            }
            // The response may come from another server that listens at the same path.
            Ok(_) | Err(_) if watch.has_ended().map_err(|error| format!("poll: {error}"))? => {
                return Err(format!("process {number} has ended; its diagnostics have the reason"));
            }
            Ok(_) | Err(_) if Instant::now() < by => {}
            Ok(_) => return Err(format!("process {number} did not upgrade within {PATIENCE:?}")),
            Err(why) => return Err(why),
        }
    }
}

/// The process that listens at the control socket, from the kernel: the report itself could name any process.
fn server_at(control: &Path) -> Result<(Pid, ProcessWatch), String> {
    let shown = control.display();
    let peer = UnixStream::connect(control).and_then(|stream| listening_process(&stream));
    let (server, owner) = peer.map_err(|error| unanswered(&shown, &error))?;
    if owner != user::own() && !user::is_root() {
        return Err(format!(
            "the server at {shown} belongs to user {owner}; only that user and root can upgrade it"
        ));
    }
    // The process that began to listen may have ended, and a new process may have its number.
    ProcessWatch::new(server)
        .ok()
        .filter(|_| user_of(server) == Some(owner))
        .map(|watch| (server, watch))
        .ok_or_else(|| {
            format!("the process {} that began to listen at {shown} has ended", server.as_raw_nonzero())
        })
}

/// The user of a process (`man 5 proc_pid_status`); `None` if it has ended.
fn user_of(process: Pid) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{}/status", process.as_raw_nonzero())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}
