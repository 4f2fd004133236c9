//! The life of an HTTP/2 connection (RFC 9113).
//!
//! `connection` is the loop, `frames` processes received frames, `head` reads requests, `answers` has the steps from a
//! request to its response, and `stream` is an open stream. The order of streams and the account of unpaid work are in
//! [`crate::mux`].

mod answers;
mod connection;
mod frames;
mod head;
pub(crate) mod parked;
mod stream;

pub(crate) use parked::{chosen, serve_http2};
