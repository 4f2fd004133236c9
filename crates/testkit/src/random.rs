//! Reproducible numbers and bytes.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::time::lock;

/// Pseudo-random numbers (splitmix64), the same on every machine.
#[derive(Clone, Debug)]
pub struct SeededRandom(u64);

impl SeededRandom {
    /// Starts the sequence of this seed.
    pub fn new(seed: u64) -> SeededRandom {
        SeededRandom(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("a length fits 64 bits");
        usize::try_from(self.number() % bound).expect("it is below a length")
    }

    /// Returns true once in `times`, on average.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Returns a random item.
    pub fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

/// `length` reproducible bytes without a pattern.
pub fn bytes(length: usize, seed: u64) -> Vec<u8> {
    made_bytes(length, seed).to_vec()
}

/// The bytes of [`bytes`], made once: the loop is slow without optimisation, and hundreds of cases need the same bytes.
pub fn made_bytes(length: usize, seed: u64) -> &'static [u8] {
    static MADE: Mutex<BTreeMap<(usize, u64), &[u8]>> = Mutex::new(BTreeMap::new());
    lock(&MADE).entry((length, seed)).or_insert_with(|| {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.extend_from_slice(&state.to_le_bytes());
        }
        bytes.truncate(length);
        bytes.leak()
    })
}
