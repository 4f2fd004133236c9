//! `pool`: a fixed number of threads take accepted connections from a bounded queue, and serve each until
//! it is closed.
//!
//! When every thread holds a connection, the next ones wait in the queue, however short their requests;
//! when the queue is full, they are refused.
//!
//! System calls of a connection: accept4, a futex to wake a thread that sleeps, recv, send (or sendfile),
//! …, close.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use tenfold_sys::socket::{Listener, Socket};

use super::thread::STACK_BYTES;
use crate::driver::accepting::accept_each;
use crate::driver::{blocking, of_accepted};
use crate::plan::Plan;
use crate::protocol::{Event, Protocol};

type Connection = (Socket, Option<SocketAddr>, u16);

/// Serves connections on a pool of threads until the server leaves; those in the queue are served, too.
pub(crate) fn run<P: Protocol>(plan: &Plan, listeners: &[Listener], protocol: &P) -> Result<(), String> {
    let (sender, receiver) = sync_channel::<Connection>(plan.bounds.pool_queue);
    let receiver = Mutex::new(receiver);
    thread::scope(|scope| {
        for number in 0..plan.bounds.pool_threads {
            let (protocol, receiver) = (protocol.clone(), &receiver);
            thread::Builder::new()
                .name(format!("pool-{number}"))
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, move || serve_from(receiver, plan, &protocol))
                .map_err(|error| format!("cannot start thread {number} of the pool: {error}"))?;
        }
        // Moved in, so that the queue ends with the accepting, and the threads with the queue.
        let sender = sender;
        accept_each(
            listeners,
            false,
            protocol,
            || (),
            |socket, peer, listener| {
                // Before it waits in the queue, so that no address fills that.
                if !protocol.admit(&of_accepted(peer)) {
                    return;
                }
                match sender.try_send((socket, peer, listener)) {
                    Ok(()) => {}
                    Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                        protocol.dismiss(|| of_accepted(peer));
                        protocol.observe(Event::TooMany);
                    }
                }
            },
        )
    })
}

fn serve_from<P: Protocol>(queue: &Mutex<Receiver<Connection>>, plan: &Plan, protocol: &P) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((socket, peer, listener)) = next else { return protocol.leave() };
        // Counted here, so that it is counted before it is closed.
        protocol.observe(Event::Accepted);
        blocking::serve(socket, peer, listener, plan, protocol);
        protocol.dismiss(|| of_accepted(peer));
        protocol.observe(Event::Closed);
        // Before it waits for a connection, which may take long.
        protocol.leave();
    }
}
