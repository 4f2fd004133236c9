//! The running server of a command that signals it and waits for the result.

use std::fs;
use std::net::{SocketAddr, ToSocketAddrs};
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

/// The server that a command names.
pub(super) struct ServerChoice {
    pub(super) command: &'static str,
    /// An address or a port on which the server listens, as typed.
    pub(super) address: Option<String>,
    pub(super) control: Option<PathBuf>,
}

impl ServerChoice {
    /// Returns the control socket: the named one, or that of the only running server with the address.
    pub(super) fn socket(&self) -> Result<PathBuf, String> {
        if let Some(control) = &self.control {
            return Ok(control.clone());
        }
        let all = place::running()?;
        if let ([only], None) = (all.as_slice(), &self.address) {
            return Ok(only.clone());
        }
        let listens =
            |path: &PathBuf| StatusSource::Control(path.clone()).ask().map(|(_, report)| report.listen);
        let all: Vec<_> = all.into_iter().map(|path| (listens(&path).unwrap_or_default(), path)).collect();
        let is_chosen = |listen: &[String]| self.address.as_ref().is_none_or(|typed| names(typed, listen));
        let found: Vec<_> = all.iter().filter(|(listen, _)| is_chosen(listen)).collect();
        let lines = |servers: &[&(Vec<String>, PathBuf)]| {
            let line = |(listen, path): &(Vec<String>, PathBuf)| match listen.first() {
                Some(address) => format!("`tenfold {} {address}`", self.command),
                None => format!("`tenfold {} --control {}`", self.command, path.display()),
            };
            servers.iter().map(|server| line(server)).collect::<Vec<_>>().join(" or ")
        };
        match (found.as_slice(), &self.address) {
            ([(_, only)], _) => Ok(only.clone()),
            ([], Some(typed)) => {
                let all: Vec<_> = all.iter().collect();
                Err(format!("no running server listens on {typed}; choose with {}", lines(&all)))
            }
            (several, _) => Err(format!("several servers run; choose one with {}", lines(several))),
        }
    }
}

/// Whether a server that listens on the addresses of `listen` is the typed one: by a port, an address, a name or a URL.
fn names(typed: &str, listen: &[String]) -> bool {
    let typed = typed.strip_prefix("http://").or_else(|| typed.strip_prefix("https://")).unwrap_or(typed);
    let typed = typed.trim_end_matches('/');
    if let Some(port) = port_only(typed) {
        return listen.iter().any(|at| at.parse().is_ok_and(|at: SocketAddr| at.port() == port));
    }
    let typed_at: Vec<SocketAddr> = typed.to_socket_addrs().into_iter().flatten().collect();
    let reaches = |at: SocketAddr, to: &SocketAddr| {
        let by_all = at.ip().is_unspecified() && to.ip().is_loopback() && at.port() == to.port();
        at == *to || by_all
    };
    listen.iter().any(|at| {
        at == typed || at.parse().is_ok_and(|at: SocketAddr| typed_at.iter().any(|to| reaches(at, to)))
    })
}

/// Returns the port of `8080` and `:8080`.
pub(super) fn port_only(typed: &str) -> Option<u16> {
    typed.strip_prefix(':').unwrap_or(typed).parse().ok()
}

/// The server at a control socket.
pub(super) struct RunningServer {
    /// The id of its process.
    pub(super) number: NonZeroI32,
    watch: ProcessWatch,
    source: StatusSource,
}

impl RunningServer {
    /// Finds the chosen server.
    pub(super) fn find(choice: &ServerChoice) -> Result<RunningServer, String> {
        let control = choice.socket()?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_chosen_by_its_port_or_address() {
        let listen = |all: &[&str]| all.iter().map(|at| (*at).to_owned()).collect::<Vec<_>>();
        let one = listen(&["127.0.0.1:8080", "unix:/run/site.sock"]);
        for typed in [
            "8080",
            ":8080",
            "127.0.0.1:8080",
            "localhost:8080",
            "http://127.0.0.1:8080/",
            "unix:/run/site.sock",
        ] {
            assert!(names(typed, &one), "{typed}");
        }
        for typed in ["8081", ":80", "127.0.0.2:8080", "192.0.2.1:8080", "unix:/run/site", "127.0.0.1", ""] {
            assert!(!names(typed, &one), "{typed}");
        }
        let all = listen(&["0.0.0.0:8080"]);
        assert!(names("127.0.0.1:8080", &all), "a client of this machine reaches it by this address");
        assert!(!names("192.0.2.1:8080", &all), "another machine may have this address");
    }
}
