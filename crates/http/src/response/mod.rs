//! Responses for all versions: a service describes them, and their writer encodes them.

pub mod echo;
pub(crate) mod encoder;
pub(crate) mod http2;
pub mod template;
pub mod value;
pub mod writer;
