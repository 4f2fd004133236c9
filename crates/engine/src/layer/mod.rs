//! Layers: protocols below the protocol, over the same [`tenfold_http::Io`].
//!
//! A layer wraps the driver's `Io` for one activation. While the connection is idle, the slot holds the layer's state
//! beside the protocol's.

pub mod framed;
mod state;

pub use state::LayerState;
