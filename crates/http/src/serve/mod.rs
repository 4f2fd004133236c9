//! The life of a connection: reads requests, calls a [`Service`](crate::Service), and sends the responses.
//!
//! This module uses the wire formats, which do not depend on the service. `connection`, `body`, `deferred` and
//! `step` run HTTP/1, `session` and `waits` serve any version, `layer` is for protocols below, such as
//! TLS, and `proxy` for the header that may precede all of them.

mod body;
pub mod connection;
mod deferred;
pub mod layer;
pub mod proxy;
pub mod session;
mod step;
mod waits;
