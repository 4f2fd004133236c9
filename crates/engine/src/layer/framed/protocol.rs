//! A protocol through the layer is a protocol.

use tenfold_http::{Instant, Io, Next, Peer};

use super::io::FramedIo;
use super::session::Session;
use crate::dispatch::offload::Lane;
use crate::layer::state::LayerState;
use crate::plan::Plan;
use crate::protocol::{Event, Protocol};

/// Threads that read files which are not cached.
const READERS: usize = 2;
/// Reads that may wait for them.
const READS: usize = 256;

/// Runs a protocol through this layer.
#[derive(Clone)]
pub struct Framed<P> {
    above: P,
    lane: Lane,
}

impl<P> Framed<P> {
    /// `above`, on an engine with this plan.
    pub fn new(above: P, plan: &Plan) -> Framed<P> {
        Framed { above, lane: Lane::new(plan, READERS, READS) }
    }
}

impl<P: Protocol> Protocol for Framed<P> {
    type State = LayerState<Session, P::State>;

    const DUPLEX: Option<&'static str> = P::DUPLEX;

    async fn serve<I: Io>(&self, io: &mut I, state: &mut Self::State) -> Next {
        let mut io = FramedIo::new(io, &mut state.layer, &self.lane);
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
        let mut io = FramedIo::new(io, &mut state.layer, &self.lane);
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
        state.layer.as_ref().is_some_and(|session| session.answered)
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

    fn before_wait(&self) -> Instant {
        self.above.before_wait()
    }
}
