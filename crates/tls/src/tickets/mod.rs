//! Session tickets (RFC 8446 §4.6.1) under keys that all workers and generations share.

pub mod keys;
pub mod ticketer;
