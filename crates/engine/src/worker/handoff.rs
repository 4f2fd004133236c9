//! The queue of accepted connections between the accepting thread and a worker.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use tenfold_sys::socket::Socket;

use super::sync::{AtomicBool, EventFd, Mutex, MutexGuard, Ordering, PoisonError};

/// An accepted connection: its socket, its peer, and its listener.
pub(crate) type AcceptedConnection = (Socket, Option<SocketAddr>, u16);

/// A bounded queue into one worker, which an eventfd wakes.
pub(crate) struct Handoff {
    queue: Mutex<VecDeque<AcceptedConnection>>,
    bound: usize,
    event: EventFd,
    /// Whether the queue has ended.
    closed: AtomicBool,
}

impl Handoff {
    /// A queue of at most `bound` connections.
    pub(crate) fn new(bound: usize) -> io::Result<Handoff> {
        let (queue, closed) = (Mutex::new(VecDeque::new()), AtomicBool::new(false));
        Ok(Handoff { queue, bound, event: EventFd::new()?, closed })
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<AcceptedConnection>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the descriptor that becomes readable when a connection is queued.
    pub(crate) fn event(&self) -> &EventFd {
        &self.event
    }

    /// Queues a connection for the worker.
    ///
    /// # Errors
    /// The connection, when the queue is full.
    pub(crate) fn put(&self, connection: AcceptedConnection) -> Result<(), AcceptedConnection> {
        let mut queue = self.lock();
        if queue.len() >= self.bound {
            return Err(connection);
        }
        queue.push_back(connection);
        // The worker empties the queue, so one signal suffices for all entries.
        if queue.len() == 1 {
            self.event.signal();
        }
        Ok(())
    }

    /// The next connection.
    pub(crate) fn take(&self) -> Option<AcceptedConnection> {
        self.lock().pop_front()
    }

    /// Ends the queue.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.event.signal();
    }

    /// Whether the queue has ended and is empty.
    pub(crate) fn is_over(&self) -> bool {
        self.closed.load(Ordering::Acquire) && self.lock().is_empty()
    }
}
