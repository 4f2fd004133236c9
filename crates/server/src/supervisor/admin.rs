//! The process of the admin listener, as the supervisor sees it. It has no counters: it asks for a report over a pair of
//! sockets, and the supervisor answers without looking at the question.

use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenfold_sys::process::{self, Fork, Pid, WaitStatus};
use tenfold_sys::seccomp::REPORT_WORDS;
use tenfold_sys::shared::SharedRows;
use tenfold_sys::signal::Signal;
use tenfold_sys::socket::{ListenAddress, ListenOptions, Listener};
use tenfold_sys::user::SystemUser;

use super::forked;
use super::privileges;
use super::upgrade::handover::Handover;
use crate::config::values::Settings;
use crate::diagnostics::{debug, error, info, warning};
use crate::sandbox;
use crate::status::admin;
use crate::status::report::StatusReport;

/// The longest wait until the process takes a report, and the interval of attempts meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(10);
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;
/// A process that ran at least this long is replaced immediately.
const LIVED: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_secs(1);

/// The listener and its process.
pub(super) struct AdminProcess {
    /// None in the process itself, which serves on it.
    listener: Option<Listener>,
    user: Option<SystemUser>,
    sandbox: bool,
    /// The row in which the process's sandbox reports the call that ended it, and the number of refused calls.
    reports: Arc<SharedRows>,
    channel: Option<UnixStream>,
    /// The rest of a report that the process has not taken, and when it must have.
    rest: Option<(Vec<u8>, Instant)>,
    pid: Option<Pid>,
    began: Instant,
    /// When it is started next.
    again: Option<Instant>,
}

impl AdminProcess {
    /// Binds the listener, if there is to be one. The process starts later.
    ///
    /// # Errors
    /// In words: the address cannot be used, or there is no memory.
    pub(super) fn open(
        settings: &Settings,
        user: Option<&SystemUser>,
        handover: Option<&Handover>,
    ) -> Result<Option<AdminProcess>, String> {
        let Some(address) = &settings.admin else { return Ok(None) };
        let handed = handover.map(|handover| handover.listeners("admin")).transpose()?;
        let listener = match handed.and_then(|mut handed| handed.pop()) {
            Some(listener) => listener,
            None => bind(address)
                .map_err(|error| format!("cannot open the admin listener on {address}: {error}"))?,
        };
        let address = listener.address();
        if address.is_off_loopback() {
            warning!(
                "the admin listener on {address} tells every client that reaches it what this server does; limit \
                 access with a firewall, or listen on 127.0.0.1"
            );
        }
        info!("metrics, status and health checks are on {address} (/metrics, /status, /healthz, /readyz)");
        let reports = SharedRows::new(2, REPORT_WORDS)
            .map_err(|error| format!("cannot allocate memory for reports: {error}"))?;
        let now = Instant::now();
        Ok(Some(AdminProcess {
            listener: Some(listener),
            user: user.cloned(),
            sandbox: settings.sandbox,
            reports: Arc::new(reports),
            channel: None,
            rest: None,
            pid: None,
            began: now,
            again: Some(now),
        }))
    }

    /// Starts the process if it is missing and due; `forget` drops in it what is the supervisor's alone.
    pub(super) fn look_after(&mut self, now: Instant, forget: impl FnOnce()) {
        if self.again.is_none_or(|again| again > now) {
            return;
        }
        if let Err(error) = self.fork(forget) {
            error!("cannot start the admin process: {error}");
            self.again = Some(now + PAUSE);
        }
    }

    fn fork(&mut self, forget: impl FnOnce()) -> std::io::Result<()> {
        let supervisor = process::own();
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        match process::fork()? {
            Fork::Parent(pid) => {
                debug!("the admin listener is process {pid}");
                (self.pid, self.began, self.again) = (Some(pid), Instant::now(), None);
                self.channel = Some(ours);
                Ok(())
            }
            Fork::Child => {
                forget();
                drop(ours);
                forked::end_with("admin", || self.serve(theirs, supervisor))
            }
        }
    }

