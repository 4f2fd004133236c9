//! The process of the accounts, as the supervisor sees it: begun before any worker, replaced when it dies, and told to
//! go when no worker is left.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use tenfold_accounts::store::url::Url;
use tenfold_sys::lifecycle;
use tenfold_sys::process::{self, End, Fork, Pid};
use tenfold_sys::signal::Signal;
use tenfold_sys::user::{self, User};

use super::Supervisor;
use crate::diagnostics::{debug, error, warning};
use crate::members::door::{self, Door, Inside};
use crate::members::place;
use crate::members::process::{READY, serve};
use crate::settings::Settings;
use crate::settings::members::Members;

/// How long the accounts may take to open: a database that is far away, a schema that grows.
const LATEST_START: Duration = Duration::from_secs(60);
/// One that lived this long and died is replaced at once.
const LIVED: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_secs(1);

/// The accounts of the server.
pub(super) struct Accounts {
    settings: Members,
    /// Where they are.
    pub(super) url: Url,
    door: Door,
    inside: Inside,
    pid: Option<Pid>,
    began: Instant,
    again: Option<Instant>,
}

impl Accounts {
    /// Begins the process and waits until the accounts are open; none where there are to be no members.
    ///
    /// # Errors
    /// In words: what is wrong with the database, or with the system.
    pub(super) fn begin(settings: &Settings, user: Option<&User>) -> Result<Option<Accounts>, String> {
        let Some(at) = &settings.members.accounts else { return Ok(None) };
        let url = place::prepare(at, user)?;
        let (door, inside) =
            door::open().map_err(|error| format!("can not open the door to the accounts: {error}"))?;
        let settings = settings.members.clone();
        let mut accounts =
            Accounts { settings, url, door, inside, pid: None, began: Instant::now(), again: None };
        let (mut ours, theirs) =
            UnixStream::pair().map_err(|error| format!("can not begin the accounts: {error}"))?;
        accounts.fork(user, theirs, || {}).map_err(|error| format!("can not begin the accounts: {error}"))?;
        let mut said = String::new();
        let heard = ours.set_read_timeout(Some(LATEST_START)).and_then(|()| ours.read_to_string(&mut said));
        match (heard, said.as_str()) {
            (Ok(_), READY) => Ok(Some(accounts)),
            (Ok(_), "") => Err("the accounts ended before they were open".into()),
            (Ok(_), why) => Err(why.to_owned()),
            (Err(_), _) => {
                accounts.end();
                Err(format!("the accounts in {} do not open within {LATEST_START:?}", accounts.url))
            }
        }
    }

    /// The way in, for a worker.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(super) fn door(&self) -> std::io::Result<Door> {
        self.door.share()
    }

    /// Makes the process; `forget` drops in it what is the supervisor's alone.
    fn fork(&mut self, user: Option<&User>, ready: UnixStream, forget: impl FnOnce()) -> std::io::Result<()> {
        let supervisor = process::own();
        match process::fork()? {
            Fork::Parent(pid) => {
                debug!("the accounts are process {pid}");
                (self.pid, self.began, self.again) = (Some(pid), Instant::now(), None);
                Ok(())
            }
            Fork::Child => {
                forget();
                let inside = self.inside.share();
                let serving = AssertUnwindSafe(|| {
                    become_whom(user, supervisor)?;
                    let inside = inside.map_err(|error| format!("the door is shut: {error}"))?;
                    serve(&self.settings, &self.url, &inside, ready)
                });
                let code = match catch_unwind(serving) {
                    Ok(Ok(())) => 0,
                    Ok(Err(why)) => {
                        if !why.is_empty() {
                            error!("accounts: {why}");
                        }
                        1
                    }
                    Err(_) => 101,
                };
                std::process::exit(code)
            }
        }
    }

    fn is(&self, pid: Pid) -> bool {
        self.pid == Some(pid)
    }

    fn lost(&mut self, end: End, expected: bool) {
        self.pid = None;
        if !expected {
            warning!("the process of the accounts {end}; another takes its place");
            let pause = if self.began.elapsed() >= LIVED { Duration::ZERO } else { PAUSE };
            self.again = Some(Instant::now() + pause);
        }
    }

    fn end(&mut self) {
        if let Some(pid) = self.pid {
            process::tell(pid, Signal::Interrupt);
        }
    }
}

fn become_whom(user: Option<&User>, supervisor: Pid) -> Result<(), String> {
    if let Some(user) = user {
        user.become_it().map_err(|error| format!("can not become user {}: {error}", user.name))?;
    }
    user::renounce().map_err(|error| format!("can not give up privileges: {error}"))?;
    // Set after the change of user, which forgets it.
    match process::end_with(supervisor, Signal::Interrupt) {
        Ok(true) => {}
        Ok(false) => return Err("the supervisor is gone".into()),
        Err(error) => return Err(format!("can not follow the supervisor: {error}")),
    }
    lifecycle::reset();
    lifecycle::install_worker_signals().map_err(|error| format!("can not receive signals: {error}"))
}

impl Supervisor {
    /// Hears that a process has ended; says whether it was that of the accounts.
    pub(super) fn mourn_accounts(&mut self, pid: Pid, end: End) -> bool {
        let expected = self.leaving.is_some() && end == End::Exited(0);
        match &mut self.accounts {
            Some(accounts) if accounts.is(pid) => {
                accounts.lost(end, expected);
                true
            }
            _ => false,
        }
    }

    /// When the accounts are to begin again.
    pub(super) fn accounts_again(&self) -> Option<Instant> {
        self.accounts.as_ref().and_then(|accounts| accounts.again)
    }

    /// Begins the accounts again where it is time.
    pub(super) fn renew_accounts(&mut self) {
        if self.accounts_again().is_none_or(|again| again > Instant::now()) {
            return;
        }
        let Some(mut accounts) = self.accounts.take() else { return };
        // Nobody waits for it: what is wrong is said by the process itself.
        let begun = UnixStream::pair().and_then(|(ours, theirs)| {
            drop(ours);
            let forget = || {
                (self.signals, self.control) = (None, None);
                self.generations.clear();
                self.sockets.forget();
            };
            accounts.fork(self.user.as_ref(), theirs, forget)
        });
        if let Err(error) = begun {
            error!("can not begin the accounts again: {error}");
            accounts.again = Some(Instant::now() + PAUSE);
        }
        self.accounts = Some(accounts);
    }

    /// Tells the accounts to go, and waits for a moment until they have.
    pub(super) fn end_accounts(&mut self) {
        let Some(accounts) = &mut self.accounts else { return };
        accounts.end();
        for _ in 0..200 {
            while let Ok(Some((pid, _))) = process::reap() {
                if accounts.is(pid) {
                    accounts.pid = None;
                }
            }
            if accounts.pid.is_none() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        if let Some(pid) = accounts.pid {
            process::tell(pid, Signal::Kill);
        }
    }
}
