//! A bound on concurrent handshakes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The handshakes in progress in a process.
pub(super) struct RunningHandshakes {
    count: AtomicUsize,
    most: usize,
}

impl RunningHandshakes {
    pub(super) fn new(most: usize) -> Arc<RunningHandshakes> {
        Arc::new(RunningHandshakes { count: AtomicUsize::new(0), most })
    }

    /// Reserves room for another handshake; `None` if there is no room.
    pub(super) fn begin(self: &Arc<Self>) -> Option<HandshakePlace> {
        let before = self.count.fetch_add(1, Ordering::Relaxed);
        // Dropping an excess reservation releases it.
        let place = HandshakePlace(Arc::clone(self));
        (before < self.most).then_some(place)
    }
}

/// The room for a handshake, released on drop.
pub(super) struct HandshakePlace(Arc<RunningHandshakes>);

impl Drop for HandshakePlace {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_when_its_handshake_ends() {
        let running = RunningHandshakes::new(1);
        let first = running.begin().expect("there is a place");
        assert!(running.begin().is_none() && running.begin().is_none(), "there is one place");
        drop(first);
        assert!(running.begin().is_some());
    }
}
