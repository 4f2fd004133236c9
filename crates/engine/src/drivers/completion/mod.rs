//! The completion driver: operations are handed to a ring once a turn, and tasks are polled when theirs
//! come back.
//!
//! The ring owns what is in flight. A socket is closed only when no operation names it any more: a
//! receive that waits is ended by `shutdown(2)`, or by a reset where nothing more is to be sent, and sends in flight
//! are waited for first.

mod closing;
#[cfg(feature = "test-layer")]
pub mod faults;
mod io;
mod link;
mod proactor;
mod receiving;
pub(crate) mod ring;
pub(crate) mod run;
mod sending;
mod serving;
mod sources;
mod state;
mod tag;
