//! The blocking driver: every call waits, one connection at a time.
//!
//! Calls wait in slices (`SO_RCVTIMEO`, `SO_SNDTIMEO`), so that a deadline and the end of the server are
//! seen within one. There is no `poll()` in front of `recv`: that would be another model.

pub(crate) mod accept;
pub(crate) mod io;
pub(crate) mod serve;
