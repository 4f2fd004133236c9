//! `pool`: a fixed number of threads take accepted connections from a bounded queue, and serve each until
//! it is closed.
//!
//! If every thread has a connection, further connections wait in the queue. Idle connections are evicted for them, the
//! longest idle first: their input is shut down. If the queue is full, new connections are refused.
//!
//! System calls of a connection: accept4, a futex to wake a thread that sleeps, recv, write (or sendfile),
//! …, close.
//!
//! Loops: `crates/engine/src/drivers/blocking/accept.rs` for all connections,
//! `crates/engine/src/drivers/blocking/serve.rs` for one. Page: `docs/explanation/models/pool.md`.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use tenfold_sys::socket::Socket;

use super::threads::{STACK_BYTES, Served, Threads, lock};
use crate::drivers::blocking::accept::accept_each;
use crate::drivers::blocking::serve::serve;
use crate::plan::Plan;
use crate::protocol::{Event, Protocol};
use crate::worker::intake::{Intake, of_accepted};

type QueuedConnection = (Socket, Option<SocketAddr>, u16);

/// The connections of the threads, and the connections in the queue.
#[derive(Default)]
struct Load {
    threads: Threads,
    /// Connections in the queue.
    waiting: usize,
}

impl Load {
    /// Evicts an idle connection for each connection that waits for a thread.
    fn make_room<P: Protocol>(&mut self, plan: &Plan, protocol: &P) {
        let free = plan.bounds.pool_threads - self.threads.count();
        let coming = free + self.threads.leaving();
        for _ in coming..self.waiting {
            let Some(place) = self.threads.idle_one() else { return };
            self.threads.give_way(place, protocol);
        }
    }
}

/// Serves connections on a pool of threads until the server leaves and the queue is empty.
pub(crate) fn run<P: Protocol>(plan: &Plan, intake: &Intake<'_>, protocol: &P) -> Result<(), String> {
    let (sender, receiver) = sync_channel::<QueuedConnection>(plan.bounds.pool_queue);
    let (receiver, load) = (Mutex::new(receiver), Mutex::<Load>::default());
    thread::scope(|scope| {
        for number in 0..plan.bounds.pool_threads {
            let (protocol, receiver, load) = (protocol.clone(), &receiver, &load);
            thread::Builder::new()
                .name(format!("pool-{number}"))
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, move || serve_from(receiver, load, plan, &protocol))
                .map_err(|error| format!("cannot start thread {number} of the pool: {error}"))?;
        }
        // The closure owns the sender: the queue ends with the accept loop, and the threads end with the queue.
        let sender = sender;
        accept_each(
            intake.listeners,
            false,
            protocol,
            // A connection may have become idle after others began to wait.
            || lock(&load).make_room(plan, protocol),
            |socket, peer, listener| {
                // Admitted before it waits, so that no address fills the queue.
                if !protocol.admit(&of_accepted(peer)) {
                    return;
                }
                let mut load = lock(&load);
                match sender.try_send((socket, peer, listener)) {
                    Ok(()) => load.waiting += 1,
                    Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                        protocol.on_close(|| of_accepted(peer));
                        protocol.observe(Event::TooMany);
                    }
                }
                load.make_room(plan, protocol);
            },
        )
    })
}

fn serve_from<P: Protocol>(
    queue: &Mutex<Receiver<QueuedConnection>>,
    load: &Mutex<Load>,
    plan: &Plan,
    protocol: &P,
) {
    loop {
        let next = lock(queue).recv();
        let Ok((socket, peer, listener)) = next else { return protocol.drain() };
        let served = Served::new(socket);
        let place = {
            let mut load = lock(load);
            load.waiting -= 1;
            load.threads.insert(Arc::downgrade(&served))
        };
        // Counted before its close.
        protocol.observe(Event::Accepted);
        serve(&served.socket, peer, listener, plan, protocol, &served.idle());
        drop(served);
        protocol.on_close(|| of_accepted(peer));
        protocol.observe(Event::Closed);
        // The wait for the next connection may be long.
        protocol.drain();
        lock(load).threads.remove(place);
    }
}
