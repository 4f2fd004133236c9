//! HTTP/1 as a client: requests written out before a run, and responses read.

pub mod request;
pub mod response;
