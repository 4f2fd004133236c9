//! The completion driver: it submits operations to a ring once per tick, and polls tasks when their operations
//! complete.
//!
//! The ring owns the memory of operations in flight. A socket is closed after its last operation: the driver awaits
//! sends, and then ends a waiting receive by `shutdown(2)`, or by a reset.

mod closing;
mod event_loop;
#[cfg(feature = "test-hooks")]
pub mod faults;
mod io;
mod link;
pub(crate) mod receiving;
pub(crate) mod ring;
pub(crate) mod run;
mod sending;
mod serving;
mod sources;
mod state;
mod tag;
