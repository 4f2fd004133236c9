//! Facts about a connection that its requests share.

use std::net::SocketAddr;

/// Facts about a connection. A driver fills them in, and a layer such as TLS adds its own before the first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Connection {
    /// The other end, as the socket reports it.
    pub peer: Peer,
    /// The listener that accepted it.
    pub local: Local,
    /// The scheme of its requests' URLs.
    pub scheme: Scheme,
}

impl Connection {
    /// A plaintext connection.
    pub const fn plaintext(peer: Peer, local: Local) -> Connection {
        Connection { peer, local, scheme: Scheme::Http }
    }
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// An address and a port.
    Internet(SocketAddr),
    /// A process on this machine, over a Unix socket.
    Unix,
}

/// The listener that accepted a connection, by its place in the list of listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Local {
    /// Its place in the list of listening addresses, from 0.
    pub listener: u16,
}

/// A URL scheme (RFC 9110 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plaintext.
    Http,
    /// A layer encrypts the connection.
    Https,
}
