//! Responses, whatever the version of the request: a service describes them, and their writer encodes them.

pub mod echo;
pub mod template;
pub mod writer;
