//! The life of a connection: requests are read, answered by a [`Service`](crate::Service), and their responses sent.

mod body;
pub mod connection;
mod deferred;
pub mod session;
mod step;
mod waits;
