//! HTTP/1 as a client: requests encoded before a run, and the parser of responses.

pub mod request;
pub mod response;
