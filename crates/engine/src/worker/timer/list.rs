//! A list in the order of deadlines. The next timer to fire is first, and expiry takes timers from the front.
//!
//! Insertion starts at the end and passes each timer that fires later. If all timers have the same timeout, each new
//! deadline is the latest and needs no step. With several timeouts, the number of steps is the number of later timers.

use tenfold_http::Instant;

use super::chunks::Chunks;
use super::interface::{NONE, Timer};
use super::steps::StepCount;

pub(super) struct List {
    first: u32,
    last: u32,
    entries: Chunks<ListEntry>,
    steps: StepCount,
}

#[derive(Clone, Copy)]
struct ListEntry {
    next: u32,
    previous: u32,
    /// The time at which it fires; [`Instant::NEVER`] if it is not armed.
    at: Instant,
}

pub(super) const ENTRY_BYTES: usize = size_of::<ListEntry>();

impl List {
    pub(super) fn new() -> List {
        let blank = ListEntry { next: NONE, previous: NONE, at: Instant::NEVER };
        List { first: NONE, last: NONE, entries: Chunks::new(blank), steps: StepCount::default() }
    }

    /// Takes an armed entry out of the list.
    fn unlink(&mut self, index: u32) {
        self.steps.take();
        let ListEntry { next, previous, .. } = *self.entries.at(index);
        match previous {
            NONE => self.first = next,
            _ => self.entries.at(previous).next = next,
        }
        match next {
            NONE => self.last = previous,
            _ => self.entries.at(next).previous = previous,
        }
        self.entries.at(index).at = Instant::NEVER;
    }

    /// Inserts an entry after `previous`, or at the front without one.
    fn link(&mut self, index: u32, previous: u32, at: Instant) {
        let next = match previous {
            NONE => std::mem::replace(&mut self.first, index),
            _ => std::mem::replace(&mut self.entries.at(previous).next, index),
        };
        match next {
            NONE => self.last = index,
            _ => self.entries.at(next).previous = index,
        }
        *self.entries.at(index) = ListEntry { next, previous, at };
    }
}

impl Timer for List {
    fn arm(&mut self, index: u32, at: Instant) {
        self.disarm(index);
        self.entries.reach(index);
        let mut previous = self.last;
        while previous != NONE && self.entries.at(previous).at > at {
            self.steps.take();
            previous = self.entries.at(previous).previous;
        }
        self.link(index, previous, at);
    }

    fn disarm(&mut self, index: u32) {
        if self.entries.has(index) && self.entries.at(index).at != Instant::NEVER {
            self.unlink(index);
        }
    }

    fn next(&self) -> Option<Instant> {
        (self.first != NONE).then(|| self.entries.get(self.first).at)
    }

    fn expire(&mut self, now: Instant, due: &mut Vec<u32>) {
        while self.first != NONE && self.entries.at(self.first).at <= now {
            let index = self.first;
            self.unlink(index);
            due.push(index);
        }
    }

    #[cfg(test)]
    fn steps(&self) -> u64 {
        self.steps.count()
    }
}
