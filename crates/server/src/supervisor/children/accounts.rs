//! The accounts process: started before any worker, and stopped after the last one.

use std::io;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use tenfold_accounts::store::url::DatabaseUrl;
use tenfold_sys::limits;
use tenfold_sys::process;
use tenfold_sys::signal::Signal;
use tenfold_sys::user::SystemUser;

use super::child::HeartbeatBounds;
use super::child::{Child, LATEST_START};
use super::privileges;
use crate::config::values::Settings;
use crate::config::values::members::MembersSettings;
use crate::diagnostics::warning;
use crate::members::channel::{self, AccountsClient, AccountsServer};
use crate::members::client::filter::Starts;
use crate::members::database::{self, Users};
use crate::members::process::{AccountsTask, most_memory, serve};
use crate::sandbox;

/// The main thread, which never waits for long, sends a heartbeat each second.
const HEARTBEAT: HeartbeatBounds =
    HeartbeatBounds { latest_start: LATEST_START, look: Duration::from_secs(4), looks: 4 };
/// The time that the process has to end after the last worker: 200 looks at this interval.
const TICK: Duration = Duration::from_millis(10);
const TICKS: usize = 200;

/// The accounts of the server.
pub(crate) struct AccountsProcess {
    pub(crate) child: Child,
    settings: MembersSettings,
    pub(crate) url: DatabaseUrl,
    /// `None` in the accounts process itself, which otherwise would not notice the end of all clients.
    client: Option<AccountsClient>,
    server: AccountsServer,
    starts: Starts,
}

impl AccountsProcess {
    /// Starts the process and waits until the accounts are open, until `by` at the latest; `None` without members.
    /// `forget` drops, in the new process, state that it must not have.
    pub(crate) fn begin(
        settings: &Settings,
        workers: Option<&SystemUser>,
        by: Instant,
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
        let (client, server) = channel::open().map_err(failed)?;
        let mut accounts = AccountsProcess {
            child: Child::new("accounts process", user.as_ref(), Some(HEARTBEAT))?,
            settings: settings.members.clone(),
            url,
            client: Some(client),
            server,
            starts: Starts::new().map_err(failed)?,
        };
        let ready = accounts.start(true, forget).map_err(failed)?;
        accounts.child.wait_until_ready(&ready, by)?;
        warnings.iter().for_each(|warning| warning!("{warning}"));
        Ok(Some(accounts))
    }

    /// Starts the process; the first one creates a missing database.
    fn start(&mut self, create: bool, forget: impl FnOnce()) -> io::Result<UnixStream> {
        let AccountsProcess { child, settings, url, client, server, starts } = self;
        starts.count();
        let prepare = || {
            forget();
            *client = None;
            Ok(())
        };
        child.start(prepare, |child, (), ready| {
            limits::limit_memory(most_memory(settings))
                .map_err(|error| format!("cannot limit memory: {error}"))?;
            if let Some(process) = child.sandbox() {
                sandbox::confine_accounts(process, url.file())?;
            }
            serve(
                &AccountsTask { settings, url, user: child.user(), create, server, beats: child.beats() },
                ready,
            )
        })
    }

    /// Replaces the process if it hangs or has ended.
    pub(crate) fn advance(&mut self, forget: impl FnOnce()) {
        self.child.check_heartbeat();
        if self.child.is_due() {
            // Nothing waits for the report: the process itself reports problems.
            let started = self.start(false, forget);
            self.child.on_start(started);
        }
    }

    /// The asking end for a worker, and the count of starts; `None` in the accounts process.
    pub(crate) fn client(&self) -> io::Result<Option<(AccountsClient, Starts)>> {
        let Some(client) = &self.client else { return Ok(None) };
        Ok(Some((client.share()?, self.starts.clone())))
    }

    /// Asks the process to end, waits briefly, and then kills it.
    pub(crate) fn end(&mut self) {
        self.child.signal(Signal::Interrupt);
        for _ in 0..TICKS {
            if self.child.pid().is_none_or(|pid| !process::is_child(pid)) {
                break;
            }
            while let Ok(Some((pid, end))) = process::reap() {
                if self.child.is(pid) {
                    return self.child.on_exit(end, true);
                }
            }
            thread::sleep(TICK);
        }
        self.child.kill();
    }
}
