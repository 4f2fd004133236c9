//! The sockets of the supervisor.

pub(crate) mod activation;
pub(crate) mod control;
pub(crate) mod listeners;
pub(crate) mod notify;
