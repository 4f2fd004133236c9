//! The blocking driver: every call waits, one connection at a time.
//!
//! Calls wait in slices (`SO_RCVTIMEO`, `SO_SNDTIMEO`), so that a deadline or the end of the server takes effect within
//! one slice. No `poll()` precedes `recv`: that would be another model.

pub(crate) mod accept;
pub(crate) mod io;
pub(crate) mod serve;
