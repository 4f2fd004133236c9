//! Signatures of handshakes by a process of its own: private keys never enter a worker.
//!
//! A worker sends one message for each signature and waits for one answer, within a bound. The other process signs
//! nothing but the two messages that a TLS server signs.

pub mod keys;
pub mod remote;

mod message;
mod shape;
