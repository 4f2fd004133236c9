//! Session tickets (RFC 8446 §4.6.1) under keys that all workers share, also across generations.

pub mod keys;
pub mod ticketer;
