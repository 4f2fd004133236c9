//! Connections on their way from the thread that accepted them to the worker that serves them.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenfold_sys::eventfd::EventFd;
use tenfold_sys::socket::Socket;

/// An accepted connection: its socket, its peer, and the listener that it came to.
pub(crate) type Accepted = (Socket, Option<SocketAddr>, u16);

/// A bounded queue into one worker, which hears of it by an eventfd.
pub(crate) struct Handoff {
    queue: Mutex<VecDeque<Accepted>>,
    bound: usize,
    event: EventFd,
    /// Nothing more will come.
    closed: AtomicBool,
}

impl Handoff {
    /// A queue of at most `bound` connections.
    pub(crate) fn new(bound: usize) -> io::Result<Handoff> {
        let (queue, closed) = (Mutex::default(), AtomicBool::new(false));
        Ok(Handoff { queue, bound, event: EventFd::new()?, closed })
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Accepted>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the worker waits for.
    pub(crate) fn event(&self) -> &EventFd {
        &self.event
    }

    /// Hands a connection to the worker.
    ///
    /// # Errors
    /// The connection, when the queue is full.
    pub(crate) fn put(&self, connection: Accepted) -> Result<(), Accepted> {
        let mut queue = self.lock();
        if queue.len() >= self.bound {
            return Err(connection);
        }
        queue.push_back(connection);
        // The worker takes until there is none, so one signal is enough for all that wait.
        if queue.len() == 1 {
            self.event.signal();
        }
        Ok(())
    }

    /// The next connection.
    pub(crate) fn take(&self) -> Option<Accepted> {
        self.lock().pop_front()
    }

    /// Nothing more will come.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.event.signal();
    }

    /// Whether everything that came was taken, and nothing more will come.
    pub(crate) fn is_over(&self) -> bool {
        self.closed.load(Ordering::Acquire) && self.lock().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> Accepted {
        let null = std::fs::File::open("/dev/null").expect("there is a null device");
        (std::os::fd::OwnedFd::from(null).into(), None, 0)
    }

    #[test]
    fn a_full_queue_gives_the_connection_back_and_a_closed_one_is_over_when_it_is_empty() {
        let handoff = Handoff::new(2).expect("descriptors");
        assert!(handoff.put(connection()).is_ok() && handoff.put(connection()).is_ok());
        assert!(handoff.put(connection()).is_err());
        handoff.close();
        assert!(!handoff.is_over());
        assert!(handoff.take().is_some() && handoff.take().is_some() && handoff.take().is_none());
        assert!(handoff.is_over());
    }
}
