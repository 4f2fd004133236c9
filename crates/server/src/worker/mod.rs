//! A worker process: its protocol, and the counters and log of its threads.

pub(crate) mod app;
pub(crate) mod null;
pub(crate) mod proxies;
pub(crate) mod shared;
