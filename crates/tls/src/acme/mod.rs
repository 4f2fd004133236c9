//! Certificates from an authority by ACME (RFC 8555), obtained and renewed by a process of its own.
//!
//! Everything is in a state folder: the account, the key and the order of a certificate that is being issued, the
//! certificate, the failures so far. A process that ends at any point goes on where it was.

pub mod client;
pub mod settings;
pub mod stored;

mod attempts;
mod authority;
mod dns;
mod error;
mod order;
mod renewal;
mod transport;
mod validation;
