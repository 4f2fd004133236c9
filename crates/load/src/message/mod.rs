//! HTTP/1 as a client: requests encoded before a run, and the parser of responses.

pub(crate) mod http2;
pub mod request;
pub mod response;
