//! Facts about a connection that its requests share.

use std::net::SocketAddr;
use std::sync::Arc;

/// Facts about a connection. A driver fills them in, and a layer such as TLS adds its own before the first request.
/// A clone costs no allocation; a response that comes later keeps one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Connection {
    /// The other end, as the socket reports it.
    pub peer: Peer,
    /// The listener that accepted it.
    pub local: Local,
    /// The scheme of its requests' URLs.
    pub scheme: Scheme,
    /// The result of its TLS handshake, if it has one. The layer keeps it while the connection is idle.
    pub tls: Option<Arc<TlsFacts>>,
}

impl Connection {
    /// A plaintext connection.
    pub const fn plaintext(peer: Peer, local: Local) -> Connection {
        Connection { peer, local, scheme: Scheme::Http, tls: None }
    }
}

/// The result of a TLS handshake, as its layer reports it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TlsFacts {
    /// The protocol version, by the name that logs use: `TLSv1.3`.
    pub version: &'static str,
    /// The cipher suite, by its name in the IANA registry: `TLS_AES_128_GCM_SHA256`.
    pub cipher: &'static str,
    /// The host that the client asked for (SNI, RFC 6066 §3), in lower case; none if it sent no name.
    pub server_name: Option<Box<str>>,
    /// The application protocol that the server chose (ALPN, RFC 7301), one of its own list: `http/1.1`.
    pub alpn: Option<&'static str>,
    /// Whether the handshake resumed an earlier session.
    pub resumed: bool,
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
