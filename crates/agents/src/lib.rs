//! Work on other machines.
//!
//! A controller starts `tenfold agent` on each machine by a program that people have: OpenSSH, kubectl, srun, podman.
//! Both sides exchange [`frame`]s over the standard input and output of that program. [`fleet`] is the side of the
//! controller, [`agent`] is the other side.
//!
//! An agent runs one task at a time. A task is a process below a warden:
//!
//! ```text
//! controller ── ssh ── agent ── warden ── task ── its processes
//! ```
//!
//! The agent ends when its input ends or no message comes for [`SILENCE`]. The agent and its warden watch each other:
//! if one of them ends or stops, the other kills every process below both. So a task outlives neither its controller
//! nor its agent.

#![forbid(unsafe_code)]

pub mod agent;
mod build;
pub mod fleet;
mod frame;
mod message;
mod text;

pub use agent::task::{Task, TaskPipe};
pub use fleet::Fleet;
pub use fleet::event::FleetEvent;
pub use message::SILENCE;
