//! A hashed timing wheel (Varghese and Lauck, 1987, scheme 6): arming and disarming take constant time,
//! expiry takes time in what expires.

use tenfold_http::Instant;

/// Milliseconds of a tick. A timer fires at most this much late, never early.
const TICK: u64 = 32;
/// Buckets; a power of two. A turn of the wheel is about 65 s.
const BUCKETS: usize = 2048;
const NONE: u32 = u32::MAX;
const CHUNK: usize = 512;

/// One timer for each connection, by the number of its slot.
pub(crate) struct Wheel {
    heads: Box<[u32; BUCKETS]>,
    /// In chunks, so that memory follows connections and none of it moves.
    entries: Vec<Box<[Entry; CHUNK]>>,
    /// Every tick before this one has been looked at.
    at: u64,
    /// No timer fires before this tick.
    earliest: u64,
    armed: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    next: u32,
    previous: u32,
    /// The low half of the tick at which it fires; [`NONE`] where it is not armed.
    tick: u32,
}

impl Wheel {
    pub(crate) fn new(now: Instant) -> Wheel {
        Wheel {
            heads: Box::new([NONE; BUCKETS]),
            entries: Vec::new(),
            at: now.0 / TICK,
            earliest: u64::MAX,
            armed: 0,
        }
    }

    fn entry(&mut self, index: u32) -> &mut Entry {
        &mut self.entries[index as usize / CHUNK][index as usize % CHUNK]
    }

    /// Arms the timer of `index` for `at`, wherever it was armed for before.
    pub(crate) fn arm(&mut self, index: u32, at: Instant) {
        self.disarm(index);
        while self.entries.len() <= index as usize / CHUNK {
            self.entries.push(Box::new([Entry { next: NONE, previous: NONE, tick: NONE }; CHUNK]));
        }
        let tick = at.0.div_ceil(TICK).max(self.at);
        let bucket = tick as usize % BUCKETS;
        let head = self.heads[bucket];
        // A low half of all ones means "not armed": such a timer fires one tick late.
        let low = if tick as u32 == NONE { 0 } else { tick as u32 };
        *self.entry(index) = Entry { next: head, previous: NONE, tick: low };
        if head != NONE {
            self.entry(head).previous = index;
        }
        self.heads[bucket] = index;
        self.earliest = self.earliest.min(tick);
        self.armed += 1;
    }

    /// Disarms the timer of `index`, where it is armed.
    pub(crate) fn disarm(&mut self, index: u32) {
        if self.entries.len() <= index as usize / CHUNK {
            return;
        }
        let Entry { next, previous, tick } = *self.entry(index);
        if tick == NONE {
            return;
        }
        match previous {
            NONE => self.heads[tick as usize % BUCKETS] = next,
            _ => self.entry(previous).next = next,
        }
        if next != NONE {
            self.entry(next).previous = previous;
        }
        self.entry(index).tick = NONE;
        self.armed -= 1;
    }

    /// A moment before which no timer fires; none when no timer is armed.
    pub(crate) fn next(&self) -> Option<Instant> {
        (self.armed > 0).then(|| Instant(self.earliest.max(self.at) * TICK))
    }

    /// Disarms every timer that is due at `now`, and puts its index into `due`.
    pub(crate) fn expire(&mut self, now: Instant, due: &mut Vec<u32>) {
        let last = now.0 / TICK;
        if self.armed == 0 {
            (self.at, self.earliest) = (last + 1, u64::MAX);
            return;
        }
        if last < self.earliest.max(self.at) {
            return;
        }
        // After a long sleep one turn of the wheel sees every bucket.
        let from = self.at.max(self.earliest).max((last + 1).saturating_sub(BUCKETS as u64));
        for tick in from..=last {
            let mut index = self.heads[tick as usize % BUCKETS];
            while index != NONE {
                let Entry { next, tick: fires, .. } = *self.entry(index);
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

    /// The next tick at which a bucket holds anything: perhaps for a later turn of the wheel, which costs
    /// one look and no more.
    fn find_earliest(&self) -> u64 {
        if self.armed == 0 {
            return u64::MAX;
        }
        let found =
            (0..BUCKETS as u64).find(|ahead| self.heads[(self.at + ahead) as usize % BUCKETS] != NONE);
        found.map_or(u64::MAX, |ahead| self.at + ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expired(wheel: &mut Wheel, now: u64) -> Vec<u32> {
        let mut due = Vec::new();
        wheel.expire(Instant(now), &mut due);
        due.sort_unstable();
        due
    }

    /// The wheel against a list of deadlines, over two thousand random operations each.
    #[test]
    fn what_expires_is_what_a_list_says() {
        for seed in 1..40u64 {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut draw = |below: u64| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random % below
            };
            let mut now = draw(1 << 40);
            let mut wheel = Wheel::new(Instant(now));
            let mut model = [None; 64];
            for _ in 0..2000 {
                let index = draw(64) as usize;
                match draw(4) {
                    0 => {
                        wheel.disarm(index as u32);
                        model[index] = None;
                    }
                    1 => {
                        let longest = if draw(20) == 0 { 200_000 } else { 500 };
                        now += draw(longest);
                        let due = expired(&mut wheel, now);
                        let expected: Vec<u32> = (0..64u32)
                            .filter(|&at| {
                                model[at as usize].is_some_and(|by: u64| by.div_ceil(TICK) <= now / TICK)
                            })
                            .collect();
                        assert_eq!(due, expected, "seed {seed}, at {now}");
                        due.iter().for_each(|&at| model[at as usize] = None);
                    }
                    _ => {
                        let by = now + draw(150_000);
                        wheel.arm(index as u32, Instant(by));
                        model[index] = Some(by);
                    }
                }
                let soonest = model.iter().flatten().min();
                assert_eq!(wheel.next().is_some(), soonest.is_some());
                if let (Some(next), Some(&soonest)) = (wheel.next(), soonest) {
                    assert!(next.0 <= soonest.max(now) + TICK, "seed {seed}: {next:?} is after {soonest}");
                }
            }
        }
    }

    #[test]
    fn a_timer_fires_within_a_tick_and_never_early() {
        let mut wheel = Wheel::new(Instant(1_000_000));
        wheel.arm(3, Instant(1_000_100));
        assert_eq!(expired(&mut wheel, 1_000_099), []);
        assert_eq!(expired(&mut wheel, 1_000_100 + TICK), [3]);
        assert_eq!(expired(&mut wheel, 1_000_100 + 2 * TICK), []);
        assert!(wheel.next().is_none());
    }
}
