//! A helper process of the supervisor: fork, privileges, sandbox, heartbeat, restart and end. The accounts, signing,
//! admin and ACME processes are values of [`Child`] with a task each.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tenfold_sys::process::{self, Fork, Pid, WaitStatus};
use tenfold_sys::seccomp::REPORT_WORDS;
use tenfold_sys::shared::SharedRows;
use tenfold_sys::signal::Signal;
use tenfold_sys::user::SystemUser;
use tenfold_sys::wait;

use crate::config::parse::units::shown_duration;
use crate::diagnostics::{debug, error, warning};
use crate::sandbox;
use crate::sandbox::apart::{READY, read_to_end};
use crate::status::report::HelperReport;
use crate::supervisor::children::privileges;
use crate::supervisor::sockets::notify::ServiceManager;

/// The exit code of a process that could not do its work and has reported the reason.
pub(crate) const CANNOT_SERVE: i32 = 1;
/// The exit code of a process that panicked.
const PANICKED: i32 = 101;
/// The time in which a process must be able to do its work; a remote database takes long. At the start of a server the
/// processes share it. After an upgrade, the former program returns when it is over.
pub(crate) const LATEST_START: Duration = Duration::from_secs(30);
/// The interval at which a wait for a process gives the service manager a sign of life, if that is due.
const TICK: Duration = Duration::from_millis(500);
/// The most bytes of the first report.
const LONGEST_REPORT: usize = 64 * 1024;
/// A process that lived this long did not end early.
pub(crate) const LIVED: Duration = Duration::from_secs(1);
/// The pause before a process that ended early twice is started again.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);

/// Words of the second row of reports.
const REFUSED: usize = 0;
const BEATS: usize = 1;

/// A helper process.
pub(crate) struct Child {
    /// As in "the accounts process".
    name: &'static str,
    /// The user of the process, if the server was started as root.
    user: Option<SystemUser>,
    supervisor: Pid,
    /// The call for which the sandbox ended the process; then the number of refused calls, and of heartbeats.
    reports: Arc<SharedRows>,
    pid: Option<Pid>,
    restart: Restart,
    heartbeat: Option<HeartbeatWatch>,
    replaced: u64,
}

impl Child {
    /// A process that is due now.
    pub(crate) fn new(
        name: &'static str,
        user: Option<&SystemUser>,
        heartbeat: Option<HeartbeatBounds>,
    ) -> Result<Child, String> {
        let reports = SharedRows::new(2, REPORT_WORDS)
            .map_err(|error| format!("cannot allocate memory for reports of the {name}: {error}"))?;
        let now = Instant::now();
        Ok(Child {
            name,
            user: user.cloned(),
            supervisor: process::own(),
            reports: Arc::new(reports),
            pid: None,
            restart: Restart::new(LIVED, PAUSE, PAUSE, now),
            heartbeat: heartbeat.map(|bounds| HeartbeatWatch::new(bounds, now)),
            replaced: 0,
        })
    }

    /// The same process with these pauses, and without a start.
    pub(crate) fn later(mut self, lived: Duration, longest: Duration) -> Child {
        self.restart = Restart::new(lived, PAUSE, longest, Instant::now());
        self.restart.plan(None);
        self
    }

