//! The end of the server: QUIT finishes all responses, TERM finishes them within a bound, INT finishes none.

use std::time::{Duration, Instant};

use tenfold_sys::signal::Signal;

use crate::diagnostics::{info, warning};
use crate::supervisor::generation::Generation;
use crate::supervisor::generation::end_bound::STOP;
use crate::supervisor::state::{Leaving, Supervisor};

/// The time in which workers must stop accepting before the listening sockets are shut down.
const TURN_AWAY: Duration = Duration::from_millis(100);

impl Supervisor {
    /// Begins to leave, or leaves faster, as `signal` requests.
    pub(crate) fn leave(&mut self, signal: Signal) {
        let bound =
            self.generations.all.last().map_or(Duration::ZERO, |newest| newest.settings.drain_timeout);
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
        self.signal_all(Signal::Interrupt);
        self.leaving = Some(Leaving::Stopping { by: Instant::now() + STOP });
    }

    /// Makes workers stop accepting, and plans the shutdown of the sockets.
    fn turn_away(&mut self) {
        self.generations.all.iter_mut().for_each(Generation::drain);
        self.signal_former(Signal::Quit);
        if self.leaving.is_none() {
            self.sockets.end = Some(Instant::now() + TURN_AWAY);
        }
    }

    /// Takes the next step of leaving when it is due.
    pub(crate) fn advance_leave(&mut self) {
        if self.sockets.end.take_if(|end| *end <= Instant::now()).is_some() {
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
                self.signal_all(Signal::Kill);
                self.leaving = Some(Leaving::Killed);
            }
            _ => {}
        }
    }

    /// Sends a signal to the workers of former programs.
    pub(crate) fn signal_former(&self, signal: Signal) {
        self.upgrades.former.iter().for_each(|former| former.signal(signal));
    }

    fn signal_all(&self, signal: Signal) {
        self.generations.all.iter().for_each(|generation| generation.signal(signal));
        self.signal_former(signal);
    }
}
