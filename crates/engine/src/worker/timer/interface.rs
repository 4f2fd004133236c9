//! The interface of timers.

use tenfold_http::Instant;

/// A timer for each connection of a worker, by the number of its slot.
pub trait Timer {
    /// Arms the timer of `index` for `at`, wherever it was armed for before. A moment that has passed is
    /// due at the next [`Timer::expire`], within a tick.
    fn arm(&mut self, index: u32, at: Instant);

    /// Disarms the timer of `index`, where it is armed.
    fn disarm(&mut self, index: u32);

    /// A moment before which no timer fires; none when no timer is armed.
    fn next(&self) -> Option<Instant>;

    /// Disarms every timer that is due at `now`, and puts its index into `due`, in no order. Time that goes
    /// back is time that stands still.
    fn expire(&mut self, now: Instant, due: &mut Vec<u32>);

    /// Entries and buckets that were looked at or moved, so far. What each operation costs is claimed and
    /// tested in these.
    #[cfg(test)]
    fn steps(&self) -> u64;
}

/// Milliseconds of a tick of a wheel: the most by which a timer fires late. No timer fires early.
pub const TICK: u64 = 32;

pub(super) const NONE: u32 = u32::MAX;
