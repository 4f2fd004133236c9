//! Hierarchical timing wheels (Varghese and Lauck, 1987, scheme 7): levels of 64 buckets, and a bucket of
//! each level is a turn of the one below.
//!
//! A timer belongs to the level of the highest base-64 digit in which its tick differs from the present one.
//! When time reaches its bucket, the timer moves to a lower level. It moves at most once per level; most timers
//! are disarmed earlier and never move. One word of bits per level marks the buckets in use, so expiry needs no
//! search.

use tenfold_http::Instant;

use super::chunks::Chunks;
use super::interface::{NONE, TICK, Timer};
use super::steps::StepCount;

/// Bits of a tick that choose a bucket of a level.
const BITS: u32 = 6;
const BUCKETS: usize = 1 << BITS;
/// Enough for every tick that a clock of milliseconds can show.
const LEVELS: usize = (u64::BITS - TICK.ilog2()).div_ceil(BITS) as usize;

pub(super) struct Hierarchical {
    heads: Box<[[u32; BUCKETS]; LEVELS]>,
    /// One bit per bucket of each level: whether the bucket holds a timer.
    occupied: [u64; LEVELS],
    entries: Chunks<BucketEntry>,
    /// Every tick up to this one has been looked at.
    past: u64,
    steps: StepCount,
}

#[derive(Clone, Copy)]
struct BucketEntry {
    next: u32,
    previous: u32,
    /// The tick at which it fires; [`UNARMED`] where it is not armed.
    tick: u64,
}

pub(super) const ENTRY_BYTES: usize = size_of::<BucketEntry>();
const UNARMED: u64 = u64::MAX;

impl Hierarchical {
    pub(super) fn new(now: Instant) -> Hierarchical {
        Hierarchical {
            heads: Box::new([[NONE; BUCKETS]; LEVELS]),
            occupied: [0; LEVELS],
            entries: Chunks::new(BucketEntry { next: NONE, previous: NONE, tick: UNARMED }),
            past: (now.0 / TICK).saturating_sub(1),
            steps: StepCount::default(),
        }
    }

    /// Returns the bucket of a future tick. It stays correct until the hand reaches that bucket: before that, the
    /// tick and the hand differ in no higher digit.
    fn bucket_of(&self, tick: u64) -> (usize, usize) {
        let level = (self.past ^ tick).ilog2() / BITS;
        (level as usize, (tick >> (level * BITS)) as usize % BUCKETS)
    }

    fn link(&mut self, index: u32, tick: u64) {
        self.steps.take();
        let (level, bucket) = self.bucket_of(tick);
        let next = std::mem::replace(&mut self.heads[level][bucket], index);
        if next != NONE {
            self.entries.at(next).previous = index;
        }
        *self.entries.at(index) = BucketEntry { next, previous: NONE, tick };
        self.occupied[level] |= 1 << bucket;
    }

    /// The bucket that the hand comes to next, and the first of its ticks. The lowest level that holds
    /// anything has it: all above begin after its turn.
    fn next_bucket(&self) -> Option<(usize, usize, u64)> {
        let level = self.occupied.iter().position(|bits| *bits != 0)?;
        let bucket = self.occupied[level].trailing_zeros();
        let shift = level as u32 * BITS;
        let turn = self.past >> (shift + BITS) << (shift + BITS);
        Some((level, bucket as usize, turn | u64::from(bucket) << shift))
    }
}

impl Timer for Hierarchical {
    fn arm(&mut self, index: u32, at: Instant) {
        self.disarm(index);
        self.entries.reach(index);
        self.link(index, at.0.div_ceil(TICK).max(self.past + 1));
    }

    fn disarm(&mut self, index: u32) {
        if !self.entries.has(index) {
            return;
        }
        let BucketEntry { next, previous, tick } = *self.entries.at(index);
        if tick == UNARMED {
            return;
        }
        self.steps.take();
        if next != NONE {
            self.entries.at(next).previous = previous;
        }
        if previous != NONE {
            self.entries.at(previous).next = next;
        } else {
            let (level, bucket) = self.bucket_of(tick);
            self.heads[level][bucket] = next;
            if next == NONE {
                self.occupied[level] &= !(1 << bucket);
            }
        }
        self.entries.at(index).tick = UNARMED;
    }

    fn next(&self) -> Option<Instant> {
        self.next_bucket().map(|(_, _, tick)| Instant(tick.saturating_mul(TICK)))
    }

    fn expire(&mut self, now: Instant, due: &mut Vec<u32>) {
        let last = now.0 / TICK;
        while let Some((level, bucket, tick)) = self.next_bucket().filter(|(_, _, tick)| *tick <= last) {
            self.steps.take();
            self.occupied[level] &= !(1 << bucket);
            let mut index = std::mem::replace(&mut self.heads[level][bucket], NONE);
            // Its first tick is the present: what stays goes to a level below.
            self.past = tick;
            while index != NONE {
                let BucketEntry { next, tick: fires, .. } = *self.entries.at(index);
                if fires <= last {
                    self.steps.take();
                    self.entries.at(index).tick = UNARMED;
                    due.push(index);
                } else {
                    self.link(index, fires);
                }
                index = next;
            }
        }
        self.past = self.past.max(last);
    }

    #[cfg(test)]
    fn steps(&self) -> u64 {
        self.steps.count()
    }
}
