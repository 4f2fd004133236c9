//! The intake of a worker: the source of its connections.

use std::net::SocketAddr;

use tenfold_http::Peer;
use tenfold_sys::socket::Listener;

use super::handoff::Handoff;

/// The sources of a worker's connections.
#[derive(Clone, Copy)]
pub(crate) struct Intake<'a> {
    /// The sockets on which it accepts connections.
    pub(crate) listeners: &'a [Listener],
    /// The queue of a thread that accepts connections for the worker.
    pub(crate) handed: Option<&'a Handoff>,
}

impl<'a> Intake<'a> {
    /// The worker accepts its connections.
    pub(crate) fn listeners(listeners: &'a [Listener]) -> Intake<'a> {
        Intake { listeners, handed: None }
    }

    /// Another thread accepts its connections.
    pub(crate) fn handed(handoff: &'a Handoff) -> Intake<'a> {
        Intake { listeners: &[], handed: Some(handoff) }
    }
}

/// The peer that `accept` reported; `None` on a Unix socket.
pub(crate) fn of_accepted(peer: Option<SocketAddr>) -> Peer {
    peer.map_or(Peer::Unix, Peer::Internet)
}
