//! The loop of the supervisor: signals, processes that end, and what is due.

use std::io::ErrorKind;
use std::mem;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use tenfold_sys::landlock;
use tenfold_sys::process::{self, Fork, Pid, WaitStatus};
use tenfold_sys::signal::{Signal, Signals};
use tenfold_sys::wait;

use super::accounts::AccountsProcess;
use super::admin::AdminProcess;
use super::control::ControlSocket;
use super::forked::CANNOT_SERVE;
use super::generation::{Generation, Stage};
use super::signing::SigningProcess;
use super::state::{Leaving, Supervisor};
use super::tickets::TicketRotation;
use super::{announce, child};
use crate::diagnostics::{self, debug, error, info, warning};

/// The pause after a failed wait.
const PAUSE: Duration = Duration::from_millis(50);
/// The interval of checks of a starting worker.
const STARTING_TICK: Duration = Duration::from_millis(5);

impl Supervisor {
    pub(super) fn run(mut self) -> ExitCode {
        self.fork_missing();
        while !(self.generations.is_empty()
            && self.upgrades.former.is_empty()
            && (self.leaving.is_some() || self.failed))
        {
            self.wait();
            while let Some(signal) = self.signals.as_ref().and_then(Signals::next) {
                self.hear(signal);
            }
            self.reap();
            self.upgrades.former.retain_mut(|former| !former.are_gone());
            self.settle_generations();
            self.end_oldest();
            self.look_at_loops();
            self.press_on();
            if mem::take(&mut self.reload_asked) {
                self.reload();
            }
            self.advance_upgrade();
            self.look_after_roots();
            self.look_after_accounts();
            self.look_after_certificates();
            self.look_after_admin();
            self.look_after_signing();
            self.fork_missing();
            self.rotate();
            self.look_after_archive();
            self.tickets.iter_mut().for_each(TicketRotation::rotate);
            self.manager.beat();
            diagnostics::report_lost();
            let admin_calls = self.admin.as_ref().map(AdminProcess::refused_calls);
            if let Some(control) = &self.control {
                control.answer(|| self.report(admin_calls));
            }
            self.answer_admin();
        }
        if let Some(admin) = &mut self.admin {
            admin.end();
        }
        self.archive.abandon();
        self.acme.end();
        if let Some(accounts) = &mut self.accounts {
            accounts.end_and_wait();
        }
        self.sockets.remove_files();
        if let Some(control) = &self.control {
            control.remove();
        }
        match self.failed {
            true => ExitCode::FAILURE,
            false => {
                info!("stopped");
                ExitCode::SUCCESS
            }
        }
    }

