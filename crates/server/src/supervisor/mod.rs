//! The supervisor: one thread that owns every listening socket and the counters, forks the workers, and
//! does what signals say. It reads nothing from the network.
//!
//! [`open`] begins and opens everything, [`sockets`] binds, [`generation`] is a configuration with its
//! workers, [`child`] is what a worker does, [`reload`] takes up a new configuration, [`leave`] ends,
//! [`rotate`] gives the log new files, [`control`] answers `tenfold status`.

mod accounts;
mod child;
mod control;
mod generation;
mod lanes;
mod leave;
mod open;
pub(crate) mod privileges;
mod reload;
mod rotate;
mod sockets;

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tenfold_sys::process::{self, End, Fork, Pid};
use tenfold_sys::signal::{Signal, Signals};
use tenfold_sys::socket::ListenAddress;
use tenfold_sys::user::User;

use crate::cli::Serve;
use crate::counters::Sums;
use crate::diagnostics::{self, debug, error, info, warning};
use crate::sandbox;
use crate::startup;
use accounts::Accounts;
use control::ControlSocket;
use generation::{Generation, Stage};
use lanes::Lanes;
use leave::Leaving;
pub(crate) use open::serve;
use rotate::Rotation;
use sockets::Sockets;

/// Before a wait, or an accept on the control socket, that failed for want of memory or descriptors is tried again:
/// what waits would be reported at once.
const PAUSE: Duration = Duration::from_millis(50);
/// How often a worker that is about to begin is looked at.
const STARTING_TICK: Duration = Duration::from_millis(5);

/// Everything the supervisor has.
pub(crate) struct Supervisor {
    serve: Serve,
    /// The process of the accounts, where there are members.
    accounts: Option<Accounts>,
    sockets: Sockets,
    addresses: Vec<ListenAddress>,
    user: Option<User>,
    descriptors: u64,
    /// None in a worker only.
    signals: Option<Signals>,
    control: Option<ControlSocket>,
    began: Instant,
    /// The former ones first; the last is the one that serves, or is about to.
    generations: Vec<Generation>,
    /// How many there were.
    count: u32,
    lanes: Lanes,
    /// What generations counted that are gone.
    past: Sums,
    leaving: Option<Leaving>,
    /// When the listening sockets end.
    sockets_end: Option<Instant>,
    reload_asked: bool,
    rotation: Rotation,
    failed: bool,
}

impl Supervisor {
    fn run(mut self) -> ExitCode {
        self.fork_missing();
        while !(self.generations.is_empty() && (self.leaving.is_some() || self.failed)) {
            self.wait();
            while let Some(signal) = self.signals.as_ref().and_then(Signals::next) {
                self.hear(signal);
            }
            self.reap();
            self.settle_generations();
            self.press_on();
            if std::mem::take(&mut self.reload_asked) {
                self.reload();
            }
            self.look_after_accounts();
            self.fork_missing();
            self.rotate();
            self.answer_control();
        }
        self.end_accounts();
        self.sockets.remove_files();
        if let Some(control) = &self.control {
            control.remove();
        }
        match self.failed {
            true => ExitCode::FAILURE,
            false => {
                info!("left");
                ExitCode::SUCCESS
            }
        }
    }

