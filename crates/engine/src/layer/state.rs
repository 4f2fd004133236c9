//! The state of a connection that has a layer.

/// The state that a slot holds for a connection with a layer. The layer's part is boxed and absent until the layer
/// needs it, so that a slot stays small.
#[derive(Debug)]
pub struct LayerState<L, T> {
    pub(super) layer: Option<Box<L>>,
    pub(super) above: T,
}

impl<L, T: Default> Default for LayerState<L, T> {
    fn default() -> LayerState<L, T> {
        LayerState { layer: None, above: T::default() }
    }
}

const _: () = assert!(size_of::<LayerState<[u64; 8], u32>>() <= 16);
