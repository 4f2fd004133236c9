//! The intake of a worker: the source of its connections.

use std::net::SocketAddr;

use tenfold_http::Peer;
use tenfold_sys::socket::Listener;

use super::handoff::Handoff;

/// The source of a worker's connections.
pub(crate) enum Intake<'a> {
    /// It accepts them itself.
    Listeners(&'a [Listener]),
    /// Another thread accepts them and hands them over.
    Handed(&'a Handoff),
}

impl<'a> Intake<'a> {
    /// The listening sockets from which the worker accepts, and the queue from which it takes connections.
    pub(crate) fn parts(&self) -> (&'a [Listener], Option<&'a Handoff>) {
        match *self {
            Intake::Listeners(listeners) => (listeners, None),
            Intake::Handed(handoff) => (&[], Some(handoff)),
        }
    }

    /// The listening sockets from which the worker accepts.
    pub(crate) fn listeners(&self) -> &'a [Listener] {
        self.parts().0
    }
}

/// The peer that `accept` reported; `None` on a Unix socket.
pub(crate) fn of_accepted(peer: Option<SocketAddr>) -> Peer {
    peer.map_or(Peer::Unix, Peer::Internet)
}