    fn serve(&mut self, channel: UnixStream, supervisor: Pid) -> Result<(), String> {
        let plan = admin::plan(self.sandbox)?;
        if !privileges::give_up(self.user.as_ref(), supervisor)? {
            return Ok(());
        }
        admin::prepare(&channel).map_err(|error| format!("cannot prepare its channel: {error}"))?;
        if self.sandbox {
            // Used until this process ends.
            let reports: &'static Arc<SharedRows> = Box::leak(Box::new(self.reports.clone()));
            let (row, refused) = (reports.row(0), &reports.row(1)[0]);
            let process = sandbox::Process { name: "admin".to_owned(), row, refused };
            let (several_listeners, layered, kernel_tls, members, signs) =
                (false, false, false, false, false);
            let serving = sandbox::SandboxSubject {
                plan: &plan,
                several_listeners,
                layered,
                kernel_tls,
                members,
                watches: false,
                signs,
                roots: &[],
                written: &[],
            };
            sandbox::confine_worker(process, &serving)?;
        }
        let listener = self.listener.take().ok_or("there is no listener")?;
        admin::serve(&plan, listener, channel)
    }

    /// Answers the process if it has asked. One that does not take the answer is killed. Never waits for it.
    pub(super) fn answer(&mut self, report: impl Fn() -> StatusReport) {
        let Some(channel) = &mut self.channel else { return };
        let asked = if self.rest.is_none() { admin::was_asked(channel) } else { Ok(false) };
        let answered = asked.and_then(|asked| {
            let (mut rest, by) = match self.rest.take() {
                Some(rest) => rest,
                None if asked => (admin::message(&report()), Instant::now() + PATIENCE),
                None => return Ok(()),
            };
            if write_some(channel, &mut rest)? {
                return Ok(());
            }
            self.rest = Some((rest, by));
            if Instant::now() < by { Ok(()) } else { Err(ErrorKind::TimedOut.into()) }
        });
        if let Err(error) = answered {
            debug!("the admin process does not take a report: {error}");
            (self.channel, self.rest) = (None, None);
            if let Some(pid) = self.pid {
                process::send_signal(pid, Signal::Kill);
            }
        }
    }

    /// The time of the next action for the process.
    pub(super) fn by(&self) -> Option<Instant> {
        self.again.or_else(|| self.rest.as_ref().map(|_| Instant::now() + TICK))
    }

    pub(super) fn listener(&self) -> Option<&Listener> {
        self.listener.as_ref()
    }

    /// Kills the process; another one serves clients that wait.
    pub(super) fn kill(&self) {
        if let Some(pid) = self.pid {
            process::send_signal(pid, Signal::Kill);
        }
    }

    /// The channel on which it asks, if it has taken the former answer.
    pub(super) fn channel(&self) -> Option<BorrowedFd<'_>> {
        self.channel.as_ref().filter(|_| self.rest.is_none()).map(UnixStream::as_fd)
    }

    /// System calls that the sandbox of the process has refused.
    pub(super) fn refused_calls(&self) -> u64 {
        self.reports.row(1)[0].load(std::sync::atomic::Ordering::Relaxed)
    }

    pub(super) fn is(&self, pid: Pid) -> bool {
        self.pid == Some(pid)
    }

    /// Notes that the process has ended, and plans the next.
    pub(super) fn lost(&mut self, end: WaitStatus) {
        (self.pid, self.channel, self.rest) = (None, None, None);
        let why = sandbox::end_of(self.reports.row(0), end);
        warning!("the admin process {why}; another takes its place");
        let pause = if self.began.elapsed() >= LIVED { Duration::ZERO } else { PAUSE };
        self.again = Some(Instant::now() + pause);
    }

    /// Ends the process and removes the socket's file, when no worker is left.
    pub(super) fn end(&mut self) {
        process::end_children(self.pid.take());
        if let Some(listener) = &self.listener {
            listener.remove_file();
        }
    }
}

fn bind(address: &ListenAddress) -> io::Result<Listener> {
    Listener::bind(address, &ListenOptions { backlog: BACKLOG, ..ListenOptions::default() })
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
