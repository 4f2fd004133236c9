//! The life of a connection: reads requests, calls a [`Service`](crate::Service), and sends the responses.
//!
//! This module uses the wire formats, which do not depend on the service. `connection`, `body` and
//! `deferred` run HTTP/1, `session` serves any version, `layer` is for protocols below, such as TLS, and `proxy` for the
//! header that may precede all of them.

mod body;
pub mod connection;
mod deferred;
pub mod layer;
pub mod proxy;
pub(crate) mod session;
