//! Streams without frames, for HTTP/2 and HTTP/3: their priorities, and the account of unpaid work.

pub(crate) mod account;
pub(crate) mod priority;
pub(crate) mod schedule;
