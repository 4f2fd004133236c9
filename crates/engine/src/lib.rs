//! The I/O models, one small file each, for any protocol.
//!
//! [`run`] takes a [`Plan`], listening sockets and a [`Protocol`], and serves until the phase of
//! [`tenfold_sys::lifecycle`] ends it.

#![forbid(unsafe_code)]

pub mod dispatch;
mod drivers;
pub mod layer;
mod models;
pub mod plan;
pub mod protocol;
mod senders;
pub mod table;
mod topology;
mod worker;

pub use dispatch::offload;
#[cfg(feature = "test-hooks")]
pub use drivers::completion::faults;
pub use models::libevent::method as libevent_method;
pub use models::uring::UNREAD_BYTES;
pub use plan::choice::{Accept, Dispatch, Engine, Method, Sender, TimerKind, Topology, Trigger, Triggers};
pub use plan::mechanism::{Driver, Facility};
pub use plan::{Bounds, Plan};
pub use protocol::{Event, Protocol};
pub use table::{MODELS, Model, Rearms, SENDERS, SenderRow, Step, Steps};
pub use topology::{probe, run};
pub use worker::timer;
