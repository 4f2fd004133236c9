//! The whole server, tested from outside: the real binary, real sockets, bytes on the wire.
//!
//! The table of models drives it. [`config`] lists every combination of engine, topology, sender and
//! trigger that a plan can be made of; [`harness`] makes a named test of every case on every one of them,
//! `theme::configuration::case`; a model that enters the table is tested from then on.
//!
//! A case gets a [`server::Server`] (shared with others of its configuration, or its own), talks to it
//! through a [`wire::Wire`], and panics when what came is not what has to come.

#![forbid(unsafe_code)]

pub mod binary;
pub mod browser;
pub mod combinations;
pub mod config;
pub mod databases;
pub mod floor;
pub mod generate;
pub mod harness;
pub mod launch;
pub mod left;
pub mod part;
pub mod pool;
pub mod process;
pub mod proxy;
pub mod response;
pub mod server;
pub mod site;
pub mod strace;
pub mod time;
pub mod tools;
pub mod visitor;
pub mod wire;
