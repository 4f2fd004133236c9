//! The life of an HTTP/1 connection (RFC 9112).

mod body;
mod connection;
mod deferred;

pub use connection::serve_connection;
