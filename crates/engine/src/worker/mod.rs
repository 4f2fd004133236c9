//! The state of a worker, whichever driver runs it: connections in slots, the tasks that serve them, an inbox for
//! wakers, timers, and the choice of an idle connection to close.

pub(crate) mod confine;
pub(crate) mod connections;
pub(crate) mod eviction;
pub(crate) mod handoff;
pub(crate) mod inbox;
pub(crate) mod intake;
pub(crate) mod retirement;
pub(crate) mod shortage;
pub(crate) mod slots;
mod sync;
pub(crate) mod tasks;
pub(crate) mod tick;
pub mod timer;
