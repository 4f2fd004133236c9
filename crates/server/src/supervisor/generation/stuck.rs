//! Stuck loops: the supervisor kills and replaces their processes.

use std::time::Instant;

use tenfold_sys::process::{self, WaitStatus};
use tenfold_sys::signal::Signal;

use crate::diagnostics::warning;
use crate::status::counters;
use crate::supervisor::generation::end_bound::STOP;
use crate::supervisor::generation::pulses::STUCK;
use crate::supervisor::generation::{Generation, Stage};
use crate::supervisor::state::Supervisor;

impl Generation {
    /// Kills processes with a stuck loop.
    fn check_loops(&mut self, now: Instant) {
        let words = (0..self.rows.rows()).map(|row| counters::last_turn(self.rows.row(row)));
        self.pulses.look(words, now);
        for place in 0..self.workers.len() {
            let is_stuck = self.rows_of(place).any(|row| self.pulses.is_stuck(row, now));
            let worker = &mut self.workers[place];
            match (worker.pid, worker.killed) {
                (Some(pid), None) if is_stuck => {
                    warning!(
                        "worker {} (process {pid}) is stuck: its loop has not turned for {STUCK:?}; it is killed",
                        place + 1
                    );
                    process::send_signal(pid, Signal::Kill);
                    worker.killed = Some(now);
                    worker.stuck += 1;
                }
                // A process in a call to a dead device does not end, and does not return to its program either.
                (Some(_), Some(killed)) if now.saturating_duration_since(killed) >= STOP => {
                    self.on_exit(place, WaitStatus::Killed(9), false);
                }
                _ => {}
            }
        }
    }

    /// The number of processes that were killed because of a stuck loop.
    pub(crate) fn stuck(&self) -> u64 {
        self.workers.iter().map(|worker| worker.stuck).sum()
    }
}

impl Supervisor {
    /// The time of the next check of loops, if there are any.
    pub(crate) fn next_loop_check(&self) -> Option<Instant> {
        self.watched().map(|generation| generation.pulses.next_look()).min()
    }

    fn watched(&self) -> impl Iterator<Item = &Generation> {
        let is_watched = |generation: &&Generation| {
            !generation.config.plan.blocking() && generation.stage != Stage::Failed
        };
        self.generations.all.iter().filter(is_watched)
    }

    /// Checks all loops if that is due.
    pub(crate) fn check_loops(&mut self) {
        let now = Instant::now();
        if self.next_loop_check().is_some_and(|by| by <= now) {
            let generations = self.generations.all.iter_mut().filter(|one| !one.config.plan.blocking());
            generations.for_each(|generation| generation.check_loops(now));
        }
    }
}
