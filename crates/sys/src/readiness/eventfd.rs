//! A counter that makes a descriptor readable (`man 2 eventfd`), with which one thread wakes another's loop.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{EventfdFlags, eventfd};

/// A non-blocking eventfd.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// Creates an eventfd at zero.
    pub fn new() -> io::Result<EventFd> {
        Ok(EventFd(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Makes it readable. A full counter is readable already.
    pub fn signal(&self) {
        let _ = rustix::io::retry_on_intr(|| rustix::io::write(&self.0, &1u64.to_ne_bytes()));
    }

    /// Makes it unreadable until the next signal.
    pub fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
    }

    /// Its number, for registration with a selector.
    pub fn number(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readiness::poll::PollList;

    #[test]
    fn signals_add_up_until_they_are_cleared() {
        let event = EventFd::new().expect("descriptors");
        let readable = || {
            let (mut list, mut heard) = (PollList::new(), false);
            list.set(event.number(), 0, true, false);
            list.wait(Some(0), |ready| heard = ready.read).expect("it can be polled");
            heard
        };
        assert!(!readable());
        (0..100).for_each(|_| event.signal());
        assert!(readable());
        event.clear();
        assert!(!readable());
        event.clear();
    }
}
