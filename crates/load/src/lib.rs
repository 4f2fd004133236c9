//! A load generator for HTTP that tells the truth.
//!
//! What is asked for is a [`Plan`]; [`run()`] carries it out and gives back a [`Report`], which can be shown,
//! compared and held against assertions. On the way: a [`pacer`] says when a request may begin, a `worker`
//! (one thread, with one epoll instance or one ring of
//! io_uring) drives its connections, a [`record`] is what it wrote down, and a
//! [`summary`] is what follows from that, with what there is to doubt about it.
//!
//! Three things are different from most load generators. Latency counts from when a request was due, so that
//! a server which stalls cannot hide it. An answer is checked before it counts. And the generator measures
//! itself: processor time, lateness, Little's law; numbers that are its own limit are called invalid.

#![forbid(unsafe_code)]

pub mod assertion;
pub mod compare;
mod connection;
mod environment;
pub mod error;
pub mod expect;
mod fault;
mod fleet;
pub mod histogram;
mod live;
pub mod metrics;
pub mod output;
pub mod pacer;
mod place;
pub mod plan;
pub mod record;
mod recorder;
pub mod request;
pub mod response;
mod run;
mod share;
pub mod source;
pub mod statistics;
pub mod summary;
pub mod url;
mod validity;
pub mod warmup;
pub mod way;
mod worker;

pub use error::Wrong;
pub use plan::Plan;
pub use run::run;
pub use summary::{Report, Summary};
