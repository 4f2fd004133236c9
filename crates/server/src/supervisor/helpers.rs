//! The processes beside workers: accounts, admin listener, signing. Each is started again when it is due.

use std::os::unix::net::UnixStream;
use std::time::Instant;

use super::address_rows::AddressRows;
use super::archive::job::Archive;
use super::signing::SigningProcess;
use super::state::Supervisor;
use crate::diagnostics::error;

impl Supervisor {
    /// Drops what only the supervisor uses, in another process.
    pub(super) fn forget(&mut self) {
        (self.signals, self.control, self.admin, self.tickets) = (None, None, None, None);
        self.upgrades.handover = None;
        self.archive = Archive::default();
        self.acme.forget();
        self.address_rows = AddressRows::default();
        self.generations.clear();
        self.sockets.forget();
    }

    /// Replaces the accounts process if it hangs or has ended.
    pub(super) fn look_after_accounts(&mut self) {
        let now = Instant::now();
        if let Some(accounts) = &mut self.accounts {
            accounts.look_after(now);
        }
        if self.accounts.as_ref().is_none_or(|accounts| !accounts.is_due(now)) {
            return;
        }
        let Some(mut accounts) = self.accounts.take() else { return };
        // Nothing waits for it: the process itself reports problems.
        let begun = UnixStream::pair().and_then(|(ours, theirs)| {
            drop(ours);
            accounts.fork(theirs, false, || self.forget())
        });
        if let Err(error) = begun {
            error!("cannot restart the accounts process: {error}");
            accounts.postpone();
        }
        self.accounts = Some(accounts);
    }

    /// Starts the process of the admin listener if it is missing.
    pub(super) fn look_after_admin(&mut self) {
        let Some(mut admin) = self.admin.take() else { return };
        admin.look_after(Instant::now(), || {
            self.accounts = None;
            self.forget();
        });
        self.admin = Some(admin);
    }

    /// Answers the admin process if it has asked.
    pub(super) fn answer_admin(&mut self) {
        let Some(mut admin) = self.admin.take() else { return };
        let calls = admin.refused_calls();
        admin.answer(|| self.report(Some(calls)));
        self.admin = Some(admin);
    }

    /// Replaces signing processes that hang or have ended.
    pub(super) fn look_after_signing(&mut self) {
        let now = Instant::now();
        for index in 0..self.generations.len() {
            self.generations[index].signing.iter_mut().for_each(|signing| signing.look_after(now));
            let is_due = |signing: &mut SigningProcess| signing.again().is_some_and(|again| again <= now);
            let Some(mut signing) = self.generations[index].signing.take_if(is_due) else { continue };
            // It reports problems by itself: nobody waits for it.
            let begun = UnixStream::pair().and_then(|(ours, theirs)| {
                drop(ours);
                signing.fork(theirs, || {
                    self.accounts = None;
                    self.forget();
                })
            });
            if let Err(error) = begun {
                error!("cannot restart the signing process: {error}");
                signing.postpone();
            }
            self.generations[index].signing = Some(signing);
        }
    }
}
