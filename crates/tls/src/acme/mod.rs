//! Certificates from an authority by ACME (RFC 8555), obtained and renewed by a process of its own.
//!
//! Everything is in a state folder: the account, the key and the order of a certificate that is being issued, the
//! certificate, the failures so far. A process that ends at any point goes on where it was.

#[cfg(feature = "acme")]
pub mod client;
pub mod settings;
#[cfg_attr(not(feature = "acme"), expect(dead_code, reason = "only the client writes"))]
pub mod stored;

#[cfg(feature = "acme")]
mod attempts;
#[cfg(feature = "acme")]
mod authority;
#[cfg(feature = "acme")]
mod dns;
mod error;
#[cfg(feature = "acme")]
mod order;
#[cfg(feature = "acme")]
mod refusal;
#[cfg(feature = "acme")]
mod renewal;
#[cfg(feature = "acme")]
mod transport;
#[cfg(feature = "acme")]
mod validation;
