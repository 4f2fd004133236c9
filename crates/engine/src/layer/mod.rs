//! Protocols over a layer, and connections from a proxy.
//!
//! The slot of an idle connection has the state of the layer and that of the protocol.

mod files;
mod protocol;
mod proxied;
mod state;

pub use protocol::Layered;
pub use proxied::ProxyListeners;
pub use state::LayerState;
