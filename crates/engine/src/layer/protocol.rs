//! A protocol through a layer is a protocol.

use std::sync::Arc;

use tenfold_http::layer::{HandshakeTurns, Layer, LayeredIo};
use tenfold_http::{Connection, Instant, Io, Next, Peer};

use super::files::CachedFirst;
use super::proxied::{ProxiedPeer, ProxyListeners};
use super::state::LayerState;
use crate::plan::Plan;
use crate::plan::choice::Dispatch;
use crate::protocol::{Event, MovedState, Protocol};

/// A protocol that runs through a layer on the connections that use the layer.
#[derive(Clone)]
pub struct Layered<L, P> {
    layer: L,
    above: P,
    files: CachedFirst,
    turns: HandshakeTurns,
    proxies: Option<Arc<ProxyListeners>>,
}

impl<L, P> Layered<L, P> {
    /// Runs `above` through `layer`, on an engine with this plan.
    pub fn new(layer: L, above: P, plan: &Plan) -> Layered<L, P> {
        // A thread of a pool delays one connection, as one that blocks does.
        let turns = match plan.blocking() || plan.dispatch == Dispatch::Reactor {
            true => HandshakeTurns::unbounded(),
            false => HandshakeTurns::on_loop(),
        };
        Layered { layer, above, files: CachedFirst::new(plan), turns, proxies: None }
    }

    /// Requires PROXY headers on some listeners.
    pub fn behind(self, proxies: Option<ProxyListeners>) -> Layered<L, P> {
        Layered { proxies: proxies.map(Arc::new), ..self }
    }
}

impl<L: Layer, P: Protocol> Protocol for Layered<L, P> {
    type State = LayerState<L::State, P::State>;

    const DUPLEX: Option<&'static str> = P::DUPLEX;

    async fn serve<I: Io>(&self, io: &mut I, state: &mut Self::State) -> Next {
        if let Some(proxies) = &self.proxies
            && let Some(next) = proxies.identify(io, &mut state.proxied, &self.above).await
        {
            return next;
        }
        if !self.layer.covers(io.connection()) {
            return self.above.serve(io, &mut state.above).await;
        }
        let mut io = LayeredIo::new(io, &self.layer, &mut state.layer, &self.files, &self.turns);
        if let Some(next) = io.begin(self.above.first_bytes_by()).await {
            return next;
        }
        loop {
            let next = self.above.serve(&mut io, &mut state.above).await;
            if let Some(next) = io.end(next).await {
                return next;
            }
        }
    }

    async fn serve_anywhere<I: Io + Send>(&self, io: &mut I, state: &mut Self::State) -> Next {
        if let Some(proxies) = &self.proxies
            && let Some(next) = proxies.identify(io, &mut state.proxied, &self.above).await
        {
            return next;
        }
        if !self.layer.covers(io.connection()) {
            return self.above.serve_anywhere(io, &mut state.above).await;
        }
        let mut io = LayeredIo::new(io, &self.layer, &mut state.layer, &self.files, &self.turns);
        if let Some(next) = io.begin(self.above.first_bytes_by()).await {
            return next;
        }
        loop {
            let next = self.above.serve_anywhere(&mut io, &mut state.above).await;
            if let Some(next) = io.end(next).await {
                return next;
            }
        }
    }

    fn first_bytes_by(&self) -> Instant {
        self.above.first_bytes_by()
    }

    fn next_request_by(&self) -> Instant {
        self.above.next_request_by()
    }

    fn has_answered(state: &Self::State) -> bool {
        // Bytes that are sent without a state are plaintext, or the last ones.
        state.layer.as_ref().is_none_or(|state| L::has_answered(state))
    }

    fn admit(&self, peer: &Peer) -> bool {
        self.above.admit(peer)
    }

    fn on_close(&self, peer: impl FnOnce() -> Peer) {
        self.above.on_close(peer);
    }

    fn hand_over(&self, connection: &Connection, state: &Self::State) -> Option<MovedState> {
        let layer = match &state.layer {
            Some(state) => Some(L::hand_over(state)?),
            None => None,
        };
        let proxied = state.proxied.as_ref().map(|peer| peer.client_address());
        Some(MovedState { proxied, layer, ..self.above.hand_over(connection, &state.above)? })
    }

    fn take_over(&self, connection: &Connection, moved: MovedState) -> Option<Self::State> {
        let (is_new, covered) = (moved.requests == 0, self.layer.covers(connection));
        let layer = match &moved.layer {
            Some(moved) if covered => Some(Box::new(self.layer.take_over(moved)?)),
            // The handshake has not begun.
            None if is_new || !covered => None,
            _ => return None,
        };
        let behind = self.proxies.as_ref().is_some_and(|proxies| proxies.covers(connection));
        let above = self.above.take_over(connection, MovedState { layer: None, ..moved.clone() })?;
        let proxied = match moved.proxied {
            Some(client) if behind => Some(ProxiedPeer::adopt(client.map(Peer::Internet), &self.above)),
            // Its header has not come yet.
            None if is_new || !behind => None,
            _ => return None,
        };
        Some(LayerState { layer, proxied, above })
    }

    fn adopt(&self, peer: &Peer) {
        self.above.adopt(peer);
    }

    fn observe(&self, event: Event) {
        self.above.observe(event);
    }

    fn drain(&self) {
        self.above.drain();
    }

    fn join(&self) {
        self.above.join();
    }

    fn begin(&self) {
        self.above.begin();
    }

    fn before_wait(&self) -> Instant {
        self.turns.next_tick();
        self.above.before_wait()
    }

    fn turn(&self) -> Instant {
        self.above.turn()
    }
}
