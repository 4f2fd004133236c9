//! A request in flight, or in the queue of its connection.

/// A request without a complete response.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingRequest {
    pub(super) due: u64,
    /// The time when its first byte was sent; 0 before.
    pub(super) sent: u64,
    /// The time when the first byte of its response arrived; 0 before.
    pub(super) first: u64,
    pub(super) target: u32,
}
