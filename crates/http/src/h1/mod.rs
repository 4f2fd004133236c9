//! The wire format of HTTP/1.0 and 1.1: parsing requests and encoding responses.

pub mod chunked;
pub(crate) mod encode;
pub(crate) mod framing;
pub(crate) mod head;

pub use head::parse_request;
