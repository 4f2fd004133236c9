//! Certificates from a certificate authority by ACME (RFC 8555), obtained and renewed by a process of its
//! own.
//!
//! The state folder has all state: the account, the key and the order in progress, the certificate, and past
//! failures. A process that ends at any point is resumed by the next.

#[cfg(feature = "acme")]
pub mod client;
pub mod external;
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
