//! The life of a TLS connection: the handshake, then records in the server's own buffers.
//!
//! [`TlsServer`] is a [`Layer`](tenfold_http::layer::Layer). rustls performs the handshake. A TLS 1.3
//! connection is then extracted from rustls: its state is two traffic secrets and two sequence numbers
//! (`records`). rustls keeps a TLS 1.2 connection (`unbuffered`).

mod capture;
mod handshake;
mod hello;
mod kernel;
mod keys;
mod records;
mod server;
mod unbuffered;

#[cfg(test)]
mod tests;

pub(crate) use capture::capture_names;
pub use capture::prepare;
pub use kernel::KernelUse;
pub use keys::sample_kernel_parameters;
pub use server::{HandshakeResult, TlsServer, TlsState};
