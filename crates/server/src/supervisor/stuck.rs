//! Loops that do not turn: the supervisor kills their processes, and others take their places.

use std::time::Instant;

use tenfold_sys::process::{self, WaitStatus};
use tenfold_sys::signal::Signal;

use super::end_bound::STOP;
use super::generation::{Generation, Stage};
use super::pulses::STUCK;
use super::state::Supervisor;
use crate::diagnostics::warning;
use crate::status::counters;

impl Generation {
    /// Looks at its loops, and kills processes that are stuck.
    fn look_at_loops(&mut self, now: Instant) {
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
                // A call of a device that does not answer cannot be interrupted. It never returns to the program.
                (Some(_), Some(killed)) if now.saturating_duration_since(killed) >= STOP => {
                    self.lost(place, WaitStatus::Killed(9), false);
                }
                _ => {}
            }
        }
    }

    /// Processes that were killed because a loop had not turned.
    pub(super) fn stuck(&self) -> u64 {
        self.workers.iter().map(|worker| worker.stuck).sum()
    }
}

impl Supervisor {
    /// The time of the next look at loops, if there are any.
    pub(super) fn next_look_at_loops(&self) -> Option<Instant> {
        self.watched().map(|generation| generation.pulses.next_look()).min()
    }

    fn watched(&self) -> impl Iterator<Item = &Generation> {
        let is_watched = |generation: &&Generation| {
            !generation.config.plan.blocking() && generation.stage != Stage::Failed
        };
        self.generations.iter().filter(is_watched)
    }

    /// Looks at all loops if it is time to.
    pub(super) fn look_at_loops(&mut self) {
        let now = Instant::now();
        if self.next_look_at_loops().is_some_and(|by| by <= now) {
            let generations = self.generations.iter_mut().filter(|one| !one.config.plan.blocking());
            generations.for_each(|generation| generation.look_at_loops(now));
        }
    }
}
