//! A protocol through a layer, as a protocol.
//!
//! While the connection is idle, the slot holds the layer's state beside the protocol's.

mod files;
mod protocol;
mod proxied;
mod state;

pub use protocol::Layered;
pub use proxied::ProxyListeners;
pub use state::LayerState;
