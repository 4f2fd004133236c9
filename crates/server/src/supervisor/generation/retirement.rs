//! The bound on former generations. A reload never waits for their connections: past the bound, the oldest generation
//! ends within `drain-timeout`.

use std::time::{Duration, Instant};

use tenfold_sys::limits;
use tenfold_sys::signal::Signal;

use crate::diagnostics::{info, warning};
use crate::supervisor::generation::end_bound::{EndBound, MOST_FORMER, MOST_KEPT};
use crate::supervisor::generation::{Generation, Stage};
use crate::supervisor::state::Supervisor;

impl Supervisor {
    fn retired(&mut self) -> impl Iterator<Item = &mut Generation> {
        let is_retired =
            |generation: &&mut Generation| matches!(generation.stage, Stage::Retiring | Stage::Draining);
        self.generations.all.iter_mut().filter(is_retired)
    }

    /// Whether there is room for another former generation. If not, the oldest stops.
    pub(crate) fn make_room(&mut self) -> bool {
        if self.lacks_locked_memory() && self.drain_oldest() {
            return false;
        }
        if self.upgrades.former.len() + self.retired().count() < MOST_FORMER {
            return true;
        }
        let programs = self.upgrades.former.iter_mut().map(|former| &mut former.ends);
        let generations = self.generations.all.iter_mut().map(|generation| &mut generation.ends);
        let mut ends: Vec<_> = programs.chain(generations).flatten().collect();
        let now = Instant::now();
        // One at a time: its end makes room.
        if !ends.iter().any(|bound| bound.stops(now))
            && let Some(oldest) = ends.first_mut()
        {
            warning!("{MOST_FORMER} former configurations have connections; the oldest stops now");
            oldest.by = now;
        }
        false
    }

    /// Whether the rings of another generation would exceed the locked memory of the user (`ulimit -l`). Rings of former
    /// generations count until their workers end.
    fn lacks_locked_memory(&self) -> bool {
        let Some(plan) = self.generations.all.last().map(|newest| &newest.config.plan) else { return false };
        let each = plan.engine.model().locked_bytes * plan.workers as u64;
        let count = self.upgrades.former.len() + self.generations.all.len() + 1;
        limits::locked_memory().is_some_and(|most| each * count as u64 > most)
    }

    /// Drains the oldest former generation. Returns false if there is none.
    fn drain_oldest(&mut self) -> bool {
        let within =
            self.generations.all.last().map_or(Duration::ZERO, |newest| newest.settings.drain_timeout);
        if let Some(former) = self.upgrades.former.first_mut() {
            if former.ends.is_none() {
                former.signal(Signal::Quit);
                former.ends = Some(EndBound::within(within));
            }
            return true;
        }
        let Some(oldest) = self.retired().next() else { return false };
        if oldest.ends.is_none() {
            oldest.drain();
            oldest.ends = Some(EndBound::within(within));
            info!(
                "a new configuration needs locked memory (ulimit -l); the oldest ends within {within:?} first"
            );
        }
        true
    }

    /// Begins the end of the oldest generations past the bound, and continues it.
    pub(crate) fn end_oldest(&mut self) {
        if self.leaving.is_some() {
            return;
        }
        let Some(within) = self.generations.all.last().map(|newest| newest.settings.drain_timeout) else {
            return;
        };
        let now = Instant::now();
        let mut past = (self.upgrades.former.len() + self.retired().count()).saturating_sub(MOST_KEPT);
        let mut cut = false;
        for former in &mut self.upgrades.former {
            if past > 0 && former.ends.is_none() {
                report(within, None);
                former.signal(Signal::Quit);
                former.ends = Some(EndBound::within(within));
            }
            past = past.saturating_sub(1);
            if let Some(signal) = former.ends.as_mut().and_then(|bound| bound.due(now)) {
                cut |= signal == Signal::Interrupt;
                former.signal(signal);
            }
        }
        for generation in self.retired() {
            if past > 0 && generation.ends.is_none() {
                report(within, Some(generation.number));
                generation.drain();
                generation.ends = Some(EndBound::within(within));
            }
            past = past.saturating_sub(1);
            if let Some(signal) = generation.ends.as_mut().and_then(|bound| bound.due(now)) {
                cut |= signal == Signal::Interrupt;
                generation.signal(signal);
            }
        }
        if cut {
            warning!("responses of a former configuration are cut off: their time (drain-timeout) is over");
        }
    }

    /// The time at which the next signal is due.
    pub(crate) fn ends_by(&self) -> Option<Instant> {
        let programs = self.upgrades.former.iter().filter_map(|former| former.ends);
        let generations = self.generations.all.iter().filter_map(|generation| generation.ends);
        programs.chain(generations).map(|bound| bound.by).min()
    }
}

fn report(within: Duration, number: Option<u32>) {
    let oldest = number.map_or("of a former program".to_owned(), |number| format!("number {number}"));
    info!(
        "more than {MOST_KEPT} former configurations have connections; the oldest ({oldest}) ends within {within:?} \
         (drain-timeout)"
    );
}
