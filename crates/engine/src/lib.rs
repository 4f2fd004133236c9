//! The I/O models, one small file each, under one protocol.
//!
//! [`run`] takes a [`Plan`], listening sockets and a [`Protocol`], and serves until
//! [`tenfold_sys::lifecycle`] says otherwise.

#![forbid(unsafe_code)]

pub mod plan;
pub mod protocol;
pub mod table;

pub use plan::{Bounds, Plan, Sender, Topology, Trigger, Triggers};
pub use protocol::{Event, Protocol};
pub use table::{Driver, Engine, Facility, MODELS, Model};
