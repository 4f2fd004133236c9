//! A protocol over a layer, as a protocol.

use std::sync::Arc;

use tenfold_http::layer::{HandshakeTurns, Layer, LayeredIo, farewell};
use tenfold_http::{Connection, Instant, Io, Next, Out, Peer};

use super::files::CachedFirst;
use super::proxied::ProxyListeners;
use super::state::LayerState;
use crate::plan::Plan;
use crate::plan::choice::Dispatch;
use crate::protocol::{Event, Protocol};

/// A protocol that runs over a layer on the connections with the layer.
#[derive(Clone)]
pub struct Layered<L, P> {
    /// `None` covers no connection.
    layer: Option<L>,
    above: P,
    files: CachedFirst,
    turns: HandshakeTurns,
    proxies: Option<Arc<ProxyListeners>>,
}

impl<L, P> Layered<L, P> {
    /// Runs `above` over `layer`, if there is one, on an engine with this plan.
    pub fn new(layer: Option<L>, above: P, plan: &Plan) -> Layered<L, P> {
        // A long step on a pool thread delays only one connection, as on a blocking thread.
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

impl<L: Layer, P> Layered<L, P> {
    /// The layer, if it covers this connection.
    fn layer_of(&self, connection: &Connection) -> Option<&L> {
        self.layer.as_ref().filter(|layer| layer.covers(connection))
    }
}

impl<L: Layer, P: Protocol> Protocol for Layered<L, P> {
    type State = LayerState<L::State, P::State>;

    async fn serve<I: Io>(&self, io: &mut I, state: &mut Self::State) -> Next {
        if let Some(proxies) = &self.proxies
            && let Some(next) = proxies.identify(io, &mut state.proxied, &self.above).await
        {
            return next;
        }
        let Some(layer) = self.layer_of(io.connection()) else {
            return self.above.serve(io, &mut state.above).await;
        };
        let mut io = LayeredIo::new(io, layer, &mut state.layer, &self.files, &self.turns);
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
        let Some(layer) = self.layer_of(io.connection()) else {
            return self.above.serve_anywhere(io, &mut state.above).await;
        };
        let mut io = LayeredIo::new(io, layer, &mut state.layer, &self.files, &self.turns);
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
        P::has_answered(&state.above)
    }

    fn farewell(&self, state: &mut Self::State, out: &mut Out) {
        let (Some(layer), Some(layered)) = (&self.layer, &mut state.layer) else {
            return self.above.farewell(&mut state.above, out);
        };
        let mut plaintext = Out::new();
        self.above.farewell(&mut state.above, &mut plaintext);
        farewell(layer, layered, &plaintext, out);
    }

    fn release(&self, state: Self::State) {
        self.above.release(state.above);
    }

    fn admit(&self, peer: &Peer) -> bool {
        self.above.admit(peer)
    }

    fn on_close(&self, peer: impl FnOnce() -> Peer) {
        self.above.on_close(peer);
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

    fn before_wait(&self, is_loop: bool) -> Instant {
        self.turns.next_tick();
        self.above.before_wait(is_loop)
    }
}
