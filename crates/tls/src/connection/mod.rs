//! The life of one TLS connection: the handshake, then records over buffers of our own.
//!
//! [`TlsServer`] is a [`Layer`](tenfold_http::layer::Layer). rustls performs the handshake. A connection of TLS 1.3 is
//! taken from it afterwards: its state is then two traffic secrets and two sequence numbers (`records`). A connection
//! of TLS 1.2 stays with rustls (`unbuffered`).

mod capture;
mod handshake;
mod kernel;
mod keys;
mod records;
mod running;
mod server;
mod unbuffered;

#[cfg(test)]
mod tests;

pub(crate) use capture::capture_names;
pub use capture::prepare;
pub use kernel::KernelUse;
pub use keys::sample_kernel_parameters;
pub use server::{HandshakeResult, TlsServer, TlsState};
