//! A load generator for HTTP that tells the truth.
//!
//! A [`LoadPlan`] describes a run, [`run()`] carries it out and returns a [`LoadReport`]. The folders follow that order:
//! `plan` (settings, URLs, the [`pacer`] of requests), `message` (requests and responses), `connection` and `worker`
//! (one thread, with one epoll instance or one ring of io_uring), `measure` (the [`record`] that a worker keeps), and
//! `report` (the [`summary`], reasons to doubt it, output, comparisons, assertions).
//!
//! Three things are different from most load generators. Latency counts from when a request was due, so that
//! a server which stalls cannot hide it. An answer is checked before it counts. And the generator measures
//! itself: processor time, lateness, LittlesLaw's law; numbers that are its own limit are called invalid.

#![forbid(unsafe_code)]

mod connection;
pub mod error;
mod measure;
mod message;
pub mod plan;
mod report;
mod run;
mod worker;

pub use error::LoadError;
pub use measure::{histogram, record, statistics};
pub use message::{request, response};
pub use plan::{LoadPlan, expect, io, pacer, source, url};
pub use report::summary::{LoadReport, RunSummary};
pub use report::{assertion, compare, metrics, output, summary, warmup};
pub use run::run;
