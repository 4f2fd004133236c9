//! The process of the admin listener. It has no counters: it asks for a report over its pair of sockets, and the
//! supervisor answers without a look at the question.

use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use tenfold_sys::process::WaitStatus;
use tenfold_sys::signal::Signal;
use tenfold_sys::socket::{ListenAddress, ListenOptions, Listener};
use tenfold_sys::user::SystemUser;

use super::child::{Child, PAUSE};
use crate::config::values::Settings;
use crate::diagnostics::{debug, info, warning};
use crate::sandbox;
use crate::status::admin;
use crate::status::report::StatusReport;
use crate::supervisor::sockets::listeners::remedy;
use crate::supervisor::upgrade::handover::Handover;

/// The longest wait until the process takes a report, and the interval of attempts meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(10);
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// The listener and its process.
pub(crate) struct AdminProcess {
    pub(crate) child: Child,
    /// None in the process itself, which serves on it.
    listener: Option<Listener>,
    channel: Option<UnixStream>,
    /// The rest of a report that the process has not taken, and the time by which it must have.
    rest: Option<(Vec<u8>, Instant)>,
}

impl AdminProcess {
    /// Binds the listener, if there is to be one. The process starts later.
    pub(crate) fn open(
        settings: &Settings,
        user: Option<&SystemUser>,
        handover: Option<&Handover>,
    ) -> Result<Option<AdminProcess>, String> {
        let Some(address) = &settings.admin else { return Ok(None) };
        let handed = handover.map(|handover| handover.listeners("admin")).transpose()?;
        let options = ListenOptions { backlog: BACKLOG, ..ListenOptions::default() };
        let listener = match handed.and_then(|mut handed| handed.pop()) {
            Some(listener) => listener,
            None => Listener::bind(address, &options).map_err(|error| explain(address, &error))?,
        };
        let address = listener.address();
        if address.is_off_loopback() {
            warning!(
                "the admin listener on {address} tells every client that reaches it what this server does; limit \
                 access with a firewall, or listen on 127.0.0.1"
            );
        }
        info!(
            "a status page, metrics and health checks are on {address} (/, /metrics, /status, /healthz, /readyz)"
        );
        let child = Child::new("admin process", user, None)?;
        Ok(Some(AdminProcess { child, listener: Some(listener), channel: None, rest: None }))
    }

    /// Starts the process if it is missing and due. `forget` drops, in it, the state of the supervisor.
    pub(crate) fn advance(&mut self, forget: impl FnOnce()) {
        if !self.child.is_due() {
            return;
        }
        let AdminProcess { child, listener, .. } = self;
        let prepare = || {
            forget();
            listener.take().ok_or_else(|| "there is no listener".to_owned())
        };
        let started = child.start(prepare, serve);
        let started = started.and_then(|channel| channel.set_nonblocking(true).map(|()| channel));
        self.channel = self.child.on_start(started);
    }

    /// Whether the process has asked for a report.
    pub(crate) fn asks(&mut self) -> bool {
        let Some(channel) = self.channel.as_mut().filter(|_| self.rest.is_none()) else { return false };
        admin::was_asked(channel).unwrap_or_else(|error| {
            self.give_up(&error);
            false
        })
    }

    /// Sends a report, or the rest of the last one. Never waits for the process.
    pub(crate) fn answer(&mut self, report: Option<&StatusReport>) {
        if let Some(report) = report {
            self.rest = Some((admin::message(report), Instant::now() + PATIENCE));
        }
        let (Some(channel), Some((rest, by))) = (&mut self.channel, &mut self.rest) else { return };
        match write_some(channel, rest) {
            Ok(true) => self.rest = None,
            Ok(false) if Instant::now() < *by => {}
            Ok(false) => self.give_up(&ErrorKind::TimedOut.into()),
            Err(error) => self.give_up(&error),
        }
    }

    fn give_up(&mut self, error: &io::Error) {
        debug!("the admin process does not take a report: {error}");
        (self.channel, self.rest) = (None, None);
        self.child.signal(Signal::Kill);
    }

    /// The time of the next action.
    pub(crate) fn by(&self) -> Option<Instant> {
        self.child.by().or_else(|| self.rest.as_ref().map(|_| Instant::now() + TICK))
    }

    pub(crate) fn listener(&self) -> Option<&Listener> {
        self.listener.as_ref()
    }

    /// The channel on which it asks, if it has taken the former answer.
    pub(crate) fn channel(&self) -> Option<BorrowedFd<'_>> {
        self.channel.as_ref().filter(|_| self.rest.is_none()).map(UnixStream::as_fd)
    }

    /// Notes the end of the process, and plans the next start: also a server that drains answers health checks.
    pub(crate) fn on_exit(&mut self, end: WaitStatus, expected: bool) {
        (self.channel, self.rest) = (None, None);
        self.child.on_exit(end, expected);
        if expected {
            self.child.plan(Some(Instant::now() + PAUSE));
        }
    }

    /// Ends the process and removes the socket's file, when no worker is left.
    pub(crate) fn end(&mut self) {
        self.child.kill();
        self.listener.iter().for_each(Listener::remove_file);
    }
}

/// Returns the message for an address that cannot be bound.
pub(crate) fn explain(address: &ListenAddress, error: &io::Error) -> String {
    format!("cannot open the admin listener on {address}: {}", remedy(address, error))
}

fn serve(child: &Child, listener: Listener, channel: UnixStream) -> Result<(), String> {
    let plan = admin::plan()?;
    admin::prepare(&channel).map_err(|error| format!("cannot prepare its channel: {error}"))?;
    if let Some(process) = child.sandbox() {
        let serving = sandbox::SandboxSubject {
            plan: &plan,
            several_listeners: false,
            layered: false,
            kernel_tls: false,
            members: false,
            watches: false,
            signs: false,
            roots: &[],
            written: &[],
        };
        sandbox::confine_worker(process, &serving)?;
    }
    admin::serve(&plan, listener, channel)
}

/// Writes as much as there is room for. Returns whether nothing is left.
fn write_some(channel: &mut impl Write, rest: &mut Vec<u8>) -> io::Result<bool> {
    while !rest.is_empty() {
        match channel.write(rest) {
            Ok(count) => drop(rest.drain(..count)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
