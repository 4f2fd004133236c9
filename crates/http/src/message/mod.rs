//! HTTP messages, without the bytes of any version.

pub mod connection;
pub mod decimal;
pub mod field;
pub mod header_lines;
pub mod owned;
pub mod refusal;
pub mod request;
pub mod request_id;
pub mod server_field;
pub mod status;
pub mod trust;
