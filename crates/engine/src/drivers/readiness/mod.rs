//! The readiness driver: a loop that waits for events and polls the tasks that wait for them.
//!
//! It is generic over the protocol; the mechanism is a [`selector::Selector`]. An idle connection is a slot. When
//! something arrives, it gets a task and memory, and returns them when it becomes idle again.

mod accept;
mod closing;
mod executor;
mod io;
pub(crate) mod link;
mod pool;
mod reactor;
pub(crate) mod run;
pub(crate) mod selector;
mod serving;
mod succeeding;
#[cfg(test)]
mod tests;
