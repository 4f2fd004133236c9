//! The connections of threads that serve one connection each, as the accepting thread sees them.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tenfold_sys::socket::Socket;

use crate::drivers::blocking::io::IdleSince;
use crate::protocol::{Event, Protocol};
use crate::worker::eviction::Places;
use crate::worker::tick::read_clock;

/// Bytes of a thread's stack. The deepest call path of a request needs a tenth of it. Unused pages take no memory.
pub(super) const STACK_BYTES: usize = 256 * 1024;

/// A connection of a thread. Only its thread owns it, so that the socket is closed when the thread drops it.
pub(super) struct Served {
    pub(super) socket: Socket,
    idle_since: AtomicU64,
}

impl Served {
    pub(super) fn new(socket: Socket) -> Arc<Served> {
        Arc::new(Served { socket, idle_since: AtomicU64::new(0) })
    }

    pub(super) fn idle(&self) -> IdleSince<'_> {
        IdleSince(&self.idle_since)
    }
}

/// The connections of all threads.
pub(super) type Threads = Places<Weak<Served>>;

pub(super) fn lock<T>(threads: &Mutex<T>) -> MutexGuard<'_, T> {
    threads.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Threads {
    /// The place of the connection to evict, if one is idle.
    pub(super) fn idle_one(&mut self) -> Option<usize> {
        let now = read_clock();
        self.longest_idle(|_, served| {
            let served = served.upgrade()?;
            let idle = served.idle();
            idle.idle_for(now).filter(|_| idle.lingers() || !served.socket.has_input())
        })
    }

    /// Evicts a connection that [`Threads::idle_one`] returned: ends its input, so that its thread wakes up and closes
    /// it. A request that has just arrived is still answered. A thread that discards bytes checks by itself: after a
    /// shutdown of the input, the kernel would announce no more room, and a client without room would not notice the
    /// close.
    pub(super) fn give_way<P: Protocol>(&mut self, place: usize, protocol: &P) {
        if let Some(served) = self.evict(place).upgrade()
            && !served.idle().evict()
        {
            served.socket.shut_down_reading();
        }
        protocol.observe(Event::Evicted);
    }
}
