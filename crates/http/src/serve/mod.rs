//! The life of a connection: reads requests, calls a [`Service`](crate::Service), and sends the responses.
//!
//! `connection`, `body` and `deferred` implement HTTP/1, `session` serves all versions, `layer` is for
//! protocols below such as TLS, and `proxy` for the header that may precede all other bytes.

mod body;
pub mod connection;
mod deferred;
pub(crate) mod http2;
pub mod layer;
pub mod proxy;
pub(crate) mod session;