    /// Forks the process, and returns the supervisor's end of a pair of sockets. In the process, `prepare` drops the
    /// state of the supervisor and uses its rights; then the process becomes its user and does its `work`.
    pub(crate) fn start<T>(
        &mut self,
        prepare: impl FnOnce() -> Result<T, String>,
        work: impl FnOnce(&Child, T, UnixStream) -> Result<(), String>,
    ) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        self.beats().store(0, Ordering::Relaxed);
        match process::fork()? {
            Fork::Parent(pid) => {
                debug!("the {} is process {pid}", self.name);
                let now = Instant::now();
                self.pid = Some(pid);
                self.restart.on_start(now);
                self.heartbeat = self.heartbeat.map(|watch| watch.renewed(now));
                Ok(ours)
            }
            Fork::Child => {
                drop(ours);
                end_with(self.name, || {
                    let prepared = prepare()?;
                    match privileges::give_up(self.user.as_ref(), self.supervisor)? {
                        true => work(self, prepared, theirs),
                        // The supervisor has ended.
                        false => Ok(()),
                    }
                })
            }
        }
    }

    pub(crate) fn is_due(&self) -> bool {
        self.pid.is_none() && self.restart.is_due(Instant::now())
    }

    /// Reports a failed start, and plans another one.
    pub(crate) fn on_start<T>(&mut self, started: io::Result<T>) -> Option<T> {
        let failed = started.inspect_err(|error| {
            error!("cannot start the {}: {error}", self.name);
            self.restart.postpone(Instant::now());
        });
        failed.ok()
    }

    /// Waits until the process reports through `ours` that it can do its work, until `by` at the latest.
    pub(crate) fn wait_until_ready(&mut self, ours: &UnixStream, by: Instant) -> Result<(), String> {
        let mut manager = ServiceManager::from_environment();
        let has_come = || wait::for_input(&[ours.as_fd()], Some(TICK)).map_or(true, |all| all[0].any);
        manager.beat();
        while Instant::now() < by && !has_come() {
            manager.beat();
        }
        let report = read_to_end(ours, LONGEST_REPORT, by);
        match report.as_deref().map(String::from_utf8_lossy).as_deref() {
            Ok(READY) => Ok(()),
            Ok("") => Err(format!("the {} ended before it was ready", self.name)),
            Ok(why) => Err(why.to_owned()),
            Err(_) => {
                self.kill();
                Err(format!("the {} is not ready within {LATEST_START:?}", self.name))
            }
        }
    }

    /// The place in which the sandbox of this process reports; `None` without a sandbox.
    pub(crate) fn sandbox(&self) -> Option<sandbox::Process> {
        sandbox::CONFINES.then(|| {
            // Used until this process ends.
            let reports: &'static Arc<SharedRows> = Box::leak(Box::new(self.reports.clone()));
            let refused = &reports.row(1)[REFUSED];
            sandbox::Process { name: self.name.to_owned(), row: reports.row(0), refused }
        })
    }

    /// The heartbeats since the start of the process.
    pub(crate) fn beats(&self) -> &AtomicU64 {
        &self.reports.row(1)[BEATS]
    }

    /// Kills the process if its heartbeats have stopped.
    pub(crate) fn check_heartbeat(&mut self) {
        let beats = self.beats().load(Ordering::Relaxed);
        if let (Some(pid), Some(watch)) = (self.pid, &mut self.heartbeat)
            && watch.hangs(beats, Instant::now())
        {
            warning!("the {} (process {pid}) hangs and is killed", self.name);
            process::send_signal(pid, Signal::Kill);
        }
    }

    /// The time of the next action.
    pub(crate) fn by(&self) -> Option<Instant> {
        match (self.pid, &self.heartbeat) {
            (None, _) => self.restart.by(),
            (Some(_), heartbeat) => heartbeat.as_ref().map(HeartbeatWatch::by),
        }
    }

    /// Notes the end of the process, and plans the next start unless the end was `expected`.
    pub(crate) fn on_exit(&mut self, end: WaitStatus, expected: bool) {
        self.pid = None;
        let why = sandbox::end_of(self.reports.row(0), end);
        if expected {
            return;
        }
        let pause = self.restart.on_exit(Instant::now());
        let when = if pause.is_zero() { String::new() } else { format!(" in {}", shown_duration(pause)) };
        warning!("the {} {why}; another takes its place{when}", self.name);
        self.replaced += 1;
    }

    /// Plans the next start at this time, or no start.
    pub(crate) fn plan(&mut self, at: Option<Instant>) {
        self.restart.plan(at);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.pid.iter().for_each(|pid| process::send_signal(*pid, signal));
    }

    /// Kills the process and waits for its end.
    pub(crate) fn kill(&mut self) {
        process::end_children(self.pid.take());
    }

    #[cfg(feature = "acme")]
    pub(crate) fn supervisor(&self) -> Pid {
        self.supervisor
    }

    pub(crate) fn pid(&self) -> Option<Pid> {
        self.pid
    }

    pub(crate) fn is(&self, pid: Pid) -> bool {
        self.pid == Some(pid)
    }

    pub(crate) fn user(&self) -> Option<&SystemUser> {
        self.user.as_ref()
    }

    /// The process's part of `tenfold status`.
    pub(crate) fn report(&self) -> HelperReport {
        HelperReport { process: self.pid.map(|pid| pid.as_raw_nonzero().get()), replaced: self.replaced }
    }

    /// System calls that the sandbox of this process and of the former ones has refused.
    pub(crate) fn refused_calls(&self) -> u64 {
        self.reports.row(1)[REFUSED].load(Ordering::Relaxed)
    }
}

/// Runs `work` and ends this process. An empty error was already reported.
pub(crate) fn end_with(name: &str, work: impl FnOnce() -> Result<(), String>) -> ! {
    let code = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => 0,
        Ok(Err(why)) => {
            if !why.is_empty() {
                error!("{name}: {why}");
            }
            CANNOT_SERVE
        }
        // The panic message was already printed.
        Err(_) => PANICKED,
    };
    std::process::exit(code)
}

/// The time in which a process must send its first heartbeat, the interval of checks, and the number of checks without a
/// heartbeat that count as a hang. Checks are counted instead of seconds, so that a stopped and continued server does not
/// look like a hang.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeartbeatBounds {
    pub(crate) latest_start: Duration,
    pub(crate) look: Duration,
    pub(crate) looks: u32,
}

