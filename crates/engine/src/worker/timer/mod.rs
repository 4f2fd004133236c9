//! Timers: which connections have waited too long. Four ways to keep them, behind one trait.
//!
//! Lazily, as is the default, a driver arms a timer only when a wait begins whose deadline is earlier than
//! the one that is armed, and looks at the deadline again when it fires: on a busy keep-alive connection
//! that is no timer operation at all per request. Eagerly, every new deadline arms the timer again.

mod chunks;
mod heap;
mod hierarchical;
mod interface;
mod list;
mod steps;
#[cfg(test)]
mod tests;
mod wheel;

use tenfold_http::Instant;

use self::heap::Heap;
use self::hierarchical::Hierarchical;
pub use self::interface::{TICK, Timer};
use self::list::List;
use self::wheel::Wheel;
use crate::plan::choice::TimerKind;

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
