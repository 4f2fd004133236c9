//! The part of a connection that all drivers share. A driver adds a [`Transport`]: receiving, sending and waiting.

use std::borrow::Borrow;
use std::task::{Context, Poll};

use tenfold_http::{
    Connection, Finish, Flushed, Instant, Io, IoError, Local, OpenFile, Out, Patience, Peer, Received,
    SealedOutput,
};
use tenfold_sys::file::facts;
use tenfold_sys::kernel_tls;
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::socket::Socket;

use super::input::{Input, ReceiveBuffer};
use super::prefetch::{self, Prefetch};
use crate::plan::Plan;
use crate::senders::cork::Cork;
use crate::senders::sender::{FileSender, send_some};

/// The most bytes of a file that [`Io::poll_send`] sends by one call.
pub(crate) const SLICE: usize = 64 * 1024;

/// The unsent bytes of an output that responses share.
const SHARED_UNSENT: u32 = 16 * 1024;

/// The memory of the output that an `Io` keeps between activations.
const KEPT_OUT: usize = 32 * 1024;

/// The parts of a connection that all drivers have.
pub(crate) struct Core<S, B> {
    /// The socket, while the connection is served.
    pub(crate) socket: Option<S>,
    pub(crate) input: Input<B>,
    pub(crate) out: Out,
    pub(crate) files: FileSender,
    /// `None` if sending may wait for a disk.
    prefetch: Option<Prefetch>,
    /// With `tcp-cork`.
    pub(crate) cork: Option<Cork>,
    /// Bytes that calls have sent in this activation.
    pub(crate) sent: u64,
    /// Facts about the connection.
    facts: Connection,
}

impl<S: Borrow<Socket>, B: ReceiveBuffer> Core<S, B> {
    pub(crate) fn new(plan: &Plan, input: Input<B>, prefetch: Option<Prefetch>) -> Core<S, B> {
        Core {
            socket: None,
            input,
            out: Out::new(),
            files: FileSender::new(plan),
            prefetch,
            cork: plan.cork.then(Cork::default),
            sent: 0,
            facts: Connection::plaintext(Peer::Unix, Local { listener: 0 }),
        }
    }

    /// Begins an activation.
    #[inline]
    pub(crate) fn begin(&mut self, socket: S, peer: Peer, listener: u16) {
        self.socket = Some(socket);
        self.facts = Connection::plaintext(peer, Local { listener });
        if let Some(cork) = &mut self.cork {
            cork.begin(&peer);
        }
        self.sent = 0;
    }

    /// Ends the activation: returns the socket, and frees all memory except a small reserve.
    #[inline]
    pub(crate) fn end(&mut self) -> Option<S> {
        self.input.release();
        self.out.clear(KEPT_OUT);
        self.files.clear();
        if let Some(prefetch) = self.prefetch.as_mut().filter(|prefetch| prefetch.is_used) {
            prefetch.clear();
        }
        self.socket.take()
    }

    /// The socket.
    ///
    /// # Errors
    /// [`IoError::Gone`] outside of an activation.
    #[inline]
    pub(crate) fn socket(&self) -> Result<&Socket, IoError> {
        self.socket.as_ref().map(Borrow::borrow).ok_or(IoError::Gone)
    }

    /// Waits until the file bytes of the next call are in memory. Returns the number of file bytes that the call may
    /// send, at most `most`.
    #[inline]
    pub(crate) fn poll_cached(&mut self, cx: &mut Context<'_>, most: usize) -> Poll<Result<usize, IoError>> {
        match (&mut self.prefetch, self.files.next_piece(&self.out, most)) {
            (Some(prefetch), Some((file, piece))) => prefetch.poll(cx, file, piece),
            _ => Poll::Ready(Ok(most)),
        }
    }

    /// Makes one call that sends from the front of the output, which is not empty; at most `most` bytes of a file.
    /// Returns the number of sent bytes; `None` if the call would have waited.
    #[inline]
    pub(crate) fn send(&mut self, most: usize) -> Result<Option<usize>, IoError> {
        let socket = self.socket.as_ref().ok_or(IoError::Gone)?.borrow();
        let piece = self.prefetch.as_ref().and_then(|_| self.files.next_piece(&self.out, most));
        let sent = match piece.map(|(file, _)| file.clone()) {
            Some(file) => prefetch::watch(&file, || send_some(socket, &mut self.out, &mut self.files, most))?,
            None => send_some(socket, &mut self.out, &mut self.files, most)?,
        };
        if let Some(count) = sent {
            self.sent += count as u64;
        }
        Ok(sent)
    }
}

/// The methods of [`Io`] in which drivers differ: receiving, sending and waiting.
pub(crate) trait Transport: Sized {
    type Socket: Borrow<Socket>;
    type Buffer: ReceiveBuffer;

    /// See [`Io::blocks`].
    const BLOCKS: bool = false;

    /// See [`Io::poll_receive`].
    fn poll_receive(
        &mut self,
        core: &mut CoreOf<Self>,
        room: usize,
        patience: Patience,
        by: Instant,
    ) -> Poll<Result<Received, IoError>>;

