//! A running server: requests, observations, shutdown.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tenfold_testkit::program::Running;
pub use tenfold_testkit::time::lock;

use crate::config::Config;
use crate::process::Process;
use crate::response::WireResponse;
use crate::site::{self, TempFolder};
use crate::time::{SOON, within};
use crate::visitor::Endpoint;
use crate::wire::{BEGUN, Wire, request};

/// A server that runs until this value is dropped.
#[derive(Debug)]
pub struct Server {
    /// Its configuration.
    pub config: Config,
    /// Its supervisor.
    pub process: Process,
    /// Its address.
    pub address: SocketAddr,
    pub(crate) running: Running,
    pub(crate) folder: TempFolder,
    /// Whether a test attempts calls that the sandbox refuses.
    pub(crate) attempts: bool,
}

impl Server {
    /// Opens a connection.
    #[track_caller]
    pub fn connect(&self) -> Wire {
        Wire::connect_over(self.address, self.config.tls).sends_early(self.config.at_once().is_some())
    }

    /// A connection that is idle after one request; `None` if the server closed it instead.
    #[track_caller]
    pub fn idle(&self) -> Option<Wire> {
        self.served(b"")
    }

    /// A connection that has begun its second request, for [`Wire::response_between`]; `None` if the server closed it
    /// instead.
    #[track_caller]
    pub fn busy(&self) -> Option<Wire> {
        self.served(BEGUN)
    }

    /// Sends `next` together with the first request, so that the connection is never idle.
    #[track_caller]
    fn served(&self, next: &[u8]) -> Option<Wire> {
        let mut wire = self.connect();
        wire.try_send(&[&request("GET", "/1k.html", &[]), next].concat()).ok()?;
        wire.try_head().filter(|response| response.status == 200)?;
        wire.expect_body(&site::content("1k.html"));
        Some(wire)
    }

    /// Requests `target` on a new connection, and closes it.
    #[track_caller]
    pub fn get(&self, target: &str) -> WireResponse {
        self.ask("GET", target, &[])
    }

    /// Makes a request without a body on a new connection, and closes it.
    #[track_caller]
    pub fn ask(&self, method: &str, target: &str, fields: &[(&str, &str)]) -> WireResponse {
        let mut wire = self.connect();
        wire.send(request(method, target, fields));
        if method == "HEAD" { wire.head() } else { wire.response() }
    }

    /// Sends bytes on a new connection, ends the output, and returns all bytes received.
    #[track_caller]
    pub fn exchange(&self, bytes: &[u8]) -> Vec<u8> {
        let mut wire = self.connect();
        wire.send(bytes);
        wire.end_output();
        wire.rest().0
    }

    /// Its status, from its control socket.
    #[track_caller]
    pub fn status(&self) -> Value {
        let path = self.folder.at("control");
        ask_status(&path).unwrap_or_else(|error| panic!("read the status from {}: {error}", path.display()))
    }

    /// The TCP addresses on which it listens, in the order of `listen`.
    #[track_caller]
    pub fn listening(&self) -> Vec<SocketAddr> {
        let status = self.status();
        let listen = status["listen"].as_array().expect("a list");
        listen.iter().filter_map(|entry| entry.as_str()?.parse().ok()).collect()
    }

    /// The address of its admin listener, from its report.
    #[track_caller]
    pub fn admin(&self) -> SocketAddr {
        let errors = self.errors();
        let words = errors.split_once("health checks are on ").map(|(_, rest)| rest.split(' ').next());
        let address = words.flatten().and_then(|word| word.parse().ok());
        address.unwrap_or_else(|| panic!("no address of an admin listener in:\n{errors}"))
    }

    /// The path of its access log.
    pub fn log_path(&self) -> PathBuf {
        self.folder.at("access.log")
    }

    /// A path in its own folder.
    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.at(name)
    }

    /// The complete lines of its access log so far. A line that crosses a page of the cache can be visible in part.
    pub fn log(&self) -> String {
        let mut log = std::fs::read_to_string(self.log_path()).unwrap_or_default();
        log.truncate(log.rfind('\n').map_or(0, |end| end + 1));
        log
    }

    /// Its standard error so far, with each value of the start block in one line.
    pub fn errors(&self) -> String {
        joined(&self.running.errors())
    }

    /// Waits until its standard error contains `words`.
    #[track_caller]
    pub fn expect_report(&self, words: &str) {
        let what = format!("{}: it reports {words:?}", self.config);
        self.running.until(SOON, &what, |errors| joined(errors).contains(words).then_some(()));
    }

    /// Its serving processes: the children of the supervisor, except the signing process.
    pub fn workers(&self) -> Vec<Process> {
        let signs = |process: &Process| process.threads().iter().any(|name| name.starts_with("signing"));
        self.process.children().into_iter().filter(|process| !signs(process)).collect()
    }

    /// Open descriptors of all its processes.
    pub fn descriptors(&self) -> usize {
        self.process.with_descendants().into_iter().map(|process| process.descriptors().len()).sum()
    }

    /// Open sockets of all its processes.
    pub fn sockets(&self) -> usize {
        let all = self.process.with_descendants().into_iter().flat_map(Process::descriptors);
        all.filter(|what| what.starts_with("socket:")).count()
    }

    /// Processor time of all its processes.
    pub fn processor_time(&self) -> Duration {
        self.process.with_descendants().into_iter().map(Process::processor_time).sum()
    }

    /// Whether its sandbox refused a legitimate call, because the list of calls has a gap.
    pub fn was_refused(&self) -> bool {
        let errors = self.errors();
        let signs = ["the sandbox refused the system call", "ended by its sandbox"];
        !self.attempts && signs.iter().any(|sign| errors.contains(sign))
    }

    /// Its exit status, if it has ended.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.running.ended()
    }

    /// Waits until it has ended.
    #[track_caller]
    pub fn ends_within(&self, bound: Duration) -> ExitStatus {
        self.running.ends_within(bound)
    }

    /// Stops it gracefully and returns the errors of its whole life.
    pub fn stop(self) -> Result<(), String> {
        let told = |what: String| Err(format!("{}: {what}; it said:\n{}", self.config, self.errors()));
        if let Some(status) = self.ended() {
            return told(format!("the server ended by itself, {status}"));
        }
        let all = self.process.with_descendants();
        self.process.signal(Signal::TERM);
        let Some(status) = within(SOON, || self.ended()) else {
            return told("the server does not end on TERM".into());
        };
        let left: Vec<_> = all.iter().filter(|process| process.is_running()).collect();
        match () {
            () if !status.success() => told(format!("the server ended with {status}")),
            () if !left.is_empty() => told(format!("processes are left behind: {left:?}")),
            () if self.errors().contains("panicked") => told("something panicked".into()),
            () if self.was_refused() => told("its sandbox refused a call".into()),
            () => Ok(()),
        }
    }
}

impl Endpoint for Server {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn is_encrypted(&self) -> bool {
        self.config.tls
    }
}

/// Reads the status of a server from its control socket.
pub fn ask_status(control: &Path) -> io::Result<Value> {
    let mut stream = UnixStream::connect(control)?;
    stream.set_read_timeout(Some(SOON))?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

/// The text with each value of the start block in one line.
fn joined(errors: &str) -> String {
    errors.replace("\n           ", " ")
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.running.kill() && !thread::panicking() {
            assert!(!self.was_refused(), "{}: its sandbox refused a call: {}", self.config, self.errors());
        }
    }
}
