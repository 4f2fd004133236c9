//! Connections that threads serve, one each: what the thread that accepts knows of them.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tenfold_sys::socket::Socket;

use crate::drivers::blocking::io::IdleSince;
use crate::protocol::{Event, Protocol};
use crate::worker::eviction::Places;
use crate::worker::tick::read_clock;

/// Bytes of a thread's stack. A request's deepest path needs a tenth of it; only pages that are touched
/// are memory.
pub(super) const STACK_BYTES: usize = 256 * 1024;

/// A connection of a thread. The thread alone keeps it, so that its socket is closed when the thread drops it.
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
    /// The place of the connection that gives way to a new one, if any is idle.
    pub(super) fn idle_one(&mut self) -> Option<usize> {
        let now = read_clock();
        self.longest_idle(|_, served| {
            let served = served.upgrade()?;
            let idle = served.idle();
            idle.idle_for(now).filter(|_| idle.lingers() || !served.socket.has_input())
        })
    }

    /// Ends the input of a connection that [`Threads::idle_one`] returned: its thread wakes up and closes it. A request
    /// that has come meanwhile is still answered. A thread that discards bytes looks itself: without input, the kernel
    /// would announce no more room, and a client that has none would not notice the close.
    pub(super) fn give_way<P: Protocol>(&mut self, place: usize, protocol: &P) {
        if let Some(served) = self.evict(place).upgrade()
            && !served.idle().evict_lingering()
        {
            served.socket.shut_down_reading();
        }
        protocol.observe(Event::Evicted);
    }
}
