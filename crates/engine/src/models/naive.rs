//! `naive`: one blocking process accepts a connection, serves it until it is closed, and accepts the next.
//!
//! Other connections wait in the backlog. For them, a connection is closed that is idle for a second, or whose client
//! still sends a second after its last response.
//!
//! System calls of a connection: accept4, recv, write (or sendfile), …, close. With several listening addresses, a poll
//! precedes accept4, because accept4 waits for one listener. While a connection is idle, a poll that does not wait
//! checks the backlog once a second.
//!
//! Loops: `crates/engine/src/drivers/blocking/accept.rs` for all connections,
//! `crates/engine/src/drivers/blocking/serve.rs` for one. Page: `docs/explanation/models/naive.md`.

use tenfold_http::Instant;

use crate::drivers::blocking::accept::{Backlog, accept_each};
use crate::drivers::blocking::io::Idle;
use crate::drivers::blocking::serve::serve;
use crate::plan::Plan;
use crate::protocol::{Event, Protocol};
use crate::worker::intake::{Intake, of_accepted};

/// Serves one connection after the other until the server leaves.
pub(crate) fn run<P: Protocol>(plan: &Plan, intake: &Intake<'_>, protocol: &P) -> Result<(), String> {
    let idle = GivesWay { backlog: Backlog::of(intake.listeners), protocol };
    accept_each(
        intake.listeners,
        false,
        protocol,
        || (),
        |socket, peer, listener| {
            if !protocol.admit(&of_accepted(peer)) {
                return;
            }
            protocol.observe(Event::Accepted);
            serve(&socket, peer, listener, plan, protocol, &idle);
            drop(socket);
            protocol.on_close(|| of_accepted(peer));
            protocol.observe(Event::Closed);
        },
    )
}

/// Evicts an idle connection for a connection in the backlog.
struct GivesWay<'a, P> {
    backlog: Backlog,
    protocol: &'a P,
}

impl<P: Protocol> Idle for GivesWay<'_, P> {
    fn gives_way(&self, _since: Instant) -> bool {
        let gives_way = self.backlog.is_waiting();
        if gives_way {
            self.protocol.observe(Event::Evicted);
        }
        gives_way
    }
}
