//! A hashed timing wheel (Varghese and Lauck, 1987, scheme 6): one ring of buckets, one for each tick. A timer is in
//! the bucket of its tick; expiry skips timers that are more than one revolution away.
//!
//! Arming and disarming take constant time. The time of expiry grows with the number of expired timers.

use tenfold_http::Instant;

use super::chunks::Chunks;
use super::interface::{NONE, TICK, Timer};
use super::steps::StepCount;

/// Buckets; a power of two. A turn of the wheel is about 65 s.
const BUCKETS: usize = 2048;

pub(super) struct Wheel {
    heads: Box<[u32; BUCKETS]>,
    entries: Chunks<WheelEntry>,
    /// All earlier ticks have been checked.
    at: u64,
    /// No timer fires before this tick.
    earliest: u64,
    armed: usize,
    steps: StepCount,
}

#[derive(Clone, Copy)]
struct WheelEntry {
    next: u32,
    previous: u32,
    /// The low half of the tick at which it fires; [`NONE`] if it is not armed.
    tick: u32,
}

pub(super) const ENTRY_BYTES: usize = size_of::<WheelEntry>();

impl Wheel {
    pub(super) fn new(now: Instant) -> Wheel {
        Wheel {
            heads: Box::new([NONE; BUCKETS]),
            entries: Chunks::new(WheelEntry { next: NONE, previous: NONE, tick: NONE }),
            at: now.0 / TICK,
            earliest: u64::MAX,
            armed: 0,
            steps: StepCount::default(),
        }
    }

    /// The next tick with a timer in its bucket. The timer may belong to a later turn of the wheel, which costs one
    /// extra check.
    fn find_earliest(&mut self) -> u64 {
        if self.armed == 0 {
            return u64::MAX;
        }
        for ahead in 0..BUCKETS as u64 {
            self.steps.take();
            if self.heads[(self.at + ahead) as usize % BUCKETS] != NONE {
                return self.at + ahead;
            }
        }
        u64::MAX
    }
}

impl Timer for Wheel {
    fn arm(&mut self, index: u32, at: Instant) {
        self.disarm(index);
        self.entries.reach(index);
        self.steps.take();
        let mut tick = at.0.div_ceil(TICK).max(self.at);
        if tick as u32 == NONE {
            // This value means "not armed", so the timer fires one tick late.
            tick += 1;
        }
        let bucket = tick as usize % BUCKETS;
        let head = self.heads[bucket];
        *self.entries.at(index) = WheelEntry { next: head, previous: NONE, tick: tick as u32 };
        if head != NONE {
            self.entries.at(head).previous = index;
        }
        self.heads[bucket] = index;
        self.earliest = self.earliest.min(tick);
        self.armed += 1;
    }

    fn disarm(&mut self, index: u32) {
        if !self.entries.has(index) {
            return;
        }
        let WheelEntry { next, previous, tick } = *self.entries.at(index);
        if tick == NONE {
            return;
        }
        self.steps.take();
        match previous {
            NONE => self.heads[tick as usize % BUCKETS] = next,
            _ => self.entries.at(previous).next = next,
        }
        if next != NONE {
            self.entries.at(next).previous = previous;
        }
        self.entries.at(index).tick = NONE;
        self.armed -= 1;
    }

    fn next(&self) -> Option<Instant> {
        (self.armed > 0).then(|| Instant(self.earliest.max(self.at) * TICK))
    }

    fn expire(&mut self, now: Instant, due: &mut Vec<u32>) {
        let last = now.0 / TICK;
        if self.armed == 0 {
            (self.at, self.earliest) = (self.at.max(last + 1), u64::MAX);
            return;
        }
        if last < self.earliest.max(self.at) {
            return;
        }
        // After a long sleep one turn of the wheel sees every bucket.
        let from = self.at.max(self.earliest).max((last + 1).saturating_sub(BUCKETS as u64));
        for tick in from..=last {
            self.steps.take();
            let mut index = self.heads[tick as usize % BUCKETS];
            while index != NONE {
                self.steps.take();
                let WheelEntry { next, tick: fires, .. } = *self.entries.at(index);
                if (last as u32).wrapping_sub(fires) as i32 >= 0 {
                    self.disarm(index);
                    due.push(index);
                }
                index = next;
            }
        }
        self.at = last + 1;
        self.earliest = self.find_earliest();
    }

    #[cfg(test)]
    fn steps(&self) -> u64 {
        self.steps.count()
    }
}
