//! The whole server, tested from outside: the real binary, real sockets, bytes on the wire.
//!
//! The table of models determines the tests. [`config`] lists every legal combination of engine, topology, sender and
//! trigger, and [`lists`] the combinations for each kind of case. [`harness`] turns every case on every configuration of
//! its lists into a named test, `theme::configuration::case`, so new models are tested automatically.
//!
//! A case gets a [`server::Server`], shared or its own, talks to it through a [`wire::Wire`], and panics on an
//! unexpected response. The parts without a dependency on engines are in `crates/testkit`.

#![forbid(unsafe_code)]

pub mod binary;
pub mod browser;
pub mod budget;
pub mod combinations;
pub mod config;
pub mod databases;
pub mod floor;
pub mod generate;
pub mod harness;
pub mod launch;
pub mod left;
pub mod lists;
pub mod part;
pub mod pebble;
pub mod pool;
pub mod proxy;
pub mod server;
pub mod site;
pub mod strace;

pub use tenfold_testkit::{address, http2, process, program, response, seal, time, tools, visitor, wire};