    /// Waits for a signal, a status client, or the next action.
    fn wait(&self) {
        let signals = self.signals.as_ref().expect("only a worker is without");
        let mut waited_for = vec![signals.as_fd()];
        waited_for.extend(self.control.as_ref().map(ControlSocket::as_fd));
        waited_for.extend(self.acme.news());
        waited_for.extend(self.admin.as_ref().and_then(AdminProcess::channel));
        let timeout = self.next_deadline().map(|by| {
            // Rounded up, because waking too early would cost another round.
            by.saturating_duration_since(Instant::now()) + Duration::from_millis(1)
        });
        // Everything is checked afterwards, whatever it reports.
        if let Err(error) = wait::for_input(&waited_for, timeout)
            && error.kind() != ErrorKind::Interrupted
        {
            debug!("cannot wait for events: {error}");
            thread::sleep(PAUSE);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let starting = self.generations.iter().any(|generation| generation.stage == Stage::Starting);
        let tick = starting.then(|| Instant::now() + STARTING_TICK);
        let again = self.generations.iter().flat_map(Generation::again).min();
        let accounts = self.accounts.as_ref().and_then(AccountsProcess::by);
        let admin = self.admin.as_ref().and_then(AdminProcess::by);
        let signing =
            self.generations.iter().filter_map(|generation| generation.signing.as_ref()?.by()).min();
        let leave = self.leaving.as_ref().and_then(Leaving::by);
        let tickets = self.tickets.as_ref().map(TicketRotation::by);
        let lost = diagnostics::has_lost().then(|| Instant::now() + diagnostics::RETRY);
        let all = [
            tick,
            again,
            accounts,
            signing,
            admin,
            leave,
            self.next_look_at_roots(),
            self.sockets_end,
            self.rotation_by(),
            tickets,
            lost,
        ];
        all.into_iter()
            .chain([self.manager.by(), self.archive_by(), self.acme.by(), self.upgrades.by()])
            .chain([self.ends_by(), self.next_look_at_loops()])
            .flatten()
            .min()
    }

    fn hear(&mut self, signal: Signal) {
        debug!("heard {signal:?}");
        match signal {
            Signal::Interrupt | Signal::Terminate | Signal::Quit => self.leave(signal),
            Signal::HangUp => self.reload_asked = true,
            Signal::Reopen => {
                if self.reopen() {
                    info!("the access log was opened again");
                }
            }
            Signal::Retire => self.upgrades.asked = true,
            Signal::Child | Signal::Kill => {}
        }
    }

    /// The time of the next check of the log.
    fn rotation_by(&self) -> Option<Instant> {
        let newest = self.generations.last().filter(|_| self.leaving.is_none())?;
        self.rotation.by(newest, self.began)
    }

    /// Rotates the log if it is due.
    fn rotate(&mut self) {
        let now = Instant::now();
        if self.rotation_by().is_none_or(|by| by > now) {
            return;
        }
        let lines = self.lines();
        let Some(newest) = self.generations.last() else { return };
        if self.rotation.rotate(newest, lines, now) {
            self.reopen();
            self.archive.wake();
        }
    }

    /// Opens the log by its path again, in every process. Returns whether the newest generation has the new file.
    fn reopen(&mut self) -> bool {
        let mut reopened = false;
        for generation in &mut self.generations {
            match generation.log.reopen(self.user.as_ref()) {
                Ok(has_path) => {
                    generation.tell(Signal::Reopen);
                    reopened = has_path;
                }
                Err(why) => {
                    error!("{why}; lines still go to the old file");
                    reopened = false;
                }
            }
        }
        self.signal_former(Signal::Reopen);
        reopened
    }

    pub(super) fn signal_former(&self, signal: Signal) {
        self.upgrades.former.iter().for_each(|former| former.signal(signal));
    }

    pub(super) fn reap(&mut self) {
        loop {
            match process::reap() {
                Ok(Some((pid, end))) => self.mourn(pid, end),
                Ok(None) => return,
                Err(error) => return warning!("cannot wait for workers: {error}"),
            }
        }
    }

    fn mourn(&mut self, pid: Pid, end: WaitStatus) {
        let expected = self.leaving.is_some();
        if let Some(accounts) = self.accounts.as_mut().filter(|accounts| accounts.is(pid)) {
            return accounts.lost(end, expected && end == WaitStatus::Exited(0));
        }
        if self.upgrades.is_check(pid) {
            return self.on_check_exit(end);
        }
        self.upgrades.former.iter_mut().for_each(|former| former.on_exit(pid));
        if self.archive.is(pid) {
            return self.archive.ended(end);
        }
        if self.acme.is(pid) {
            return self.acme.lost(end);
        }
        if let Some(admin) = self.admin.as_mut().filter(|admin| admin.is(pid)) {
            return admin.lost(end);
        }
        let mut signing = self.generations.iter_mut().filter_map(|generation| generation.signing.as_mut());
        if let Some(signing) = signing.find(|signing| signing.is(pid)) {
            return signing.lost(end, expected && end == WaitStatus::Exited(0));
        }
        let owner = self.generations.iter_mut().find_map(|generation| {
            let place = generation.place_of(pid)?;
            Some((generation, place))
        });
        let Some((generation, place)) = owner else { return };
        generation.lost(place, end, expected);
    }

    /// Starts the processes that are due.
    fn fork_missing(&mut self) {
        if self.leaving.is_some() {
            return;
        }
        let now = Instant::now();
        for index in 0..self.generations.len() {
            for place in self.generations[index].missing(now) {
                self.fork(index, place);
            }
        }
    }

    fn fork(&mut self, index: usize, place: usize) {
        let supervisor = process::own();
        match process::fork() {
            Ok(Fork::Parent(pid)) => {
                debug!("worker {} is process {pid}", place + 1);
                self.generations[index].begun(place, pid);
            }
            Ok(Fork::Child) => {
                // Wipes its copy of the keys; the shared memory has the usable ones.
                let tickets = self.tickets.take().map(|tickets| tickets.shared());
                let generation = self.generations.swap_remove(index);
                let challenges = generation.config.acme.as_ref().and_then(|_| self.acme.board());
                let listeners = self.sockets.take(place);
                // The end of the process frees the rest.
                self.forget();
                // Workers must not have the answering end.
                let client = match self.accounts.take().map(|accounts| accounts.client()).transpose() {
                    Ok(client) => client.flatten(),
                    Err(error) => {
                        error!("worker {}: cannot connect to the accounts process: {error}", place + 1);
                        std::process::exit(CANNOT_SERVE);
                    }
                };
                let work = child::WorkerTask {
                    place,
                    supervisor,
                    generation,
                    listeners,
                    client,
                    tickets,
                    challenges,
                };
                child::run_and_exit(work, self.user.as_ref(), &self.serve);
            }
            Err(error) => {
                error!("cannot fork a worker: {error}");
                self.generations[index].not_begun(place);
            }
        }
    }

    /// Updates generations: from starting to serving, and removes those whose workers have ended.
    fn settle_generations(&mut self) {
        if let Some(newest) = self.generations.last_mut() {
            if newest.stage == Stage::Starting && newest.is_ready() && self.leaving.is_none() {
                newest.stage = Stage::Serving;
                newest.gate.open();
                self.settle_roots();
                self.took_over();
            } else if newest.stage == Stage::Starting && newest.is_late() {
                error!("a worker does not begin to serve");
                newest.fail_late();
            }
        }
        let past = &mut self.past;
        let mut failed = false;
        self.generations.retain_mut(|generation| {
            let gone = generation.is_gone();
            if gone {
                past.add_sums(&generation.sums_without_connections());
                self.past_restarts += generation.restarts();
                self.past_stuck += generation.stuck();
                failed |= generation.stage == Stage::Failed;
                debug!("generation {} is gone", generation.number);
            }
            !gone
        });
        if failed && self.leaving.is_none() {
            self.postpone_certificate();
            self.postpone_roots();
            match self.generations.is_empty() {
                true => {
                    self.return_to_former_program();
                    self.failed = true;
                    if !self.upgrades.former.is_empty() {
                        self.leave(Signal::Interrupt);
                    }
                }
                false => {
                    self.reloads.count(false);
                    error!("the new configuration cannot be served; the old one stays in use");
                    self.manager.reloaded("the new configuration cannot be served; the old one stays in use");
                }
            }
        }
    }

    /// The newest generation serves, so the former ones leave.
    fn took_over(&mut self) {
        let Some((newest, former)) = self.generations.split_last_mut() else { return };
        self.reloads.loaded();
        if newest.number == 1 {
            announce::announce(&announce::StartFacts {
                settings: &newest.settings,
                config: &newest.config,
                addresses: &self.addresses,
                accounts: self.accounts.as_ref().map(|accounts| (&accounts.url, accounts.user.as_ref())),
                user: self.user.as_ref(),
                signing: newest.signing.as_ref().map(SigningProcess::user),
                control: self.control.as_ref().map(ControlSocket::path),
                null: self.serve.null,
                qr: self.serve.qr,
                files_limited: landlock::is_available(),
            });
        } else if self.upgrades.finish() {
            diagnostics::set_level(newest.settings.log_level);
        } else {
            self.reloads.count(true);
            diagnostics::set_level(newest.settings.log_level);
            if let Err(why) = self.sockets.pace(newest.settings.max_rate) {
                error!("{why}");
            }
            info!("serving with the new configuration (generation {}); the old workers drain", newest.number);
        }
        former.iter_mut().for_each(Generation::retire);
        self.upgrades.former.iter().for_each(|former| former.signal(Signal::Retire));
        self.archive.wake();
        let plan = &newest.config.plan;
        let addresses: Vec<_> = self.addresses.iter().map(ToString::to_string).collect();
        let workers = announce::workers(plan.workers);
        let status = format!("serving {} with engine {}, {workers}", addresses.join(" "), plan.engine);
        match newest.number {
            1 => self.manager.ready(&status),
            number => self.manager.reloaded(&format!("{status}, generation {number}")),
        }
        self.follow_certificates();
    }
}
