//! The completion driver: it submits operations to a ring once per tick, and polls tasks when their operations
//! complete.
//!
//! The ring owns the memory of operations in flight. A socket is closed only after its last operation: sends are
//! awaited first, and then `shutdown(2)` ends a waiting receive, or a reset does if there is nothing left to send.

mod closing;
#[cfg(feature = "test-hooks")]
pub mod faults;
mod io;
mod link;
mod proactor;
pub(crate) mod receiving;
pub(crate) mod ring;
pub(crate) mod run;
mod sending;
mod serving;
mod sources;
mod state;
mod tag;