    /// Waits for a signal, somebody who asks for the status, or the time to do something.
    fn wait(&self) {
        let signals = self.signals.as_ref().expect("only a worker is without");
        let mut waited_for = vec![PollFd::new(signals, PollFlags::IN)];
        waited_for.extend(self.control.as_ref().map(|control| PollFd::new(control, PollFlags::IN)));
        let timeout = self.next_deadline().map(|by| {
            // A little late rather than a little early, which would go round once more for nothing.
            let left = by.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
            Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 })
        });
        // Whatever it says, everything is looked at afterwards.
        match poll(&mut waited_for, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => {
                debug!("can not wait for events: {error}");
                thread::sleep(PAUSE);
            }
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let starting = self.generations.iter().any(|generation| generation.stage == Stage::Starting);
        let tick = starting.then(|| Instant::now() + STARTING_TICK);
        let again = self.generations.iter().flat_map(Generation::again).min();
        let leave = self.leaving.as_ref().and_then(Leaving::by);
        [tick, again, self.accounts_by(), leave, self.sockets_end, self.rotation_by()]
            .into_iter()
            .flatten()
            .min()
    }

    fn hear(&mut self, signal: Signal) {
        debug!("heard {signal:?}");
        match signal {
            Signal::Interrupt | Signal::Terminate | Signal::Quit => self.leave(signal),
            Signal::HangUp => self.reload_asked = true,
            Signal::Reopen => self.reopen(),
            Signal::Child | Signal::Kill => {}
        }
    }

    fn reopen(&mut self) {
        for generation in &mut self.generations {
            match generation.log.reopen(self.user.as_ref()) {
                Ok(()) => generation.tell(Signal::Reopen),
                Err(why) => error!("{why}; the old file is written on"),
            }
        }
    }

    fn reap(&mut self) {
        loop {
            match process::reap() {
                Ok(Some((pid, end))) => self.mourn(pid, end),
                Ok(None) => return,
                Err(error) => return warning!("can not wait for workers: {error}"),
            }
        }
    }

    fn mourn(&mut self, pid: Pid, end: End) {
        if self.mourn_accounts(pid, end) {
            return;
        }
        let expected = self.leaving.is_some();
        let owner = self.generations.iter_mut().find_map(|generation| {
            let place = generation.place_of(pid)?;
            Some((generation, place))
        });
        let Some((generation, place)) = owner else { return };
        generation.lost(place, end, expected);
    }

    /// Starts what has no process and is to have one now.
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
                // What is the supervisor's alone goes; the memory of the others goes with the process.
                self.signals = None;
                self.control = None;
                let generation = self.generations.swap_remove(index);
                self.generations.clear();
                let listeners = self.sockets.take(place);
                // The end where questions arrive is not for those who ask.
                let door = match self.accounts.take().map(|accounts| accounts.door()).transpose() {
                    Ok(door) => door.flatten(),
                    Err(error) => {
                        error!("worker {}: there is no way to the accounts: {error}", place + 1);
                        std::process::exit(child::CAN_NOT_SERVE);
                    }
                };
                let work = child::Work { place, supervisor, generation, listeners, door };
                child::run_and_exit(work, self.user.as_ref(), &self.serve);
            }
            Err(error) => {
                error!("can not fork a worker: {error}");
                self.generations[index].not_begun(place);
            }
        }
    }

    /// Moves generations on: from starting to serving, and out when their workers are gone.
    fn settle_generations(&mut self) {
        if let Some(newest) = self.generations.last_mut() {
            if newest.stage == Stage::Starting && newest.is_ready() && self.leaving.is_none() {
                newest.stage = Stage::Serving;
                self.took_over();
            } else if newest.stage == Stage::Starting && newest.is_late() {
                error!("a worker does not begin to serve");
                newest.fail();
            }
        }
        let past = &mut self.past;
        let mut failed = false;
        self.generations.retain(|generation| {
            let gone = generation.is_gone();
            if gone {
                past.add_sums(&generation.sums_without_connections());
                failed |= generation.stage == Stage::Failed;
                debug!("generation {} is gone", generation.number);
            }
            !gone
        });
        if failed && self.leaving.is_none() {
            match self.generations.is_empty() {
                true => self.failed = true,
                false => error!("the new configuration can not be served; the old one goes on"),
            }
        }
    }

    /// The newest generation serves: those before it leave.
    fn took_over(&mut self) {
        let Some((newest, former)) = self.generations.split_last_mut() else { return };
        if newest.number == 1 {
            startup::announce(&startup::Facts {
                settings: &newest.settings,
                blueprint: &newest.blueprint,
                addresses: &self.addresses,
                accounts: self.accounts.as_ref().map(|accounts| (&accounts.url, accounts.user.as_ref())),
                user: self.user.as_ref(),
                control: self.control.as_ref().map(ControlSocket::path),
                null: self.serve.null,
                files_limited: sandbox::are_limited(),
            });
        } else {
            diagnostics::set_level(newest.settings.log_level);
            if let Err(why) = self.sockets.pace(newest.settings.max_rate) {
                error!("{why}");
            }
            info!("serving with the new configuration (generation {}); the old workers drain", newest.number);
        }
        former.iter_mut().for_each(Generation::drain);
    }
}
