//! The way out for a program that cannot serve after an upgrade. It returns to the former program. A program that came
//! back has none: it starts itself again after a pause, and the former workers serve meanwhile.

use std::mem;
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use tenfold_sys::process;
use tenfold_sys::signal::{Signal, Signals};
use tenfold_sys::socket::Listener;
use tenfold_sys::wait;

use super::end_bound::STOP;
use super::handover::{FormerWorkers, Handover};
use super::notify::ServiceManager;
use crate::config::parse::given::GivenSettings;
use crate::diagnostics::{error, info, warning};

/// The pause before another attempt.
const PAUSE: Duration = Duration::from_secs(2);
/// The bound of a drain if the configuration cannot be read.
const DRAIN: Duration = Duration::from_secs(30);
/// The path of the running program, which outlives the removal of its file.
const OWN: &str = "/proc/self/exe";

impl Handover {
    /// Executes the former program, or after a pause this one again. Returns when a signal has ended the server.
    pub(super) fn give_way(mut self, why: &str, given: &GivenSettings) {
        if self.has_former_program() {
            let error = self.go_back(why);
            error!("cannot return to the former program: {error}");
        }
        loop {
            error!(
                "the server cannot start workers; the former ones go on, and the next attempt is in {PAUSE:?}"
            );
            let signals = match Signals::new() {
                Ok(signals) => signals,
                Err(error) => {
                    warning!("cannot receive signals: {error}");
                    thread::sleep(PAUSE);
                    continue;
                }
            };
            if let Some(signal) = self.pause(&signals) {
                let settings = given.resolve().ok();
                let drain_timeout = settings.map_or(DRAIN, |settings| settings.drain_timeout);
                return self.leave(&signals, signal, drain_timeout);
            }
            let error = self.execute(Path::new(OWN));
            error!("cannot start again: {error}");
        }
    }

    /// Waits until it is time for another attempt; HUP shortens the pause. Returns a signal that ends the server.
    fn pause(&mut self, signals: &Signals) -> Option<Signal> {
        ServiceManager::from_environment().beat();
        let by = Instant::now() + PAUSE;
        while Instant::now() < by {
            match self.wait(signals, Some(by)) {
                Some(signal @ (Signal::Interrupt | Signal::Terminate | Signal::Quit)) => return Some(signal),
                Some(Signal::HangUp) => return None,
                Some(Signal::Reopen) => self.tell(Signal::Reopen),
                // An upgrade that is asked for now would have to wait for workers of this program.
                Some(Signal::Retire | Signal::Child | Signal::Kill) | None => {}
            }
        }
        None
    }

    /// Ends the former workers as `signal` asks, and removes the files of sockets.
    fn leave(mut self, signals: &Signals, signal: Signal, drain_timeout: Duration) {
        info!("draining: the former workers finish");
        ServiceManager::from_environment().stopping("the former workers finish");
        let sockets: Vec<_> = self.sockets().filter_map(|socket| self.listener(socket).ok()).collect();
        let mut by = None;
        match signal {
            Signal::Interrupt => self.stop(&mut by),
            _ => {
                self.tell(Signal::Quit);
                by = (signal == Signal::Terminate).then(|| Instant::now() + drain_timeout);
            }
        }
        if !self.state.passed {
            sockets.iter().for_each(Listener::shut_down);
        }
        let (mut is_draining, mut is_bounded) = (signal != Signal::Interrupt, by.is_some());
        while !self.are_gone() {
            let heard = self.wait(signals, by);
            let is_due = by.is_some_and(|by| by <= Instant::now());
            let faster = match heard {
                Some(Signal::Interrupt) => true,
                Some(Signal::Terminate) if is_bounded => true,
                Some(Signal::Terminate) => {
                    (by, is_bounded) = (Some(Instant::now() + drain_timeout), true);
                    false
                }
                _ => false,
            };
            if is_draining && (is_due || faster) {
                self.stop(&mut by);
                is_draining = false;
            } else if !is_draining && is_due {
                self.tell(Signal::Kill);
                by = None;
            }
        }
        sockets.iter().for_each(Listener::remove_file);
        // As at the end of the supervisor, the end of the process closes them.
        mem::forget((sockets, self));
    }

    fn stop(&self, by: &mut Option<Instant>) {
        self.tell(Signal::Interrupt);
        *by = Some(Instant::now() + STOP);
    }

    /// Waits for a signal, until `by` at the latest, and notes the ends of processes.
    fn wait(&mut self, signals: &Signals, by: Option<Instant>) -> Option<Signal> {
        let limit = by.map(|by| by.saturating_duration_since(Instant::now()) + Duration::from_millis(1));
        // The signals themselves are read whatever this reports.
        let _ = wait::for_input(&[signals.as_fd()], limit);
        let signal = signals.next();
        while let Ok(Some((pid, _))) = process::reap() {
            self.state.former.iter_mut().for_each(|former| former.lost(pid));
        }
        signal
    }

    fn are_gone(&mut self) -> bool {
        self.state.former.retain_mut(|former| !former.are_gone());
        self.state.former.is_empty()
    }

    fn tell(&self, signal: Signal) {
        self.state.former.iter().for_each(|former: &FormerWorkers| former.tell(signal));
    }
}
