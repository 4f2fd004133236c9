//! The steps of an upgrade: the check, and the execution of the new program.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::time::Instant;

use tenfold_sys::process::WaitStatus;

use super::LATEST_CHECK;
use super::handover::{self, CAN_SERVE, HandoverState, VERSION};
use crate::diagnostics::error;
use crate::supervisor::children::admin::AdminProcess;
use crate::supervisor::generation::reload::why_not_applied;
use crate::supervisor::generation::tickets::TicketRotation;
use crate::supervisor::generation::{Generation, Stage};
use crate::supervisor::sockets::control::ControlSocket;
use crate::supervisor::state::Supervisor;

impl Supervisor {
    /// Begins a requested upgrade, and ends a check that takes too long.
    pub(crate) fn advance_upgrade(&mut self) {
        if self.leaving.is_some() {
            self.upgrades.asked = false;
            return self.upgrades.end_check();
        }
        if self.upgrades.by().is_some_and(|by| by <= Instant::now()) {
            self.upgrades.end_check();
            let why = format!("the new program did not check the configuration within {LATEST_CHECK:?}");
            self.upgrade_failed(&why);
        }
        if !self.upgrades.asked || self.upgrades.check.is_some() || !self.may_upgrade() {
            return;
        }
        self.upgrades.asked = false;
        let Some(newest) = self.generations.all.last() else { return };
        let old = newest.settings.clone();
        self.manager.reloading();
        let port = handover::port_of(&self.sockets.addresses());
        let prepared = self.prepare(&old).map_err(|problems| why_not_applied(&problems));
        if let Err(why) = prepared.and_then(|_| self.upgrades.begin_check(port)) {
            self.upgrade_failed(&why);
        }
    }

    /// Whether the newest generation serves, and room is left for another former one.
    fn may_upgrade(&mut self) -> bool {
        let serves = self.generations.all.last().is_some_and(|newest| newest.stage == Stage::Serving);
        serves && self.upgrades.handover.is_none() && self.make_room()
    }

    /// Executes the new program if its check succeeded.
    pub(crate) fn on_check_exit(&mut self, end: WaitStatus) {
        self.upgrades.check = None;
        if self.leaving.is_some() {
            return;
        }
        let program = self.upgrades.program.display().to_string();
        if end != WaitStatus::Exited(CAN_SERVE.into()) {
            let why = format!("the check of {program} failed: it {end}");
            return self.upgrade_failed(&why);
        }
        if !self.may_upgrade() {
            // A reload began meanwhile.
            self.upgrades.asked = true;
            return;
        }
        let Err(error) = self.execute_program();
        self.follow_certificates();
        self.upgrade_failed(&format!("cannot execute {program}: {error}"));
    }

    /// Executes the program of the upgrade with the state of this one. Returns only if that failed.
    fn execute_program(&mut self) -> io::Result<Infallible> {
        let own = File::open("/proc/self/exe")?;
        let tickets = self.tickets.as_ref().map(TicketRotation::to_file).transpose()?;
        self.children.end_for_upgrade();
        let accounts = self.children.accounts.as_ref().and_then(|accounts| accounts.child.pid());
        let mut former: Vec<_> = self.generations.all.iter().map(Generation::to_former).collect();
        for workers in &mut former {
            workers.helpers.extend(accounts.map(|pid| pid.as_raw_nonzero().get()));
        }
        former.splice(..0, self.upgrades.former.clone());
        let mut upgrades = self.upgrades.counts.clone();
        let program = &self.upgrades.program;
        upgrades.same_file = handover::is_own(program).then(|| program.display().to_string());
        let mut state = HandoverState {
            version: VERSION,
            program: program.clone().into(),
            arguments: self.upgrades.arguments.clone(),
            failure: None,
            uptime_seconds: self.began.elapsed().as_secs(),
            generations: self.generations.count,
            reloads: self.generations.reloads.clone(),
            upgrades,
            passed: self.sockets.were_passed(),
            port: handover::port_of(&self.sockets.addresses()),
            descriptors: Vec::new(),
            former,
        };
        let site = self.sockets.by_process().iter().enumerate();
        let site = site.flat_map(|(process, own)| own.iter().map(move |one| (handover::site(process), one)));
        let control = self.control.as_ref().map(ControlSocket::listener);
        let admin = self.children.admin.as_ref().and_then(AdminProcess::listener);
        let others = [("control", control), ("admin", admin)].into_iter();
        let others = others.filter_map(|(name, listener)| Some((name.to_owned(), listener?)));
        let sockets: Vec<_> = site.chain(others).collect();
        let mut passed: Vec<_> =
            sockets.iter().map(|(name, listener)| state.pass(name, *listener, listener.file())).collect();
        passed.push(state.pass("program", &own, None));
        passed.extend(tickets.iter().map(|tickets| state.pass("tickets", tickets, None)));
        state.execute(program, &passed)
    }

    fn upgrade_failed(&mut self, why: &str) {
        self.upgrades.counts.failed(why);
        error!("{why}; the old program stays in use");
        self.manager.reloaded(&format!("{why}; the old program stays in use"));
    }

    /// Executes the former program again if this one cannot serve. Returns if there was none, or if that failed.
    pub(crate) fn return_to_former_program(&mut self) {
        let Some(mut handover) = self.upgrades.handover.take() else { return };
        self.children.end_for_upgrade();
        self.children.accounts.iter_mut().for_each(|accounts| accounts.child.kill());
        handover.state.former.clone_from(&self.upgrades.former);
        error!("{}", handover.go_back("the workers of the new program did not begin to serve"));
    }
}
