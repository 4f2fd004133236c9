//! `naive`: one blocking process accepts a connection, serves it until it is closed, and accepts the next.
//!
//! Whoever else connects waits in the backlog.
//!
//! System calls of a connection: accept4, recv, send (or sendfile), …, close. With several listening
//! addresses a poll stands in front of accept4, because one thread that waits can wait for one thing only.

use tenfold_sys::socket::Listener;

use crate::driver::accepting::accept_each;
use crate::driver::{blocking, of_accepted};
use crate::plan::Plan;
use crate::protocol::{Event, Protocol};

/// Serves one connection after the other until the server leaves.
pub(crate) fn run<P: Protocol>(plan: &Plan, listeners: &[Listener], protocol: &P) -> Result<(), String> {
    accept_each(
        listeners,
        false,
        protocol,
        || (),
        |socket, peer, listener| {
            if !protocol.admit(&of_accepted(peer)) {
                return;
            }
            protocol.observe(Event::Accepted);
            blocking::serve(socket, peer, listener, plan, protocol);
            protocol.dismiss(|| of_accepted(peer));
            protocol.observe(Event::Closed);
        },
    )
}
