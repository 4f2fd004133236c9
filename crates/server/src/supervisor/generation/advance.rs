//! The steps of generations: workers start, begin to serve, take over, and end.

use std::process;
use std::time::Instant;

use tenfold_sys::landlock;
use tenfold_sys::process::{Fork, fork, own};
use tenfold_sys::signal::Signal;

use super::{Generation, Stage};
use crate::diagnostics::{self, debug, error, info};
use crate::supervisor::announce;
use crate::supervisor::children::child::CANNOT_SERVE;
use crate::supervisor::children::worker::{WorkerTask, run_and_exit};
use crate::supervisor::sockets::control::ControlSocket;
use crate::supervisor::state::Supervisor;

impl Supervisor {
    /// Starts the workers that are due.
    pub(crate) fn start_workers(&mut self) {
        if self.leaving.is_some() {
            return;
        }
        let now = Instant::now();
        for index in 0..self.generations.all.len() {
            for place in self.generations.all[index].missing(now) {
                self.start_worker(index, place);
            }
        }
    }

    fn start_worker(&mut self, index: usize, place: usize) {
        let supervisor = own();
        match fork() {
            Ok(Fork::Parent(pid)) => {
                debug!("worker {} is process {pid}", place + 1);
                self.generations.all[index].on_start(place, pid);
            }
            Ok(Fork::Child) => {
                // Wipes its copy of the keys; the shared memory has the usable ones.
                let tickets = self.tickets.take().map(|tickets| tickets.shared());
                let generation = self.generations.all.swap_remove(index);
                let acme = self.children.acme.take().filter(|_| generation.config.acme.is_some());
                let listeners = self.sockets.take(place);
                // Workers must not have the answering end.
                let client = self.children.accounts.take().map(|accounts| accounts.client());
                self.forget();
                let client = match client.transpose() {
                    Ok(client) => client.flatten(),
                    Err(error) => {
                        error!("worker {}: cannot connect to the accounts process: {error}", place + 1);
                        process::exit(CANNOT_SERVE);
                    }
                };
                let challenges = acme.map(|acme| acme.board());
                let work =
                    WorkerTask { place, supervisor, generation, listeners, client, tickets, challenges };
                run_and_exit(work, self.user.as_ref(), &self.serve);
            }
            Err(error) => {
                error!("cannot fork a worker: {error}");
                self.generations.all[index].on_failed_start(place);
            }
        }
    }

    /// Lets a generation serve whose workers are ready, and removes those whose workers have ended.
    pub(crate) fn advance_generations(&mut self) {
        if let Some(newest) = self.generations.all.last_mut() {
            if newest.stage == Stage::Starting && newest.is_ready() && self.leaving.is_none() {
                newest.stage = Stage::Serving;
                newest.gate.open();
                self.take_over();
            } else if newest.stage == Stage::Starting && newest.is_late() {
                error!("a worker does not begin to serve");
                newest.fail_late();
            }
        }
        let past = &mut self.generations.past;
        let mut failed = false;
        self.generations.all.retain_mut(|generation| {
            let gone = generation.is_gone();
            if gone {
                past.add(generation);
                failed |= generation.stage == Stage::Failed;
                debug!("generation {} has ended", generation.number);
            }
            !gone
        });
        if failed && self.leaving.is_none() {
            self.on_failed_generation();
        }
    }

    fn on_failed_generation(&mut self) {
        self.postpone_certificate();
        self.postpone_roots();
        if self.generations.all.is_empty() {
            self.return_to_former_program();
            self.failed = true;
            if !self.upgrades.former.is_empty() {
                self.leave(Signal::Interrupt);
            }
            return;
        }
        let why = "the new configuration cannot be served";
        self.generations.reloads.fail(why);
        let why = format!("{why}; the old one stays in use");
        error!("{why}");
        self.manager.reloaded(&why);
    }

    /// The newest generation serves, so the former ones retire.
    fn take_over(&mut self) {
        let addresses = self.sockets.addresses();
        let Some((newest, former)) = self.generations.all.split_last_mut() else { return };
        self.generations.reloads.loaded();
        if newest.number > 1 {
            diagnostics::set_level(newest.settings.log_level);
        }
        if newest.number == 1 {
            let accounts = self.children.accounts.as_ref();
            announce::announce(&announce::StartFacts {
                settings: &newest.settings,
                config: &newest.config,
                addresses: &addresses,
                accounts: accounts.map(|accounts| (&accounts.url, accounts.child.user())),
                user: self.user.as_ref(),
                signing: newest.signing.as_ref().map(|signing| signing.child.user()),
                control: self.control.as_ref().map(ControlSocket::path),
                null: self.serve.null,
                qr: self.serve.qr,
                files_limited: landlock::is_available(),
            });
        } else if !self.upgrades.finish() {
            self.generations.reloads.succeed();
            if let Err(why) = self.sockets.pace(newest.settings.max_rate) {
                error!("{why}");
            }
            info!("serving with the new configuration (generation {}); the old workers drain", newest.number);
        }
        former.iter_mut().for_each(Generation::retire);
        self.upgrades.former.iter().for_each(|former| former.signal(Signal::Retire));
        self.log.check_archive();
        let plan = &newest.config.plan;
        let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        let workers = announce::workers(plan.workers);
        let status = format!("serving {} with engine {}, {workers}", addresses.join(" "), plan.engine);
        match newest.number {
            1 => self.manager.ready(&status),
            number => self.manager.reloaded(&format!("{status}, generation {number}")),
        }
        self.follow_certificates();
    }
}
