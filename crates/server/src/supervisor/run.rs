//! The loop of the supervisor.

use std::io::ErrorKind;
use std::mem;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use tenfold_sys::process::{self, Pid, WaitStatus};
use tenfold_sys::signal::{Signal, Signals};
use tenfold_sys::wait;

use super::children::acme::AcmeProcess;
use super::children::admin::AdminProcess;
use super::children::signing::SigningProcess;
use super::generation::tickets::TicketRotation;
use super::generation::{Generation, Stage};
use super::sockets::control::ControlSocket;
use super::state::{Leaving, Supervisor};
use super::upgrade::former::FormerWorkers;
use crate::diagnostics::{self, debug, info, warning};

/// The pause after a failed wait.
const PAUSE: Duration = Duration::from_millis(50);
/// The interval of checks of a starting worker.
const STARTING_TICK: Duration = Duration::from_millis(5);

impl Supervisor {
    pub(crate) fn run(mut self) -> ExitCode {
        self.start_workers();
        while !self.has_ended() {
            self.wait();
            while let Some(signal) = self.signals.as_ref().and_then(Signals::next) {
                self.on_signal(signal);
            }
            self.reap();
            self.advance_generations();
            self.end_oldest();
            self.check_loops();
            self.advance_leave();
            if mem::take(&mut self.generations.reload_asked) {
                self.reload();
            }
            self.advance_upgrade();
            self.advance_roots();
            self.advance_children();
            self.advance_certificates();
            self.start_workers();
            self.advance_log();
            self.tickets.iter_mut().for_each(TicketRotation::rotate);
            self.manager.beat();
            diagnostics::report_lost();
            self.answer();
        }
        self.children.end();
        self.sockets.remove_files();
        self.control.iter().for_each(ControlSocket::remove);
        if self.failed {
            return ExitCode::FAILURE;
        }
        info!("stopped");
        ExitCode::SUCCESS
    }

    fn has_ended(&mut self) -> bool {
        FormerWorkers::remove_ended(&mut self.upgrades.former);
        let no_workers = self.generations.all.is_empty() && self.upgrades.former.is_empty();
        no_workers && (self.leaving.is_some() || self.failed)
    }

    /// Waits for a signal, a client, a helper process, or the next action.
    fn wait(&self) {
        let signals = self.signals.as_ref().expect("only a worker is without");
        let mut waited_for = vec![signals.as_fd()];
        waited_for.extend(self.control.as_ref().map(ControlSocket::as_fd));
        waited_for.extend(self.children.acme.as_ref().and_then(AcmeProcess::news));
        waited_for.extend(self.children.admin.as_ref().and_then(AdminProcess::channel));
        let timeout = self.next_deadline().map(|by| {
            // Rounded up, because an early wake-up would cost another round.
            by.saturating_duration_since(Instant::now()) + Duration::from_millis(1)
        });
        // Each part checks its own state afterwards.
        if let Err(error) = wait::for_input(&waited_for, timeout)
            && error.kind() != ErrorKind::Interrupted
        {
            debug!("cannot wait for events: {error}");
            thread::sleep(PAUSE);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let all = &self.generations.all;
        let starting = all.iter().any(|generation| generation.stage == Stage::Starting);
        let all = [
            starting.then(|| Instant::now() + STARTING_TICK),
            all.iter().flat_map(Generation::again).min(),
            all.iter().filter_map(|generation| generation.signing.as_ref()?.by()).min(),
            self.children.by(),
            self.leaving.as_ref().and_then(Leaving::by),
            self.sockets.end,
            self.ends_by(),
            self.next_loop_check(),
            self.next_root_check(),
            self.upgrades.by(),
            self.log_by(),
            self.tickets.as_ref().map(TicketRotation::by),
            self.manager.by(),
            diagnostics::has_lost().then(|| Instant::now() + diagnostics::RETRY),
        ];
        all.into_iter().flatten().min()
    }

    fn on_signal(&mut self, signal: Signal) {
        debug!("signal {signal:?}");
        match signal {
            Signal::Interrupt | Signal::Terminate | Signal::Quit => self.leave(signal),
            Signal::HangUp => self.generations.reload_asked = true,
            Signal::TerminalLost => {
                info!("the terminal was closed");
                self.leave(Signal::Terminate);
            }
            Signal::Reopen => {
                if self.reopen_log() {
                    info!("the access log was opened again");
                }
            }
            Signal::Retire => self.upgrades.asked = true,
            Signal::Child | Signal::Kill | Signal::Continue => {}
        }
    }

    fn reap(&mut self) {
        loop {
            match process::reap() {
                Ok(Some((pid, end))) => self.on_exit(pid, end),
                Ok(None) => return,
                Err(error) => return warning!("cannot wait for processes: {error}"),
            }
        }
    }

    fn on_exit(&mut self, pid: Pid, end: WaitStatus) {
        let leaves = self.leaving.is_some();
        let is_expected = leaves && end == WaitStatus::Exited(0);
        if self.upgrades.is_check(pid) {
            return self.on_check_exit(end);
        }
        if self.children.on_exit(pid, end, is_expected) {
            return;
        }
        self.upgrades.former.iter_mut().for_each(|former| former.on_exit(pid));
        for generation in &mut self.generations.all {
            if let Some(signing) = generation.signing.as_mut().filter(|signing| signing.child.is(pid)) {
                return SigningProcess::on_exit(signing, end, is_expected);
            }
            if let Some(place) = generation.place_of(pid) {
                return generation.on_exit(place, end, leaves);
            }
        }
    }
}
