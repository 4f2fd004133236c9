//! Handshake signatures by a separate process, so that private keys never enter a worker.
//!
//! A worker sends a message for each signature and waits for the answer, within a bound. The signing process
//! signs only the two kinds of messages that a TLS server signs.

pub mod keys;
pub mod remote;

mod message;
mod shape;
