//! The wire format of HTTP/1.0 and 1.1: heads and bodies of requests are parsed, responses are encoded.

pub mod chunked;
pub(crate) mod encode;
mod framing;
pub(crate) mod head;

pub use head::parse_request;
