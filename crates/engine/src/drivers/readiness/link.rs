//! Where a readiness driver and a connection's `Io` meet: what is ready, and what is waited for.
//!
//! Atomics, because the `Io` may be polled on another thread than the driver's; all access is relaxed,
//! because the task's hand-over orders it. On the driver's own thread they cost what plain words cost.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use tenfold_http::Instant;

/// Something may be read: bytes, an end, or an error.
pub(crate) const READ: u8 = 1;
/// There may be room to write.
pub(crate) const WRITE: u8 = 2;
/// The peer has ended its output: one more receive is due even after a short one.
pub(crate) const ENDED: u8 = 4;
/// The connection is gone.
pub(crate) const GONE: u8 = 8;
/// Not an event but a wish: to be polled again, after others had their turn.
pub(crate) const AGAIN: u8 = 16;
/// There is an error to be fetched, or something in the socket's error queue.
pub(crate) const FAULT: u8 = 64;
/// Among the ready bits: bytes were received or sent in this activation.
pub(crate) const MOVED: u8 = 32;

pub(crate) struct Link {
    ready: AtomicU8,
    want: AtomicU8,
    deadline: AtomicU64,
}

impl Link {
    pub(crate) fn new() -> Link {
        Link { ready: AtomicU8::new(0), want: AtomicU8::new(0), deadline: AtomicU64::new(u64::MAX) }
    }

    /// Begins an activation with these bits ready.
    pub(crate) fn begin(&self, ready: u8) {
        self.ready.store(ready, Relaxed);
        self.want.store(0, Relaxed);
    }

    pub(crate) fn is_ready(&self, bits: u8) -> bool {
        self.ready.load(Relaxed) & bits != 0
    }

    pub(crate) fn add_ready(&self, bits: u8) {
        self.ready.store(self.ready.load(Relaxed) | bits, Relaxed);
    }

    pub(crate) fn clear_ready(&self, bits: u8) {
        self.ready.store(self.ready.load(Relaxed) & !bits, Relaxed);
    }

    /// What the task waits for: bits of which one is enough.
    pub(crate) fn wants(&self) -> u8 {
        self.want.load(Relaxed)
    }

    /// Until when.
    pub(crate) fn deadline(&self) -> Instant {
        Instant(self.deadline.load(Relaxed))
    }

    /// The task begins to wait.
    pub(crate) fn wait_for(&self, bits: u8, by: Instant) {
        self.want.store(bits, Relaxed);
        self.deadline.store(by.0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ready_is_remembered_until_it_is_used_up() {
        let link = Link::new();
        link.begin(READ);
        link.add_ready(WRITE | ENDED);
        link.clear_ready(READ);
        assert!(!link.is_ready(READ) && link.is_ready(WRITE) && link.is_ready(READ | ENDED));
        link.wait_for(READ, Instant(7));
        assert_eq!((link.wants(), link.deadline()), (READ, Instant(7)));
        // The next connection knows nothing of it.
        link.begin(READ | WRITE);
        assert!(!link.is_ready(ENDED | GONE) && link.wants() == 0);
    }
}
