//! The accounts process in the supervisor: started before any worker, replaced if it dies or hangs, and stopped after
//! the last worker.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tenfold_accounts::store::url::DatabaseUrl;
use tenfold_sys::limits;
use tenfold_sys::process::{self, Fork, Pid, WaitStatus};
use tenfold_sys::seccomp::REPORT_WORDS;
use tenfold_sys::shared::SharedRows;
use tenfold_sys::signal::Signal;
use tenfold_sys::user::SystemUser;

use super::forked;
use super::heartbeat::{HeartbeatBounds, HeartbeatWatch};
use super::privileges;
use crate::config::values::Settings;
use crate::config::values::members::MembersSettings;
use crate::diagnostics::{debug, warning};
use crate::members::channel::{self, AccountsClient, AccountsServer};
use crate::members::client::filter::Starts;
use crate::members::database::{self, Users};
use crate::members::process::pulse::Pulse;
use crate::members::process::{AccountsTask, READY, most_memory, serve};
use crate::sandbox::{self, apart::read_to_end};
use crate::status::report;

/// The time in which the accounts must open; a remote database or a schema migration takes long.
const LATEST_START: Duration = Duration::from_secs(60);
/// The most bytes of the first report of the accounts process.
const LONGEST_START: usize = 64 * 1024;
/// A process that ran at least this long is replaced immediately.
const LIVED: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_secs(1);

/// The main thread, which never waits for long, sends a heartbeat each second.
const HEARTBEAT: HeartbeatBounds =
    HeartbeatBounds { latest_start: LATEST_START, look: Duration::from_secs(4), looks: 4 };

/// The accounts of the server.
pub(super) struct AccountsProcess {
    settings: MembersSettings,
    /// The database.
    pub(super) url: DatabaseUrl,
    /// The user of the process, if the server was started as root.
    pub(super) user: Option<SystemUser>,
    /// `None` in the accounts process itself, which otherwise would not notice the end of all clients.
    client: Option<AccountsClient>,
    server: AccountsServer,
    pulse: Arc<Pulse>,
    starts: Starts,
    /// The row in which the process's sandbox reports the call that ended it, and the number of refused calls.
    reports: Arc<SharedRows>,
    sandbox: bool,
    pid: Option<Pid>,
    began: Instant,
    again: Option<Instant>,
    /// The number of replaced processes.
    replaced: u64,
    watch: HeartbeatWatch,
}

impl AccountsProcess {
    /// Starts the process and waits until the accounts are open; `None` without members. `forget` drops, in the new
    /// process, everything that it must not have.
    ///
    /// # Errors
    /// A message about the database or the system.
    pub(super) fn begin(
        settings: &Settings,
        workers: Option<&SystemUser>,
        forget: impl FnOnce(),
    ) -> Result<Option<AccountsProcess>, String> {
        let Some(at) = &settings.members.accounts else { return Ok(None) };
        let user = workers.map(|workers| privileges::accounts_user(settings, workers)).transpose()?;
        let users = user.as_ref().zip(workers).map(|(accounts, workers)| Users { accounts, workers });
        let url = database::prepare(at, users)?;
        let warnings = users.map(|users| {
            [privileges::shared_user(settings, users), database::exposure(&url, users)].into_iter().flatten()
        });
        let warnings: Vec<String> = warnings.into_iter().flatten().collect();
        let failed = |error| format!("cannot start the accounts process: {error}");
        let mut accounts = AccountsProcess::new(settings, url, user)?;
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        accounts.fork(theirs, true, forget).map_err(failed)?;
        let heard = read_to_end(&ours, LONGEST_START, Instant::now() + LATEST_START);
        match heard.as_deref().map(String::from_utf8_lossy).as_deref() {
            Ok(READY) => {
                warnings.iter().for_each(|warning| warning!("{warning}"));
                Ok(Some(accounts))
            }
            Ok("") => Err("the accounts process ended before it opened the database".into()),
            Ok(why) => Err(why.to_owned()),
            Err(_) => {
                accounts.kill();
                Err(format!("the members' database {} does not open within {LATEST_START:?}", accounts.url))
            }
        }
    }

    fn new(
        settings: &Settings,
        url: DatabaseUrl,
        user: Option<SystemUser>,
    ) -> Result<AccountsProcess, String> {
        let (client, server) =
            channel::open().map_err(|error| format!("cannot open the channel to the accounts: {error}"))?;
        let starts = Starts::new().map_err(|error| {
            format!("cannot allocate memory to count starts of the accounts process: {error}")
        })?;
        let pulse = Pulse::new()
            .map_err(|error| format!("cannot allocate memory to monitor the accounts process: {error}"))?;
        let reports = SharedRows::new(2, REPORT_WORDS)
            .map_err(|error| format!("cannot allocate memory for reports: {error}"))?;
        let now = Instant::now();
        Ok(AccountsProcess {
            settings: settings.members.clone(),
            url,
            user,
            client: Some(client),
            server,
            starts,
            pulse: Arc::new(pulse),
            reports: Arc::new(reports),
            sandbox: settings.sandbox,
            pid: None,
            began: now,
            again: None,
            replaced: 0,
            watch: HeartbeatWatch::new(HEARTBEAT, now),
        })
    }

