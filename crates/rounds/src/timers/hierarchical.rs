//! Hierarchical timing wheels (Varghese and Lauck, 1987, scheme 7): levels of 64 buckets, and a bucket of
//! each level is a turn of the one below.
//!
//! The level of a timer is that of the highest base-64 digit in which its tick differs from the present one. When time
//! reaches its bucket, the timer moves to a lower level: at most once for each level. One word for each level marks the
//! buckets in use, so expiry needs no search.

use tenfold_engine::timer::{TICK, Timer};
use tenfold_http::Instant;

/// Bits of a tick that choose a bucket of a level.
const BITS: u32 = 6;
const BUCKETS: usize = 1 << BITS;
/// Enough for every tick that a clock of milliseconds can show.
const LEVELS: usize = (u64::BITS - TICK.ilog2()).div_ceil(BITS) as usize;

pub(super) struct Hierarchical {
    heads: Box<[[u32; BUCKETS]; LEVELS]>,
    /// A bit for each bucket of a level: whether it has a timer.
    occupied: [u64; LEVELS],
    entries: Vec<BucketEntry>,
    /// The last tick that was examined.
    past: u64,
}

#[derive(Clone, Copy)]
struct BucketEntry {
    next: u32,
    previous: u32,
    /// The tick of the deadline, or [`UNARMED`].
    tick: u64,
}

const NONE: u32 = u32::MAX;
const UNARMED: u64 = u64::MAX;
const BLANK: BucketEntry = BucketEntry { next: NONE, previous: NONE, tick: UNARMED };

impl Hierarchical {
    pub(super) fn new(now: Instant) -> Hierarchical {
        Hierarchical {
            heads: Box::new([[NONE; BUCKETS]; LEVELS]),
            occupied: [0; LEVELS],
            entries: Vec::new(),
            past: (now.0 / TICK).saturating_sub(1),
        }
    }

    /// The bucket of a future tick. It stays the same until the hand reaches it: the tick and the hand differ in no
    /// higher digit.
    fn bucket_of(&self, tick: u64) -> (usize, usize) {
        let level = (self.past ^ tick).ilog2() / BITS;
        (level as usize, (tick >> (level * BITS)) as usize % BUCKETS)
    }

    fn link(&mut self, index: u32, tick: u64) {
        let (level, bucket) = self.bucket_of(tick);
        let next = std::mem::replace(&mut self.heads[level][bucket], index);
        if next != NONE {
            self.entries[next as usize].previous = index;
        }
        self.entries[index as usize] = BucketEntry { next, previous: NONE, tick };
        self.occupied[level] |= 1 << bucket;
    }

    /// The next bucket with a timer, and its first tick. It is on the lowest level with a timer: higher levels expire
    /// later.
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
        if self.entries.len() <= index as usize {
            self.entries.resize(index as usize + 1, BLANK);
        }
        self.link(index, at.0.div_ceil(TICK).max(self.past + 1));
    }

    fn disarm(&mut self, index: u32) {
        let entry = self.entries.get(index as usize).filter(|entry| entry.tick != UNARMED);
        let Some(&BucketEntry { next, previous, tick }) = entry else { return };
        if next != NONE {
            self.entries[next as usize].previous = previous;
        }
        if previous != NONE {
            self.entries[previous as usize].next = next;
        } else {
            let (level, bucket) = self.bucket_of(tick);
            self.heads[level][bucket] = next;
            if next == NONE {
                self.occupied[level] &= !(1 << bucket);
            }
        }
        self.entries[index as usize].tick = UNARMED;
    }

    fn next(&self) -> Option<Instant> {
        self.next_bucket().map(|(_, _, tick)| Instant(tick.saturating_mul(TICK)))
    }

    fn expire(&mut self, now: Instant, due: &mut Vec<u32>) {
        let last = now.0 / TICK;
        while let Some((level, bucket, tick)) = self.next_bucket().filter(|(_, _, tick)| *tick <= last) {
            self.occupied[level] &= !(1 << bucket);
            let mut index = std::mem::replace(&mut self.heads[level][bucket], NONE);
            // Timers of later ticks move to a lower level.
            self.past = tick;
            while index != NONE {
                let BucketEntry { next, tick: fires, .. } = self.entries[index as usize];
                if fires <= last {
                    self.entries[index as usize].tick = UNARMED;
                    due.push(index);
                } else {
                    self.link(index, fires);
                }
                index = next;
            }
        }
        self.past = self.past.max(last);
    }
}
