//! The life of a connection: requests are read, answered by a [`Service`](crate::Service), and their responses sent.
//!
//! It stands above the wire formats, which know no service: `connection`, `body`, `deferred` and `step` run HTTP/1,
//! `session` and `waits` serve any version, and `layer` is for protocols below, such as TLS.

mod body;
pub mod connection;
mod deferred;
pub mod layer;
pub mod session;
mod step;
mod waits;
