//! A layer for tests that frames and seals its bytes as TLS does: a hello exchange before any plaintext, records with
//! an integrity tag, records without plaintext, alerts, and a closing record. It keeps nothing secret.

mod client;
mod files;
mod hello;
mod io;
mod plaintext;
mod protocol;
pub mod record;
mod sending;
mod session;
#[cfg(test)]
mod tests;

pub use client::{Client, Received};
pub use protocol::Framed;
