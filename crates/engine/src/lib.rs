//! The I/O models, one small file each, under one protocol.
//!
//! [`run`] takes a [`Plan`], listening sockets and a [`Protocol`], and serves until
//! [`tenfold_sys::lifecycle`] says otherwise.

#![forbid(unsafe_code)]

mod connections;
pub mod dispatch;
mod driver;
mod eviction;
#[cfg(feature = "test-layer")]
pub mod faults;
mod handoff;
mod inbox;
mod input;
#[cfg(feature = "test-layer")]
pub mod layer;
mod models;
pub mod offload;
pub mod plan;
pub mod protocol;
mod senders;
mod slots;
pub mod table;
pub mod timer;
mod topology;

/// What [`handoff`] synchronises with. Its test puts a checker of all interleavings in this place.
mod sync {
    pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
    pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};

    pub(crate) use tenfold_sys::eventfd::EventFd;
}

use std::time::Duration;

pub use plan::{Accept, Bounds, Dispatch, Method, Plan, Sender, Topology, Trigger, Triggers};
pub use protocol::{Event, Protocol};
pub use senders::table::{SENDERS, SenderRow};
pub use table::{Driver, Engine, Facility, MODELS, Model, Rearms, Step, Steps};
pub use timer::{TimerKind, TimerUpdate};
pub use topology::{libevent_method, locked_bytes, probe, run};

/// How long a worker that ran out of descriptors waits before it accepts again.
pub(crate) const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);
