//! A bound of the handshakes that run at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The handshakes of a process that have begun and not ended.
pub(super) struct RunningHandshakes {
    count: AtomicUsize,
    most: usize,
}

impl RunningHandshakes {
    pub(super) fn new(most: usize) -> Arc<RunningHandshakes> {
        Arc::new(RunningHandshakes { count: AtomicUsize::new(0), most })
    }

    /// Returns the place of one more handshake; `None` if there is none.
    pub(super) fn begin(self: &Arc<Self>) -> Option<HandshakePlace> {
        let before = self.count.fetch_add(1, Ordering::Relaxed);
        // The drop of a place too many takes it back.
        let place = HandshakePlace(Arc::clone(self));
        (before < self.most).then_some(place)
    }
}

/// The place of a handshake among the running ones. It is free again when this is dropped.
pub(super) struct HandshakePlace(Arc<RunningHandshakes>);

impl Drop for HandshakePlace {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}
