//! A load generator for HTTP that checks responses and its own measurements.
//!
//! A [`LoadPlan`] describes a run, [`run()`] carries it out, and a [`LoadReport`] is the result as data. The folders
//! follow that order: `plan` (settings, URLs, the [`pacer`] of requests), `message` (requests and responses),
//! `connection` and `worker` (a thread with an epoll instance or an io_uring ring), `measure` (the [`record`] of a
//! worker), and `report` (the [`summary`], validity, output, comparisons, assertions). `tls` has the certificates that a
//! client trusts and the sessions that it resumes.
//!
//! Several machines can share a plan: `run/task.rs` makes the load of one machine for the controller in
//! `run/controller.rs`, through [`tenfold_agents`].
//!
//! Three things differ from most load generators. Latency counts from the time at which a request was due, so a
//! stalled server cannot hide it. A response is checked before it counts. The generator measures itself (processor
//! time, its own delay, Little's law) and marks numbers as invalid if they show its own limit.

#![forbid(unsafe_code)]

mod connection;
pub mod error;
mod measure;
mod message;
pub mod plan;
mod report;
mod run;
mod tls;
mod worker;

pub use error::LoadError;
pub use measure::{histogram, record, statistics};
pub use message::{request, response};
pub use plan::{LoadPlan, expect, io, pacer, source, url};
pub use report::summary::{LoadReport, RunSummary};
pub use report::{assertion, compare, environment, metrics, output, summary, warmup};
pub use run::controller::{LoadFleet, ShareBy, run_on};
pub use run::run;
pub use run::task::{LOAD_TASK, task};
