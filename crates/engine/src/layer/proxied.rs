//! Connections that begin with a PROXY header.
//!
//! The header comes before the layer. Its client replaces the peer of the connection for the layer and the protocol.
//! The bound on connections by address counts the client.

use tenfold_http::proxy::{NoHeader, ProxyError, receive};
use tenfold_http::{Connection, Io, Next, Peer, TrustedProxy};

use crate::protocol::Protocol;

/// An observer of connections that are closed because of their header.
type RefusalObserver = dyn Fn(&Peer, ProxyError) + Send + Sync;

/// The listeners whose connections begin with a PROXY header, and the proxies that may send one.
pub struct ProxyListeners {
    /// By listener: whether its connections begin with a header.
    listeners: Box<[bool]>,
    trusted: Box<[TrustedProxy]>,
    on_refusal: Box<RefusalObserver>,
}

/// The peer of a connection, from its header.
pub(super) struct ProxiedPeer {
    /// The client; `None` if the proxy itself is the client.
    client: Option<Peer>,
    /// Calls [`Protocol::on_close`] for the client. It runs on drop, because a state ends with its connection on every
    /// driver.
    on_close: Box<dyn Fn(Peer) + Send + Sync>,
}

impl Drop for ProxiedPeer {
    fn drop(&mut self) {
        if let Some(client) = self.client {
            (self.on_close)(client);
        }
    }
}

impl ProxiedPeer {
    /// The peer of a connection that was admitted for `client`.
    fn new<P: Protocol>(client: Option<Peer>, protocol: &P) -> Box<ProxiedPeer> {
        let protocol = protocol.clone();
        Box::new(ProxiedPeer { client, on_close: Box::new(move |client| protocol.on_close(|| client)) })
    }
}

impl ProxyListeners {
    /// Requires headers of `trusted` on the listeners that are marked. `on_refusal` is called for other connections.
    pub fn new(
        listeners: &[bool],
        trusted: &[TrustedProxy],
        on_refusal: impl Fn(&Peer, ProxyError) + Send + Sync + 'static,
    ) -> ProxyListeners {
        let on_refusal = Box::new(on_refusal);
        ProxyListeners { listeners: listeners.into(), trusted: trusted.into(), on_refusal }
    }

    /// Whether a connection begins with a header.
    pub(super) fn covers(&self, connection: &Connection) -> bool {
        self.listeners.get(usize::from(connection.local.listener)).is_some_and(|covered| *covered)
    }

    /// Makes the client the peer of the connection. Receives the header first if `known` is `None`. Returns the next
    /// step if the connection cannot be served now.
    pub(super) async fn identify<I: Io, P: Protocol>(
        &self,
        io: &mut I,
        known: &mut Option<Box<ProxiedPeer>>,
        protocol: &P,
    ) -> Option<Next> {
        if !self.covers(io.connection()) {
            return None;
        }
        if known.is_none() {
            match self.receive(io, protocol).await {
                Ok(peer) => *known = Some(peer),
                Err(next) => return Some(next),
            }
        }
        if let Some(client) = known.as_ref().and_then(|known| known.client) {
            io.connection_mut().peer = client;
        }
        None
    }

    async fn receive<I: Io, P: Protocol>(&self, io: &mut I, protocol: &P) -> Result<Box<ProxiedPeer>, Next> {
        let peer = io.connection().peer;
        if !self.trusted.iter().any(|proxy| proxy.is(&peer)) {
            (self.on_refusal)(&peer, ProxyError::Untrusted);
            return Err(Next::Close);
        }
        let by = protocol.first_bytes_by();
        let client = receive(io, by).await.map_err(|none| match none {
            NoHeader::Idle => Next::Park(by),
            NoHeader::Closed => Next::Close,
            NoHeader::Refused(why) => {
                (self.on_refusal)(&peer, why);
                Next::Close
            }
        })?;
        let client = client.map(Peer::Internet);
        if client.is_some_and(|client| !protocol.admit(&client)) {
            return Err(Next::Close);
        }
        Ok(ProxiedPeer::new(client, protocol))
    }
}
