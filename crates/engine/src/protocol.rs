//! The trait of protocols that run on an engine: they serve connections that are an [`Io`].

use std::future::Future;

use tenfold_http::{Instant, Io, Next, Out, Peer};

/// A protocol, written once, for every engine. Cloned for each worker thread.
pub trait Protocol: Clone + Send + Sync + 'static {
    /// The state of an idle connection. It is stored in the connection's slot, so keep it small.
    type State: Default + Send;

    /// Serves `io` until there is no work for it.
    fn serve<I: Io>(&self, io: &mut I, state: &mut Self::State) -> impl Future<Output = Next>;

    /// The same for a connection that another thread may serve after each wait (dispatch `reactor`).
    fn serve_anywhere<I: Io + Send>(
        &self,
        io: &mut I,
        state: &mut Self::State,
    ) -> impl Future<Output = Next> + Send;

    /// The time at which a new connection is closed if it sends nothing, for drivers that serve a connection when its
    /// first bytes arrive.
    fn first_bytes_by(&self) -> Instant;

    /// The time at which a connection that parks now after a response is closed if it sends nothing. The difference to
    /// the deadline of a parked connection is its idle time.
    fn next_request_by(&self) -> Instant {
        self.first_bytes_by()
    }

    /// Whether a connection in this state has answered a request. A handshake sends bytes before that. A draining
    /// server closes parked connections that have answered a request.
    fn has_answered(_state: &Self::State) -> bool {
        true
    }

    /// Stages the last bytes of an idle connection, before the engine closes it: at its deadline, at the bound on
    /// connections, or because the worker drains. The engine sends them as far as the socket has room, and does not
    /// wait. A default state has none.
    ///
    /// A connection is idle since its last request, whatever it has received since. So a protocol parks it with the
    /// deadline of that request.
    fn farewell(&self, _state: &mut Self::State, _out: &mut Out) {}

    /// Called with the state of a connection that has ended, to free data outside of the state. The default state comes
    /// if the connection ended during an activation, because the task was dropped with the state.
    fn release(&self, _state: Self::State) {}

    /// Whether a new connection from `peer` is served; otherwise it is closed. [`Protocol::on_close`] is called when an
    /// admitted connection has ended.
    fn admit(&self, _peer: &Peer) -> bool {
        true
    }

    /// Called when an admitted connection has ended; `peer` returns its peer.
    fn on_close(&self, _peer: impl FnOnce() -> Peer) {}

    /// Called for events of the engine, for counters.
    fn observe(&self, _event: Event) {}

    /// Called on the worker's thread before it ends or forks: writes everything that is buffered.
    fn drain(&self) {}

    /// Called on a thread that accepts for others, before it starts them, so that it gets the first row of counters.
    fn join(&self) {}

    /// Called on a thread that is ready to serve. Returns when it may begin, or when the phase changes.
    fn begin(&self) {}

    /// Called on the worker's thread before it waits: writes due log lines. `is_loop`: the thread runs a loop, and this is
    /// the end of a tick. Returns the latest time of the next call.
    fn before_wait(&self, _is_loop: bool) -> Instant {
        Instant::NEVER
    }
}

/// An event in the life of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection was accepted.
    Accepted,
    /// A connection was closed.
    Closed,
    /// A new connection was closed because of [`crate::plan::Bounds::connections`].
    TooMany,
    /// An idle connection was evicted because of [`crate::plan::Bounds::connections`].
    Evicted,
    /// A connection lacked a resource of the system: a descriptor (EMFILE, ENFILE), memory (ENOBUFS, ENOMEM), a watch
    /// (ENOSPC), a process or a thread (EAGAIN). It was refused, or waits.
    Exhausted,
    /// A connection was closed at its deadline.
    Expired,
    /// The task of a connection panicked; the connection was closed.
    Panicked,
    /// The process of a connection made a forbidden system call and was killed.
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
        /// The sends that the kernel copied.
        copied: u32,
    },
}
