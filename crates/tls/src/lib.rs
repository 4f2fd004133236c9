//! TLS as a layer over [`tenfold_http::Io`]: rustls makes handshakes, and this crate seals and opens records.

#![forbid(unsafe_code)]

pub mod acme;
pub mod certificates;
pub mod challenges;
pub mod config;
pub mod connection;
mod failure;
pub mod internal;
pub mod shared;
pub mod signing;
pub mod state;
pub mod tickets;

pub use rustls::ServerConfig;
