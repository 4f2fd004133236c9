//! The processes of the supervisor: a [`child`] is a helper process from fork to end, and a [`worker`] serves.

pub(crate) mod accounts;
pub(crate) mod acme;
pub(crate) mod admin;
pub(crate) mod child;
pub(crate) mod privileges;
mod renewal;
pub(crate) mod signing;
mod tend;
pub(crate) mod worker;

use std::time::Instant;

use tenfold_sys::process::{Pid, WaitStatus};

use self::accounts::AccountsProcess;
use self::acme::AcmeProcess;
use self::admin::AdminProcess;

/// The helper processes of the server. Each generation has its signing process.
#[derive(Default)]
pub(crate) struct Children {
    /// If there are members.
    pub(crate) accounts: Option<AccountsProcess>,
    /// `None` in other processes: a process that can write responses to challenges can obtain certificates.
    pub(crate) acme: Option<AcmeProcess>,
    /// If there is an admin listener.
    pub(crate) admin: Option<AdminProcess>,
}

impl Children {
    /// Notes the end of a process. Returns whether it was one of these. An `expected` end is not reported.
    pub(crate) fn on_exit(&mut self, pid: Pid, end: WaitStatus, expected: bool) -> bool {
        if let Some(accounts) = self.accounts.as_mut().filter(|accounts| accounts.child.is(pid)) {
            accounts.child.on_exit(end, expected);
        } else if let Some(acme) = self.acme.as_mut().filter(|acme| acme.child.is(pid)) {
            acme.on_exit(end, expected);
        } else if let Some(admin) = self.admin.as_mut().filter(|admin| admin.child.is(pid)) {
            admin.on_exit(end, expected);
        } else {
            return false;
        }
        true
    }

    /// The time of the next action.
    pub(crate) fn by(&self) -> Option<Instant> {
        let accounts = self.accounts.as_ref().and_then(|accounts| accounts.child.by());
        let acme = self.acme.as_ref().and_then(AcmeProcess::by);
        let admin = self.admin.as_ref().and_then(AdminProcess::by);
        [accounts, acme, admin].into_iter().flatten().min()
    }

    /// Ends the processes that the next program starts again; accounts answer former workers.
    pub(crate) fn end_for_upgrade(&mut self) {
        self.acme.iter_mut().for_each(AcmeProcess::end);
        self.admin.iter_mut().for_each(|admin| admin.child.signal(tenfold_sys::signal::Signal::Kill));
    }

    /// Ends all of them, after the last worker.
    pub(crate) fn end(&mut self) {
        self.admin.iter_mut().for_each(AdminProcess::end);
        self.acme.iter_mut().for_each(AcmeProcess::end);
        self.accounts.iter_mut().for_each(AccountsProcess::end);
    }

    /// System calls that the sandboxes have refused.
    pub(crate) fn refused_calls(&self) -> u64 {
        let accounts = self.accounts.iter().map(|accounts| &accounts.child);
        let acme = self.acme.iter().map(|acme| &acme.child);
        let admin = self.admin.iter().map(|admin| &admin.child);
        accounts.chain(acme).chain(admin).map(|child| child.refused_calls()).fold(0, u64::saturating_add)
    }
}
