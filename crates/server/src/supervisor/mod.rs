//! The supervisor: one thread that owns every listening socket and the counters, forks the workers, and follows signals.
//! It reads nothing from the network.
//!
//! [`open`] starts and opens everything, [`run`] is the loop over the [`state`], and [`examine`] checks without a
//! start. [`children`] are the processes, [`sockets`] listen and report, and a [`generation`] is a configuration with
//! its workers. [`upgrade`] executes another program in this process. [`log`] rotates the access log, [`announce`]
//! prints the start block, and [`book`] is the manual.

mod announce;
pub(crate) mod book;
pub(crate) mod children;
pub(crate) mod examine;
mod generation;
mod log;
pub(crate) mod open;
mod run;
mod sockets;
pub(crate) mod state;
pub(crate) mod upgrade;
