//! Streams without frames, for HTTP/2 and HTTP/3: their priorities, the account of unpaid work, and the content that
//! waits in bodies.

pub(crate) mod account;
pub(crate) mod priority;
pub(crate) mod schedule;
pub(crate) mod waiting;
