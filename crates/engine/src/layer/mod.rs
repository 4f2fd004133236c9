//! Layers: protocols below the protocol, over the same [`tenfold_http::Io`].
//!
//! A layer wraps the driver's `Io` for one activation; what it has to remember of a connection that rests
//! lies in the slot, beside the protocol's own memory.

pub mod xor;
