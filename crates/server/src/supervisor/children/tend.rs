//! The supervisor's care for its helper processes.

use super::Children;
use super::admin::AdminProcess;
use crate::supervisor::state::Supervisor;

impl Supervisor {
    /// In a child: drops the state of the supervisor.
    pub(crate) fn forget(&mut self) {
        (self.signals, self.control, self.tickets) = (None, None, None);
        self.upgrades.handover = None;
        self.children = Children::default();
        self.generations.lanes = Default::default();
        self.generations.all.clear();
        self.sockets.forget();
    }

    /// Replaces helper processes that hang or have ended.
    pub(crate) fn advance_children(&mut self) {
        // Each is taken out, because the new process drops the state of the supervisor.
        if let Some(mut accounts) = self.children.accounts.take() {
            accounts.advance(|| self.forget());
            self.children.accounts = Some(accounts);
        }
        if let Some(mut admin) = self.children.admin.take() {
            admin.advance(|| self.forget());
            self.children.admin = Some(admin);
        }
        for index in 0..self.generations.all.len() {
            let Some(mut signing) = self.generations.all[index].signing.take() else { continue };
            signing.advance(|| self.forget());
            self.generations.all[index].signing = Some(signing);
        }
    }

    /// Answers clients of the control socket, and the admin process if it has asked.
    pub(crate) fn answer(&mut self) {
        if let Some(control) = &self.control {
            control.answer(|| self.report());
        }
        let is_asked = self.children.admin.as_mut().is_some_and(AdminProcess::asks);
        let report = is_asked.then(|| {
            let mut report = self.report();
            // Lines of a configuration can contain passwords, and the admin listener may be reached from elsewhere.
            report.reloads.last_failure.clear();
            report
        });
        self.children.admin.iter_mut().for_each(|admin| admin.answer(report.as_ref()));
    }
}
