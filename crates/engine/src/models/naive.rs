//! `naive`: one blocking process accepts a connection, serves it until it is closed, and accepts the next.
//!
//! Whoever else connects waits in the backlog. With several listening addresses each is asked in turn,
//! because one thread that blocks can wait for one thing only.
//!
//! System calls of a connection: accept4, recv, send (or sendfile), …, close.

use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::socket::Listener;

use crate::driver::blocking::{self, SLICE};
use crate::driver::{exhausted, interrupted, read_clock};
use crate::plan::Plan;
use crate::protocol::{Event, Protocol};

/// Serves one connection after the other until the server leaves.
pub(crate) fn run<P: Protocol>(plan: &Plan, listeners: &[Listener], protocol: &P) -> Result<(), String> {
    accept_each(
        listeners,
        protocol,
        || (),
        |socket, peer, listener| {
            protocol.observe(Event::Accepted);
            blocking::serve(socket, peer, listener, plan.sender, &plan.bounds, protocol);
            protocol.observe(Event::Closed);
        },
    )
}

/// Accepts in turn on every listener, as long as the server serves, and hands each connection on. Calls
/// `look_round` before each wait, which lasts a second at most.
pub(crate) fn accept_each<P: Protocol>(
    listeners: &[Listener],
    protocol: &P,
    mut look_round: impl FnMut(),
    mut hand_on: impl FnMut(tenfold_sys::socket::Socket, Option<std::net::SocketAddr>, u16),
) -> Result<(), String> {
    let slice = SLICE / u32::try_from(listeners.len()).unwrap_or(1).max(1);
    for listener in listeners {
        let set = listener.set_nonblocking(false).and_then(|()| listener.set_wait_slice(slice));
        set.map_err(|error| format!("cannot let {} block: {error}", listener.address()))?;
    }
    while lifecycle::phase() == Phase::Serving {
        for (listener, number) in listeners.iter().zip(0..) {
            read_clock();
            protocol.rest();
            look_round();
            match listener.accept(false) {
                Ok((socket, peer)) => hand_on(socket, peer, number),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock || interrupted(&error) => {}
                Err(error) if exhausted(&error) => {
                    protocol.observe(Event::Exhausted);
                    std::thread::sleep(crate::EXHAUSTED_PAUSE);
                }
                // Sockets that are being given up are shut down.
                Err(_) if lifecycle::phase() != Phase::Serving => break,
                Err(error) => return Err(format!("cannot accept on {}: {error}", listener.address())),
            }
        }
    }
    read_clock();
    protocol.leave();
    Ok(())
}
