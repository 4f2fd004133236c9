//! The end of the server: QUIT finishes everything, TERM within a bound, INT nothing.

use std::time::{Duration, Instant};

use tenfold_sys::signal::Signal;

use super::end_bound::STOP;
use super::generation::Generation;
use super::state::{Leaving, Supervisor};
use crate::diagnostics::{info, warning};

/// The time in which workers must stop accepting before the listening sockets are shut down.
const TURN_AWAY: Duration = Duration::from_millis(100);

impl Supervisor {
    /// Begins to leave according to `signal`, or leaves faster.
    pub(super) fn leave(&mut self, signal: Signal) {
        let bound = self.generations.last().map_or(Duration::ZERO, |newest| newest.settings.drain_timeout);
        match (&self.leaving, signal) {
            (None, Signal::Quit) => self.drain(None),
            (None | Some(Leaving::Draining { by: None }), Signal::Terminate) => self.drain(Some(bound)),
            (Some(Leaving::Draining { .. }), Signal::Quit) => {}
            (None | Some(Leaving::Draining { .. }), _) => self.stop(),
            (Some(Leaving::Stopping { .. } | Leaving::Killed), _) => {}
        }
    }

    fn drain(&mut self, bound: Option<Duration>) {
        match bound {
            Some(bound) => info!("draining: running responses finish, in {bound:?} at the latest"),
            None => info!("draining: running responses finish"),
        }
        self.manager.stopping("running responses finish");
        self.turn_away();
        self.leaving = Some(Leaving::Draining { by: bound.map(|bound| Instant::now() + bound) });
    }

    fn stop(&mut self) {
        info!("stopping at once");
        self.manager.stopping("workers stop immediately");
        self.turn_away();
        self.tell_all(Signal::Interrupt);
        self.leaving = Some(Leaving::Stopping { by: Instant::now() + STOP });
    }

    /// Makes workers stop accepting; the sockets are shut down soon after.
    fn turn_away(&mut self) {
        self.generations.iter_mut().for_each(Generation::drain);
        self.signal_former(Signal::Quit);
        if self.leaving.is_none() {
            self.sockets_end = Some(Instant::now() + TURN_AWAY);
        }
    }

    /// Takes the next step of leaving when it is due.
    pub(super) fn press_on(&mut self) {
        if self.sockets_end.take_if(|end| *end <= Instant::now()).is_some() {
            self.sockets.shut_down();
        }
        let due = self.leaving.as_ref().and_then(Leaving::by).is_some_and(|by| by <= Instant::now());
        match &self.leaving {
            Some(Leaving::Draining { .. }) if due => {
                warning!("running responses are cut off: their time (drain-timeout) is over");
                self.stop();
            }
            Some(Leaving::Stopping { .. }) if due => {
                warning!("a worker does not stop and is killed");
                self.tell_all(Signal::Kill);
                self.leaving = Some(Leaving::Killed);
            }
            _ => {}
        }
    }

    fn tell_all(&self, signal: Signal) {
        self.generations.iter().for_each(|generation| generation.tell(signal));
        self.signal_former(signal);
    }
}
