//! The timers of waiting connections: two mechanisms with one interface.
//!
//! Updates are lazy. A driver arms a timer only if a wait ends earlier than the armed time, and compares with the
//! deadline of the connection when the timer fires. A busy keep-alive connection causes no timer operation per request.

mod chunks;
mod interface;
mod list;
mod steps;
#[cfg(test)]
mod tests;
mod wheel;

use tenfold_http::Instant;

pub use self::interface::{TICK, Timer};
use self::list::List;
use self::wheel::Wheel;
use crate::plan::choice::TimerKind;

/// The documented bytes of each connection.
const _: () = {
    assert!(wheel::ENTRY_BYTES == 12);
    assert!(list::ENTRY_BYTES == 16);
};

/// Timers of this kind, without an armed one.
pub fn new(kind: TimerKind, now: Instant) -> Box<dyn Timer> {
    match kind {
        TimerKind::List => Box::new(List::new()),
        TimerKind::Wheel => Box::new(Wheel::new(now)),
    }
}