    /// The asking end for a worker, and the count of starts; `None` in the accounts process.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(super) fn client(&self) -> std::io::Result<Option<(AccountsClient, Starts)>> {
        let Some(client) = &self.client else { return Ok(None) };
        Ok(Some((client.share()?, self.starts.clone())))
    }

    /// The process's part of `tenfold status`.
    pub(super) fn seen(&self) -> report::AccountsReport {
        report::AccountsReport {
            process: self.pid.map(|pid| pid.as_raw_nonzero().get()),
            replaced: self.replaced,
        }
    }

    /// Starts the process; the first one creates a missing database. `forget` drops, in it, everything that belongs to
    /// the supervisor alone.
    pub(super) fn fork(
        &mut self,
        ready: UnixStream,
        create: bool,
        forget: impl FnOnce(),
    ) -> std::io::Result<()> {
        let supervisor = process::own();
        self.pulse.restart();
        self.starts.count();
        match process::fork()? {
            Fork::Parent(pid) => {
                debug!("the accounts are process {pid}");
                let now = Instant::now();
                (self.pid, self.began, self.again) = (Some(pid), now, None);
                self.watch = HeartbeatWatch::new(HEARTBEAT, now);
                Ok(())
            }
            Fork::Child => {
                forget();
                self.client = None;
                forked::end_with("accounts", || {
                    if !privileges::give_up(self.user.as_ref(), supervisor)? {
                        return Err("the supervisor is gone".into());
                    }
                    limits::limit_memory(most_memory(&self.settings))
                        .map_err(|error| format!("cannot limit memory: {error}"))?;
                    if self.sandbox {
                        // Used until this process ends. Workers unmap their copy.
                        let reports: &'static Arc<SharedRows> = Box::leak(Box::new(self.reports.clone()));
                        let (name, refused) = ("accounts".to_owned(), &reports.row(1)[0]);
                        let process = sandbox::Process { name, row: reports.row(0), refused };
                        sandbox::confine_accounts(process, self.url.file())?;
                    }
                    let AccountsProcess { settings, url, user, server, pulse, .. } = &*self;
                    serve(&AccountsTask { settings, url, user: user.as_ref(), create, server, pulse }, ready)
                })
            }
        }
    }

    /// Kills the process if it sends no heartbeat. A successor replaces it after its end.
    pub(super) fn look_after(&mut self, now: Instant) {
        let Some(pid) = self.pid else { return };
        if self.watch.hangs(self.pulse.beats(), now) {
            warning!("the accounts process (process {pid}) hangs and is killed");
            process::send_signal(pid, Signal::Kill);
        }
    }

    /// The time of the next action for the process.
    pub(super) fn by(&self) -> Option<Instant> {
        self.again.or(self.pid.map(|_| self.watch.by()))
    }

    /// System calls that the sandbox has refused in this and former processes.
    pub(super) fn refused_calls(&self) -> u64 {
        self.reports.row(1)[0].load(Ordering::Relaxed)
    }

    /// Whether a process is to be started now.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.again.is_some_and(|again| again <= now)
    }

    /// Delays the next start, because the system could not start a process.
    pub(super) fn postpone(&mut self) {
        self.again = Some(Instant::now() + PAUSE);
    }

    pub(super) fn pid(&self) -> Option<Pid> {
        self.pid
    }

    pub(super) fn is(&self, pid: Pid) -> bool {
        self.pid == Some(pid)
    }

    pub(super) fn lost(&mut self, end: WaitStatus, expected: bool) {
        self.pid = None;
        if !expected {
            let why = sandbox::end_of(self.reports.row(0), end);
            warning!("the accounts process {why}; another takes its place");
            let pause = if self.began.elapsed() >= LIVED { Duration::ZERO } else { PAUSE };
            self.again = Some(Instant::now() + pause);
            self.replaced += 1;
        }
    }

    fn end(&mut self) {
        if let Some(pid) = self.pid {
            process::send_signal(pid, Signal::Interrupt);
        }
    }

    /// Kills the process, which acknowledges nothing before the database has it.
    pub(super) fn kill(&mut self) {
        process::end_children(self.pid.take());
    }

    /// Asks the process to end, waits briefly, and then kills it.
    pub(super) fn end_and_wait(&mut self) {
        self.end();
        for _ in 0..200 {
            while let Ok(Some((pid, _))) = process::reap() {
                if self.is(pid) {
                    self.pid = None;
                }
            }
            if self.pid.is_none() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.kill();
    }
}
