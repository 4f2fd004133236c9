//! USR2: another program in this process. A child checks the configuration with the new one. Then the supervisor executes
//! it, and passes its sockets; the old workers serve until the new ones do.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Instant;

use tenfold_sys::exec;
use tenfold_sys::process::WaitStatus;
use tenfold_sys::signal::Signal;
use tenfold_sys::socket::Listener;

use super::accounts::AccountsProcess;
use super::admin::AdminProcess;
use super::candidate::{Check, LATEST_CHECK};
use super::control::ControlSocket;
use super::generation::{Generation, Stage};
use super::handover::{FormerWorkers, HandedSocket, Handover, HandoverState, VERSION};
use super::state::{Leaving, Supervisor};
use super::tickets::TicketRotation;
use crate::diagnostics::{error, info};
use crate::status::report::UpgradeCounts;

impl Supervisor {
    /// Begins an upgrade if one was asked for, and gives up a check that takes too long.
    pub(super) fn look_after_upgrade(&mut self) {
        if self.upgrade.by().is_some_and(|by| by <= Instant::now()) {
            self.upgrade.end_check();
            self.upgrade_failed(&format!(
                "the new program did not check the configuration within {LATEST_CHECK:?}"
            ));
        }
        if self.leaving.is_some() {
            self.upgrade.asked = false;
            self.upgrade.end_check();
        }
        if !self.upgrade.asked || self.upgrade.check.is_some() || !self.may_upgrade() {
            return;
        }
        self.upgrade.asked = false;
        let Some(newest) = self.generations.last() else { return };
        let old = newest.settings.clone();
        self.manager.reloading();
        let begun = self.prepare(&old).and_then(|_| {
            Check::begin(&self.program)
                .map_err(|error| format!("cannot run {}: {error}", self.program.path.display()))
        });
        match begun {
            Ok(check) => self.upgrade.check = Some(check),
            Err(why) => self.upgrade_failed(&why),
        }
    }

    /// Whether the newest generation serves, and room is left for another former one.
    fn may_upgrade(&mut self) -> bool {
        let serves = self.generations.last().is_some_and(|newest| newest.stage == Stage::Serving);
        serves && self.handover.is_none() && self.make_room()
    }

    /// The child that checked has ended.
    pub(super) fn checked(&mut self, end: WaitStatus) {
        let Some(check) = self.upgrade.check.take() else { return };
        if self.leaving.is_some() {
            return;
        }
        let is_same = check.is_of(&self.program);
        if !check.reports_ready() || end != WaitStatus::Exited(0) {
            let program = self.program.path.display();
            return self.upgrade_failed(&format!("the check of {program} failed: it {end}"));
        }
        if !is_same || !self.may_upgrade() {
            // Another file has the path, or a reload came between.
            self.upgrade.asked = true;
            return;
        }
        let why = match self.pass() {
            Ok(error) => format!("cannot execute {}: {error}", self.program.path.display()),
            Err(why) => why,
        };
        self.follow_certificates();
        self.upgrade_failed(&why);
    }

    /// Executes the new program. Returns only if that failed.
    fn pass(&mut self) -> Result<io::Error, String> {
        let own = File::open("/proc/self/exe")
            .map_err(|error| format!("cannot open the running program, /proc/self/exe: {error}"))?;
        let listeners = self.sockets.by_process();
        let describe = |own: &Vec<Listener>| own.iter().map(HandedSocket::of).collect();
        let sockets = listeners.iter().map(describe).collect::<Result<_, _>>()?;
        let control = self.control.as_ref().map(ControlSocket::listener);
        let control = control.map(HandedSocket::of).transpose()?;
        let admin = self.admin.as_ref().and_then(AdminProcess::listener);
        let admin = admin.map(HandedSocket::of).transpose()?;
        // An error below would lose the former workers.
        let mut former = std::mem::take(&mut self.former);
        former.extend(self.generations.iter().map(Generation::to_former));
        let accounts = self.accounts.as_ref().and_then(AccountsProcess::pid);
        if let Some(newest) = former.last_mut() {
            newest.helpers.extend(accounts.map(|pid| pid.as_raw_nonzero().get()));
        }
        let mut upgrades = self.upgrades.clone();
        upgrades.same_file = self.program.is_same_file().then(|| self.program.path.display().to_string());
        let state = HandoverState {
            version: VERSION,
            program: self.program.clone(),
            former_program: Some(exec::number(&own)),
            failure: None,
            uptime_seconds: self.began.elapsed().as_secs(),
            generations: self.count,
            reloads: self.reloads,
            upgrades,
            sockets,
            passed: self.sockets.were_passed(),
            control,
            admin,
            tickets: self.tickets.as_ref().map(TicketRotation::to_handed).unwrap_or_default(),
            former,
        };
        self.archive.abandon();
        self.acme.end();
        self.admin.iter().for_each(AdminProcess::kill);
        let passed: Vec<_> = self.sockets.by_process().iter().flatten().map(Listener::as_fd).collect();
        let others = [
            self.control.as_ref().map(AsFd::as_fd),
            self.admin.as_ref().and_then(AdminProcess::listener).map(AsFd::as_fd),
        ];
        let passed: Vec<_> =
            passed.into_iter().chain(others.into_iter().flatten()).chain([own.as_fd()]).collect();
        let error = state.execute(&PathBuf::from(&self.program.path), &passed);
        drop(passed);
        let mut former = state.former;
        former.truncate(former.len() - self.generations.len());
        self.former = former;
        Ok(error)
    }

    fn upgrade_failed(&mut self, why: &str) {
        self.upgrades.failed(why);
        error!("{why}; the old program stays in use");
        self.manager.reloaded(&format!("{why}; the old program stays in use"));
    }

    /// This program cannot serve: returns to the former one, or starts again. Returns if there was no upgrade, or when a
    /// signal has ended the server.
    pub(super) fn go_back(&mut self) {
        let Some(mut handover) = self.handover.take() else { return };
        self.acme.end();
        self.admin.iter().for_each(AdminProcess::kill);
        self.accounts.iter_mut().for_each(AccountsProcess::kill);
        handover.state.former = std::mem::take(&mut self.former);
        handover.give_way("the workers of the new program did not begin to serve", &self.serve.given);
        self.leaving = Some(Leaving::Killed);
    }

    /// Notes the ends of former workers.
    pub(super) fn settle_former(&mut self) {
        self.former.retain_mut(|former| !former.are_gone());
    }

    pub(super) fn tell_former(&self, signal: Signal) {
        self.former.iter().for_each(|former: &FormerWorkers| former.tell(signal));
    }
}

/// Reports and counts the upgrade that `handover` belongs to, when the first generation of this program serves.
pub(super) fn finish(upgrades: &mut UpgradeCounts, handover: &Handover) {
    match &handover.state.failure {
        None => {
            upgrades.succeeded += 1;
            let which = match &upgrades.same_file {
                Some(path) => format!("the same program again: {path} is the file that ran before"),
                None => "the new program".to_owned(),
            };
            info!(
                "serving with {which}, version {}; the old workers drain, and counters begin again",
                env!("CARGO_PKG_VERSION")
            );
        }
        Some(why) => {
            upgrades.failed(why);
            error!("{why}; the old program serves again, and counters begin again");
        }
    }
}
