//! The bytes of HTTP/2 (RFC 9113) and HPACK (RFC 7541): no I/O, no clock, no stream states.
//!
//! [`frame`] parses and writes frames and settings. [`hpack`] decodes field blocks into a list that a worker reuses, and
//! copies prepared blocks. [`huffman`] and [`integer`] are separate, because QPACK (RFC 9204) uses them too. The server
//! and the load generator decide about streams, windows and the order of frames.

#![forbid(unsafe_code)]

pub mod frame;
pub mod hpack;
pub mod huffman;
pub mod integer;
