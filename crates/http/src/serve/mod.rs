//! The life of a connection: reads requests, calls a [`Service`](crate::Service), and sends the responses.
//!
//! Every connection begins in `http1`, and `http2` takes over a connection that chose it. `session` serves both, `layer`
//! is for protocols below such as TLS, and `proxy` for the header that may precede all other bytes.

pub(crate) mod http1;
pub(crate) mod http2;
pub mod layer;
pub mod proxy;
pub(crate) mod session;
