//! Layers: protocols below the protocol, over the same [`Io`](crate::Io), such as TLS.
//!
//! A [`Layer`] converts a driver's bytes to plaintext and back, in records. [`LayeredIo`] is the protocol's
//! connection: it wraps the driver's `Io` for one activation. Between activations, only the state of the
//! layer remains.

mod format;
mod io;
mod kernel;
mod plaintext;
mod queue;
mod sending;
mod turns;

pub use format::{FileBytes, FileReader, Layer, LayerProgress, farewell};
pub use io::LayeredIo;
pub use kernel::KernelSealing;
pub use turns::HandshakeTurns;
