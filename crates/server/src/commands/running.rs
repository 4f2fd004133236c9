//! The running server of a command that signals it and waits for the result.

use std::fs;
use std::num::NonZeroI32;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use tenfold_sys::process::Pid;
use tenfold_sys::signal::Signal;
use tenfold_sys::socket::listening_process;
use tenfold_sys::task::ProcessWatch;
use tenfold_sys::user;

use super::status::source::{StatusSource, unanswered};
use crate::status::place;
use crate::status::report::StatusReport;

/// The longest wait for a result: the time limits of a check and of all process starts together.
pub(super) const PATIENCE: Duration = Duration::from_secs(150);
/// The pause between two requests of the status.
const PAUSE: Duration = Duration::from_millis(100);

/// The server at a control socket.
pub(super) struct RunningServer {
    /// The id of its process.
    pub(super) number: NonZeroI32,
    watch: ProcessWatch,
    source: StatusSource,
}

impl RunningServer {
    /// Finds the server at this control socket, or the only running one.
    pub(super) fn find(control: Option<PathBuf>) -> Result<RunningServer, String> {
        let control = control.map_or_else(place::find, Ok)?;
        let (server, watch) = server_at(&control)?;
        Ok(RunningServer { number: server.as_raw_nonzero(), watch, source: StatusSource::Control(control) })
    }

    /// Returns its report.
    pub(super) fn report(&self) -> Result<StatusReport, String> {
        self.source.ask().map(|(_, report)| report)
    }

    pub(super) fn signal(&self, signal: Signal) -> Result<(), String> {
        self.watch.send(signal).map_err(|error| format!("cannot signal process {}: {error}", self.number))
    }

    pub(super) fn has_ended(&self) -> Result<bool, String> {
        self.watch.has_ended().map_err(|error| format!("poll: {error}"))
    }

    /// Waits until `found` returns a value for a report. `done` names the awaited step in an error.
    pub(super) fn wait_for<T>(
        &self,
        done: &str,
        found: impl Fn(StatusReport) -> Option<T>,
    ) -> Result<T, String> {
        let by = Instant::now() + PATIENCE;
        loop {
            let asked = self.report().map(&found);
            match asked {
                Ok(Some(value)) => return Ok(value),
                // The response may come from another server that listens at the same path.
                Ok(None) | Err(_) if self.has_ended()? => {
                    return Err(format!(
                        "process {} has ended; its diagnostics have the reason",
                        self.number
                    ));
                }
                Ok(None) | Err(_) if Instant::now() < by => thread::sleep(PAUSE),
                Ok(None) => {
                    return Err(format!("process {} did not {done} within {PATIENCE:?}", self.number));
                }
                Err(why) => return Err(why),
            }
        }
    }

    /// Waits until the process has ended. Returns false if it has not within the bound.
    pub(super) fn wait_for_end(&self) -> Result<bool, String> {
        let by = Instant::now() + PATIENCE;
        while !self.has_ended()? {
            if Instant::now() >= by {
                return Ok(false);
            }
            thread::sleep(PAUSE);
        }
        Ok(true)
    }
}

/// The process that listens at the control socket, from the kernel: the report itself could name any process.
fn server_at(control: &Path) -> Result<(Pid, ProcessWatch), String> {
    let shown = control.display();
    let peer = UnixStream::connect(control).and_then(|stream| listening_process(&stream));
    let (server, owner) = peer.map_err(|error| unanswered(&shown, &error))?;
    if owner != user::own() && !user::is_root() {
        return Err(format!(
            "the server at {shown} belongs to user {owner}; only that user and root can control it"
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