    /// See [`Io::poll_lost`].
    fn poll_lost(&mut self, core: &mut CoreOf<Self>, by: Instant) -> Poll<IoError>;

    /// See [`Io::poll_flush`].
    fn poll_flush(
        &mut self,
        core: &mut CoreOf<Self>,
        cx: &mut Context<'_>,
        by: Instant,
    ) -> Poll<Result<(), IoError>>;

    /// See [`Io::poll_send`].
    fn poll_send(
        &mut self,
        core: &mut CoreOf<Self>,
        cx: &mut Context<'_>,
        by: Instant,
    ) -> Poll<Result<Flushed, IoError>>;

    /// See [`Io::poll_finish`].
    fn poll_finish(&mut self, core: &mut CoreOf<Self>, how: Finish, by: Instant) -> Poll<()>;

    /// See [`Io::poll_submitted`].
    fn poll_submitted(&mut self, _core: &mut CoreOf<Self>, _by: Instant) -> Poll<Result<(), IoError>> {
        Poll::Ready(Ok(()))
    }

    /// The bytes that were sent in this activation, as far as this process knows.
    fn sent(&self, core: &CoreOf<Self>) -> u64 {
        core.sent
    }

    /// Called when the connection is dropped. After a panic, it still has its socket.
    fn dropped(&mut self, _core: &mut CoreOf<Self>) {}
}

/// The core that goes with a transport.
pub(crate) type CoreOf<T> = Core<<T as Transport>::Socket, <T as Transport>::Buffer>;

/// A connection of a driver.
pub(crate) struct ConnectionIo<T: Transport> {
    pub(crate) core: CoreOf<T>,
    pub(crate) transport: T,
}

impl<T: Transport> Drop for ConnectionIo<T> {
    fn drop(&mut self) {
        self.transport.dropped(&mut self.core);
    }
}

impl<T: Transport> Io for ConnectionIo<T> {
    #[inline]
    fn split(&mut self) -> (&mut [u8], &mut Out) {
        (self.core.input.bytes(), &mut self.core.out)
    }

    #[inline]
    fn consume(&mut self, count: usize) {
        self.core.input.consume(count);
    }

    #[inline]
    fn connection(&self) -> &Connection {
        &self.core.facts
    }

    #[inline]
    fn connection_mut(&mut self) -> &mut Connection {
        &mut self.core.facts
    }

    #[inline]
    fn poll_receive(
        &mut self,
        _cx: &mut Context<'_>,
        room: usize,
        patience: Patience,
        by: Instant,
    ) -> Poll<Result<Received, IoError>> {
        self.transport.poll_receive(&mut self.core, room, patience, by)
    }

    fn poll_lost(&mut self, _cx: &mut Context<'_>, by: Instant) -> Poll<IoError> {
        self.transport.poll_lost(&mut self.core, by)
    }

    #[inline]
    fn poll_flush(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<Result<(), IoError>> {
        self.transport.poll_flush(&mut self.core, cx, by)
    }

    #[inline]
    fn poll_send(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<Result<Flushed, IoError>> {
        self.transport.poll_send(&mut self.core, cx, by)
    }

    #[inline]
    fn poll_finish(&mut self, _cx: &mut Context<'_>, how: Finish, by: Instant) -> Poll<()> {
        self.transport.poll_finish(&mut self.core, how, by)
    }

    fn poll_submitted(&mut self, _cx: &mut Context<'_>, by: Instant) -> Poll<Result<(), IoError>> {
        self.transport.poll_submitted(&mut self.core, by)
    }

    fn seal_in_kernel(&mut self, parameters: &[u8]) -> Option<SealedOutput> {
        let socket = self.core.socket().ok()?;
        socket.seal_in_kernel(parameters).ok().map(sealed)
    }

    fn sealed_output(&self) -> Option<SealedOutput> {
        let socket = self.core.socket().ok()?;
        socket.sealed_output().ok().map(sealed)
    }

    fn delivered(&self) -> u64 {
        let acknowledged = self.core.socket().ok().and_then(Socket::acknowledged);
        acknowledged.unwrap_or_else(|| self.transport.sent(&self.core))
    }

    fn holds(&self, file: &OpenFile, size: u64) -> bool {
        facts(&file.file).is_ok_and(|facts| facts.size >= size)
    }

    fn share_output(&mut self) {
        if let Ok(socket) = self.core.socket() {
            // Without the limit, an urgent response can wait longer.
            let _ = socket.limit_unsent(SHARED_UNSENT);
        }
    }

    #[inline]
    fn blocks(&self) -> bool {
        T::BLOCKS
    }

    #[inline]
    fn draining(&self) -> bool {
        lifecycle::phase() != Phase::Serving
    }

    #[inline]
    fn closes_idle(&self) -> bool {
        lifecycle::phase() >= Phase::Draining
    }
}

fn sealed(kernel_tls::SealedOutput { queued, record }: kernel_tls::SealedOutput) -> SealedOutput {
    SealedOutput { queued, record }
}
