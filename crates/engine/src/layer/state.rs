//! The state of a connection that has a layer.

use super::proxied::ProxiedPeer;

/// The state that a slot holds for a connection with a layer or behind a proxy. Their parts are boxed and absent until
/// they are needed, so that a slot stays small.
pub struct LayerState<L, T> {
    pub(super) layer: Option<Box<L>>,
    /// The result of the PROXY header, once it was received.
    pub(super) proxied: Option<Box<ProxiedPeer>>,
    pub(super) above: T,
}

impl<L, T: Default> Default for LayerState<L, T> {
    fn default() -> LayerState<L, T> {
        LayerState { layer: None, proxied: None, above: T::default() }
    }
}

const _: () = assert!(size_of::<LayerState<[u64; 8], u32>>() <= 24);
