//! A worker process: the protocol that it serves, and what its threads count and log.

pub(crate) mod app;
pub(crate) mod null;
pub(crate) mod proxies;
pub(crate) mod shared;
