//! The readiness driver: a loop that waits for what is ready and polls the tasks that want it.
//!
//! It is generic over the mechanism ([`selector::Selector`]) and the protocol. A connection rests as a
//! slot; when something arrives it gets a task and memory, and gives them back when nothing is in hand.

mod accept;
mod closing;
mod executor;
mod io;
pub(crate) mod link;
pub(crate) mod pool;
mod reactor;
pub(crate) mod run;
pub(crate) mod selector;
mod serving;
#[cfg(test)]
mod tests;
