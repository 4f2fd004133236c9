//! The life of an HTTP/2 connection (RFC 9113).
//!
//! `connection` is the loop, `frames` processes received frames, `head` reads requests, `answers` has the steps from a
//! request to its response, `bodies` sends DATA, `places` bounds the streams together, and `leaving` ends the connection.
//! `stream` is an open stream, and `rest` is the state without streams, which `parked` keeps. The order of streams and
//! the account of unpaid work are in [`crate::mux`].

mod answers;
mod bodies;
mod connection;
mod frames;
mod head;
mod leaving;
pub(crate) mod parked;
mod places;
mod rest;
mod stream;

pub(crate) use parked::{chosen, serve_http2};
