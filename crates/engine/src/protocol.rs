//! The trait of protocols that run on an engine: they serve connections that are an [`Io`].

use std::future::Future;

use tenfold_http::{Instant, Io, Next, Peer};

/// A protocol, written once, for every engine. Cloned for each worker thread.
pub trait Protocol: Clone + Send + Sync + 'static {
    /// The state of an idle connection. It is stored in the connection's slot, so keep it small.
    type State: Default + Send;

    /// The name of the protocol, if it needs both directions of a connection at once. Engines that block refuse it.
    const DUPLEX: Option<&'static str> = None;

    /// Serves `io` until there is nothing in hand.
    fn serve<I: Io>(&self, io: &mut I, state: &mut Self::State) -> impl Future<Output = Next>;

    /// The same on a connection that another thread may serve after each wait (dispatch `reactor`).
    fn serve_anywhere<I: Io + Send>(
        &self,
        io: &mut I,
        state: &mut Self::State,
    ) -> impl Future<Output = Next> + Send;

    /// When a connection that was just accepted is closed if it sends nothing. For a driver that serves
    /// a connection only when its first bytes are there.
    fn first_bytes_by(&self) -> Instant;

    /// When a connection that is parked after a response is closed if it sends nothing. The difference to its deadline
    /// says how long it has been idle.
    fn next_request_by(&self) -> Instant {
        self.first_bytes_by()
    }

    /// Whether a connection in this state, on which bytes were sent, has answered a request. A layer sends bytes of its
    /// own before that. Until then the connection waits for its first bytes, and a server that drains lets it wait.
    fn has_answered(_state: &Self::State) -> bool {
        true
    }

    /// Whether a connection that was just accepted from `peer` is served; one that is not is closed at once.
    /// Of each that is, [`Protocol::on_close`] is called when it has ended.
    fn admit(&self, _peer: &Peer) -> bool {
        true
    }

    /// Called when an admitted connection has ended; `peer` returns its peer.
    fn on_close(&self, _peer: impl FnOnce() -> Peer) {}

    /// Hears what the engine does with connections, for counters.
    fn observe(&self, _event: Event) {}

    /// Called on the worker's thread before it ends or forks: writes everything that is buffered.
    fn drain(&self) {}

    /// Called on the thread that accepts for others, before it starts them: it is known before them.
    fn join(&self) {}

    /// Called on a thread that accepts connections or is handed them, when it is able to serve. Returns when it may begin,
    /// or when the phase changes.
    fn begin(&self) {}

    /// Called on the worker's thread before it waits: writes what is due. Returns the time of the next call at the
    /// latest.
    fn before_wait(&self) -> Instant {
        Instant::NEVER
    }

    /// Called in each turn of a loop, by the thread of the loop. Returns the time of the next turn at the latest.
    fn turn(&self) -> Instant {
        Instant::NEVER
    }
}

/// An event in the life of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// One was accepted.
    Accepted,
    /// One was closed.
    Closed,
    /// One was accepted and closed at once: [`crate::plan::Bounds::connections`].
    TooMany,
    /// An idle one was closed, or told to close, for a new one: [`crate::plan::Bounds::connections`].
    Evicted,
    /// The system did not give what a connection needs: a descriptor (EMFILE, ENFILE), memory (ENOBUFS,
    /// ENOMEM), a watch (ENOSPC), a process or a thread (EAGAIN). It was refused, or waits until it does.
    Exhausted,
    /// One was closed because nothing came in time.
    Expired,
    /// The task of one panicked; it was closed.
    Panicked,
    /// The process of one made a system call that its sandbox forbids, and was ended.
    Trapped,
    /// Bytes were given to the kernel.
    Sent(u64),
    /// This many pieces of files were copied because the sender's resources were unavailable: pipes,
    /// mappings, memory that the kernel may lock.
    Substituted(u32),
    /// The kernel has released the memory of this many zero-copy sends.
    Released {
        /// Sends.
        sends: u32,
        /// The part of them that the kernel copied after all.
        copied: u32,
    },
}
