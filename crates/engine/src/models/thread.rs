//! `thread`: a thread per connection, which ends with its connection.
//!
//! The accepting thread starts a thread for each connection, which serves it as `naive` does.
//!
//! At the bound, the longest idle connection is evicted: its input is shut down, and its thread closes it.
//!
//! System calls of a connection: accept4, then clone3 and what a thread's stack needs (mmap, mprotect),
//! recv, write (or sendfile), …, close, exit, and munmap or madvise.
//!
//! Loops: `crates/engine/src/drivers/blocking/accept.rs` for all connections,
//! `crates/engine/src/drivers/blocking/serve.rs` for one. Page: `docs/explanation/models/thread.md`.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tenfold_sys::process::threads;

use super::threads::{STACK_BYTES, Served, Threads, lock};
use crate::drivers::blocking::accept::accept_each;
use crate::drivers::blocking::serve::serve;
use crate::plan::Plan;
use crate::protocol::{Event, Protocol};
use crate::worker::intake::{Intake, of_accepted};

/// Starts a thread for each connection until the server leaves, and waits for all of them.
pub(crate) fn run<P: Protocol>(plan: &Plan, intake: &Intake<'_>, protocol: &P) -> Result<(), String> {
    let threads = Mutex::<Threads>::default();
    threads::scope(|scope| {
        accept_each(
            intake.listeners,
            false,
            protocol,
            || (),
            |socket, peer, listener| {
                let served = Served::new(socket);
                let Some(place) = admit(&threads, &served, peer, plan, protocol) else { return };
                let (protocol_of_thread, threads_too) = (protocol.clone(), &threads);
                let serve = move || {
                    let protocol = protocol_of_thread;
                    protocol.observe(Event::Accepted);
                    serve(&served.socket, peer, listener, plan, &protocol, &served.idle());
                    drop(served);
                    protocol.on_close(|| of_accepted(peer));
                    protocol.observe(Event::Closed);
                    protocol.drain();
                    lock(threads_too).remove(place);
                };
                if scope.spawn(c"connection", STACK_BYTES, serve).is_err() {
                    // The socket was dropped with the closure.
                    lock(&threads).remove(place);
                    protocol.on_close(|| of_accepted(peer));
                    protocol.observe(Event::Exhausted);
                }
            },
        )
    })
}

/// Admits a connection within the bound, or after an eviction. Returns its place; `None` if it is refused.
fn admit<P: Protocol>(
    threads: &Mutex<Threads>,
    served: &Arc<Served>,
    peer: Option<SocketAddr>,
    plan: &Plan,
    protocol: &P,
) -> Option<usize> {
    let mut threads = lock(threads);
    let full = threads.count() - threads.leaving() >= plan.bounds.connections;
    let evicted = if full { threads.idle_one() } else { None };
    if full && evicted.is_none() {
        protocol.observe(Event::TooMany);
        return None;
    }
    if !protocol.admit(&of_accepted(peer)) {
        return None;
    }
    if let Some(place) = evicted {
        threads.give_way(place, protocol);
    }
    Some(threads.insert(Arc::downgrade(served)))
}
