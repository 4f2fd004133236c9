//! Layers: protocols below the protocol, over the same [`Io`](crate::Io), such as TLS.
//!
//! A [`Layer`] turns bytes of a driver into plaintext and back, in records. [`LayeredIo`] is the connection that the
//! protocol sees: it wraps the driver's `Io` for one activation. Between activations, the state of the layer is all
//! that is left.

mod format;
mod io;
mod kernel;
mod plaintext;
mod queue;
mod sending;
mod turns;

pub use format::{FileBytes, FileReader, Layer, LayerProgress};
pub use io::LayeredIo;
pub use kernel::KernelSealing;
pub use turns::HandshakeTurns;
