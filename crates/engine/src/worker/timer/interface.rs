//! The interface of timers.

use tenfold_http::Instant;

/// A timer for each connection of a worker, by the number of its slot.
pub trait Timer {
    /// Arms the timer of `index` for `at`, instead of any earlier time. A past time is due at the next
    /// [`Timer::expire`], within a tick.
    fn arm(&mut self, index: u32, at: Instant);

    /// Disarms the timer of `index` if it is armed.
    fn disarm(&mut self, index: u32);

    /// A time before which no timer fires; `None` if no timer is armed.
    fn next(&self) -> Option<Instant>;

    /// Disarms each timer that is due at `now`, and adds its index to `due`, in any order. A time before the last one
    /// has no effect.
    fn expire(&mut self, now: Instant, due: &mut Vec<u32>);

    /// The entries and buckets that operations have read or moved so far. Claims and tests state costs in this unit.
    #[cfg(test)]
    fn steps(&self) -> u64;
}

/// Milliseconds of a tick of a wheel: the most by which a timer fires late. No timer fires early.
pub const TICK: u64 = 32;

pub(super) const NONE: u32 = u32::MAX;