/// The heartbeats of a process at the last check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeartbeatWatch {
    bounds: HeartbeatBounds,
    began: Instant,
    /// The time of the next check; the heartbeats at the last check, and the checks since they changed.
    look: Instant,
    beats: u64,
    silent: u32,
}

impl HeartbeatWatch {
    /// The watch over a process that begins.
    pub(crate) fn new(bounds: HeartbeatBounds, now: Instant) -> HeartbeatWatch {
        HeartbeatWatch { bounds, began: now, look: now + bounds.look, beats: 0, silent: 0 }
    }

    /// The watch over another process.
    pub(crate) fn renewed(self, now: Instant) -> HeartbeatWatch {
        HeartbeatWatch::new(self.bounds, now)
    }

    /// The time of the next check.
    pub(crate) fn by(&self) -> Instant {
        self.look
    }

    /// Notes the heartbeats since the start of the process, 0 while it starts. Returns whether the process hangs.
    pub(crate) fn hangs(&mut self, beats: u64, now: Instant) -> bool {
        if self.look > now {
            return false;
        }
        self.look = now + self.bounds.look;
        if beats != self.beats {
            (self.beats, self.silent) = (beats, 0);
        } else if beats > 0 || now > self.began + self.bounds.latest_start {
            self.silent += 1;
        }
        let hangs = self.silent >= self.bounds.looks;
        if hangs {
            self.silent = 0;
        }
        hangs
    }
}

/// Plans the starts of a process: immediately after a long life or a first early end, then after growing pauses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Restart {
    /// A process that lived this long did not end early.
    lived: Duration,
    first: Duration,
    longest: Duration,
    began: Instant,
    /// Consecutive early ends.
    failures: u32,
    /// The time of the next start.
    again: Option<Instant>,
}

impl Restart {
    /// A process that is due at `now`. Its pauses begin with `first`, and each is twice the former, up to `longest`.
    pub(crate) fn new(lived: Duration, first: Duration, longest: Duration, now: Instant) -> Restart {
        Restart { lived, first, longest, began: now, failures: 0, again: Some(now) }
    }

    /// The process has started.
    pub(crate) fn on_start(&mut self, now: Instant) {
        (self.began, self.again) = (now, None);
    }

    /// The process has ended. Returns the pause before the next start.
    pub(crate) fn on_exit(&mut self, now: Instant) -> Duration {
        let lived = now.saturating_duration_since(self.began) >= self.lived;
        self.failures = if lived { 0 } else { self.failures.saturating_add(1) };
        let pause = match self.failures {
            0 | 1 => Duration::ZERO,
            failures => self.first.saturating_mul(1 << (failures - 2).min(16)).min(self.longest),
        };
        self.again = Some(now + pause);
        pause
    }

    /// The system could not start the process.
    pub(crate) fn postpone(&mut self, now: Instant) {
        self.again = Some(now + self.longest.min(Duration::from_secs(1)));
    }

    /// Starts no process, or one at this time.
    pub(crate) fn plan(&mut self, at: Option<Instant>) {
        self.again = at;
    }

    pub(crate) fn by(&self) -> Option<Instant> {
        self.again
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.again.is_some_and(|again| again <= now)
    }

    /// The time since the last start.
    pub(crate) fn age(&self) -> Duration {
        self.began.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_with_early_ends_and_a_long_life_ends_them() {
        let second = Duration::from_secs(1);
        let start = Instant::now();
        let mut restart = Restart::new(second, second, 3 * second, start);
        assert!(restart.is_due(start));
        let mut pauses = Vec::new();
        for _ in 0..5 {
            restart.on_start(start);
            assert!(!restart.is_due(start + second));
            pauses.push(restart.on_exit(start).as_secs());
        }
        assert_eq!(pauses, [0, 1, 2, 3, 3]);
        restart.on_start(start);
        assert_eq!(restart.on_exit(start + second), Duration::ZERO);
    }

    #[test]
    fn a_process_hangs_if_checks_see_no_heartbeat() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let bounds =
            HeartbeatBounds { latest_start: Duration::from_secs(10), look: Duration::from_secs(2), looks: 3 };
        let mut watch = HeartbeatWatch::new(bounds, start);
        assert!((0..10).all(|second| !watch.hangs(0, at(second))), "it starts");
        assert!((10..20).all(|second| !watch.hangs(second, at(second))));
        let hangs: Vec<u64> = (20..30).filter(|second| watch.hangs(19, at(*second))).collect();
        assert_eq!(hangs, [26]);
        // It was stopped together with the supervisor.
        let mut watch = HeartbeatWatch::new(bounds, start);
        assert!(!watch.hangs(1, at(2)) && !watch.hangs(1, at(100)) && !watch.hangs(2, at(102)));
        let mut late = HeartbeatWatch::new(bounds, start);
        assert!((0..17).any(|second| late.hangs(0, at(second))), "it never started");
    }
}
