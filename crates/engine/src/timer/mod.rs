//! Timers: which connections have waited too long. Four ways to keep them, behind one trait.
//!
//! Lazily, as is the default, a driver arms a timer only when a wait begins whose deadline is earlier than
//! the one that is armed, and looks at the deadline again when it fires: on a busy keep-alive connection
//! that is no timer operation at all per request. Eagerly, every new deadline arms the timer again.

mod chunks;
mod heap;
mod hierarchical;
mod list;
mod steps;
#[cfg(test)]
mod tests;
mod wheel;

use tenfold_http::Instant;

use self::heap::Heap;
use self::hierarchical::Hierarchical;
use self::list::List;
use self::wheel::Wheel;
use crate::plan::choice;

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

choice! {
    /// How timers are kept.
    TimerKind, "timer" {
        /// A list in the order of deadlines.
        List = "list",
        /// A binary heap.
        Heap = "heap",
        /// A hashed wheel: one ring of buckets.
        Wheel = "wheel",
        /// Wheels of wheels: each level's bucket is a turn of the one below.
        Hierarchical = "hierarchical",
    }
}

choice! {
    /// When a timer is touched.
    TimerUpdate, "way to update timers" {
        /// When a deadline is earlier than the one that is armed.
        Lazy = "lazy",
        /// With every new deadline: what laziness saves.
        Eager = "eager",
    }
}

/// Bytes of stack, heap or ring aside: what each kind keeps of a connection, as it is documented.
const _: () = {
    assert!(wheel::ENTRY_BYTES == 12);
    assert!(list::ENTRY_BYTES == 16);
    assert!(hierarchical::ENTRY_BYTES == 16);
};

/// Timers of this kind, none of them armed.
pub fn new(kind: TimerKind, now: Instant) -> Box<dyn Timer> {
    match kind {
        TimerKind::List => Box::new(List::new()),
        TimerKind::Heap => Box::new(Heap::new()),
        TimerKind::Wheel => Box::new(Wheel::new(now)),
        TimerKind::Hierarchical => Box::new(Hierarchical::new(now)),
    }
}

/// Milliseconds of a tick of both wheels. Their timers fire at most this much late; none is ever early.
pub const TICK: u64 = 32;

const NONE: u32 = u32::MAX;
