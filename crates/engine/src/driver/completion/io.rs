//! A connection on a ring: what it sends is handed over, and what it receives comes by itself.

use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use tenfold_http::{
    Finish, Instant, Io, IoError, Local, Memory, OpenFile, Out, Patience, Peer, Received, clock,
};
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::socket::Socket;
use tenfold_sys::uring::Bytes;

use super::input::Input;
use super::link::{AGAIN, FILE_READ, FileRead, LOST, Link, RECEIVED, SENT, WRITABLE};
use crate::driver::cork::Cork;
use crate::driver::{connection_error, interrupted};
use crate::plan::{Plan, Sender};

/// Bytes that may be in flight while the connection goes on to its next request, or rests.
const HANDED_OVER: usize = 128 * 1024;
/// Bytes of a file that the sender `copy` reads at once.
const COPY_BYTES: usize = 128 * 1024;
/// Pieces that are handed over together.
const CHAIN: usize = 8;
/// Memory of the output that is kept from one activation to the next.
const KEPT_OUT: usize = 32 * 1024;

/// The `Io` of the completion driver.
pub(super) struct RingIo {
    socket: Option<Socket>,
    link: Rc<Link>,
    input: Input,
    out: Out,
    peer: Peer,
    local: Local,
    sender: Sender,
    cork: Cork,
    turn_bytes: usize,
    /// Bytes that left by calls, and not through the ring.
    by_calls: u64,
    /// Bytes that were handed over.
    handed: u64,
}

/// A file that the ring reads.
struct ReadFrom(Arc<OpenFile>);

impl AsFd for ReadFrom {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.file.as_fd()
    }
}

impl RingIo {
    pub(super) fn new(plan: &Plan) -> RingIo {
        RingIo {
            socket: None,
            link: Rc::default(),
            input: Input::default(),
            out: Out::new(),
            peer: Peer::Unix,
            local: Local { listener: 0 },
            sender: plan.sender,
            cork: Cork::new(plan),
            turn_bytes: plan.bounds.turn_bytes,
            by_calls: 0,
            handed: 0,
        }
    }

    /// Begins an activation.
    pub(super) fn begin(&mut self, socket: Socket, peer: Peer, listener: u16, sending: u8) {
        self.socket = Some(socket);
        (self.peer, self.local) = (peer, Local { listener });
        self.cork.begin(&peer);
        (self.by_calls, self.handed) = (0, 0);
        self.link.begin(sending);
    }

    /// Ends it: gives the socket back, and all memory but a little.
    pub(super) fn end(&mut self) -> Option<Socket> {
        self.input.release();
        // Who watches hears of what was handed over and has not left.
        self.out.lose(self.handed.saturating_sub(self.link.sent.get()));
        self.out.clear(KEPT_OUT);
        self.socket.take()
    }

    /// Bytes that left by calls in this activation.
    pub(super) fn called(&self) -> u64 {
        self.by_calls
    }

    /// Bytes that left by calls or completed sends in this activation.
    fn sent(&self) -> u64 {
        self.by_calls + self.link.sent.get()
    }

    pub(super) fn link(&self) -> &Rc<Link> {
        &self.link
    }

    fn wait<T>(&mut self, bits: u8, by: Instant) -> Poll<Result<T, IoError>> {
        if clock::now() >= by {
            return Poll::Ready(Err(IoError::TimedOut));
        }
        self.input.settle();
        self.link.wait_for(bits, by);
        Poll::Pending
    }

    /// Moves what came into the hand; says whether there was any.
    fn take_received(&mut self, room: usize) -> bool {
        let mut inbox = self.link.inbox.borrow_mut();
        if !inbox.is_empty() {
            // What came first goes first.
            if let Some(buffer) = self.link.current.take() {
                inbox.extend_from_slice(&buffer);
            }
            return self.input.take_from(&mut inbox, room);
        }
        match self.link.current.take() {
            Some(buffer) => {
                self.input.accept(buffer, room, &mut inbox);
                true
            }
            None => false,
        }
    }

    fn in_flight(&self) -> bool {
        self.link.sending.get() > 0 || !self.link.outgoing.borrow().is_empty()
    }

    /// Takes the memory at the front of the output, to be handed over; says how many bytes.
    fn hand_over(&mut self) -> usize {
        let (mut outgoing, mut spare) = (self.link.outgoing.borrow_mut(), self.link.spare.borrow_mut());
        let mut total = 0;
        while outgoing.len() < CHAIN {
            let Some(memory) = self.out.pop_memory(spare.pop().unwrap_or_default()) else { break };
            let bytes = match memory {
                Memory::Staged(bytes, from) => {
                    total += bytes.len() - from;
                    Bytes::Owned(bytes, from)
                }
                Memory::Shared(bytes, range) => {
                    total += range.len();
                    Bytes::Shared(bytes, range)
                }
            };
            outgoing.push((bytes, self.out.follows()));
        }
        self.handed += total as u64;
        total
    }

    /// Sends from the file at the front by `sendfile(2)`: the ring has no such operation.
    fn send_file(&mut self, by: Instant) -> Poll<Result<(), IoError>> {
        let Some(socket) = &self.socket else { return Poll::Ready(Err(IoError::Gone)) };
        let mut left = self.turn_bytes;
        while let Some((file, range, _)) = self.out.file() {
            if left == 0 {
                return self.wait(AGAIN, by);
            }
            if !self.link.writable.get() {
                return self.wait(WRITABLE, by);
            }
            let count = usize::try_from(range.end - range.start).unwrap_or(usize::MAX).min(left);
            match socket.send_file(&file.file, range.start, count) {
                Ok(0) => return Poll::Ready(Err(IoError::Truncated)),
                Ok(count) => {
                    self.out.advance(count as u64);
                    self.by_calls += count as u64;
                    left -= count;
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => self.link.writable.set(false),
                Err(error) if interrupted(&error) => {}
                Err(error) => return Poll::Ready(Err(connection_error(&error))),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads from the file at the front through the ring, and hands over what was read.
    fn copy_file(&mut self, by: Instant) -> Poll<Result<(), IoError>> {
        let Some((file, range, goes_on)) = self.out.file() else { return Poll::Ready(Ok(())) };
        let Some((mut memory, result)) = self.link.file_done.take() else {
            if self.link.file_read.borrow().is_none() && !self.link.wants(FILE_READ) {
                let length = COPY_BYTES.min(usize::try_from(range.end - range.start).unwrap_or(usize::MAX));
                let memory = vec![0; length];
                let file = Arc::new(ReadFrom(file.clone()));
                self.link.file_read.replace(Some(FileRead { file, offset: range.start, memory }));
            }
            return self.wait(FILE_READ, by);
        };
        self.link.wait_for(0, by);
        match usize::try_from(result) {
            Ok(0) => Poll::Ready(Err(IoError::Truncated)),
            Ok(count) => {
                memory.truncate(count);
                let more = goes_on || (count as u64) < range.end - range.start;
                self.out.advance(count as u64);
                self.link.outgoing.borrow_mut().push((Bytes::Owned(memory, 0), more));
                self.wait(SENT, by)
            }
            // A signal came in between (EINTR), or there was no memory to wait in (EAGAIN).
            Err(_) if matches!(result, -4 | -11) => self.copy_file(by),
            Err(_) => Poll::Ready(Err(IoError::System(-result))),
        }
    }
}

impl Drop for RingIo {
    fn drop(&mut self) {
        // A task that panicked: the driver closes the socket when no operation names it any more.
        self.link.abandoned.set(self.socket.take());
    }
}

impl Io for RingIo {
    fn split(&mut self) -> (&mut [u8], &mut Out) {
        (self.input.bytes(), &mut self.out)
    }

    fn consume(&mut self, count: usize) {
        self.input.consume(count);
    }

    fn peer(&self) -> &Peer {
        &self.peer
    }

    fn local(&self) -> &Local {
        &self.local
    }

    fn poll_receive(
        &mut self,
        _cx: &mut Context<'_>,
        room: usize,
        patience: Patience,
        by: Instant,
    ) -> Poll<Result<Received, IoError>> {
        if self.input.len() >= room {
            return Poll::Ready(Ok(Received::Full));
        }
        if self.take_received(room) {
            return Poll::Ready(Ok(Received::Bytes));
        }
        if self.link.ended.get() {
            return Poll::Ready(Ok(Received::End));
        }
        if let Some(error) = self.link.failed.get() {
            return Poll::Ready(Err(error));
        }
        if patience == Patience::Park && self.input.len() == 0 {
            return Poll::Ready(Ok(Received::Idle));
        }
        self.wait(RECEIVED, by)
    }

    fn poll_lost(&mut self, _cx: &mut Context<'_>, by: Instant) -> Poll<IoError> {
        if let Some(error) = self.link.failed.get() {
            return Poll::Ready(error);
        }
        self.wait::<()>(LOST, by).map(|waited| waited.err().unwrap_or(IoError::Gone))
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>, by: Instant) -> Poll<Result<(), IoError>> {
        loop {
            if let Some(error) = self.link.failed.get() {
                return Poll::Ready(Err(error));
            }
            if self.in_flight() {
                return self.wait(SENT, by);
            }
            let Some(socket) = &self.socket else { return Poll::Ready(Err(IoError::Gone)) };
            // Who watches hears that everything before has left.
            self.out.advance(0);
            if self.out.is_empty() {
                self.cork.pop(socket);
                return Poll::Ready(Ok(()));
            }
            self.cork.put(socket);
            if self.out.file().is_some() {
                let sent = match self.sender {
                    Sender::Auto | Sender::Sendfile => self.send_file(by),
                    Sender::Copy => self.copy_file(by),
                };
                match sent {
                    Poll::Ready(Ok(())) => continue,
                    other => return other,
                }
            }
            // What holds output back is taken away when all of it has left, and not before.
            if self.hand_over() <= HANDED_OVER && self.out.is_empty() && !self.cork.is_put() {
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn poll_finish(&mut self, _cx: &mut Context<'_>, how: Finish, by: Instant) -> Poll<()> {
        // For a close the driver waits itself; until when, it is told here.
        self.link.wait_for(0, by);
        if how == Finish::Linger {
            if self.in_flight() && self.link.failed.get().is_none() && clock::now() < by {
                self.link.wait_for(SENT, by);
                return Poll::Pending;
            }
            if let Some(socket) = &self.socket {
                socket.shut_down_writing();
            }
        }
        Poll::Ready(())
    }

    fn delivered(&self) -> u64 {
        self.socket.as_ref().and_then(Socket::acknowledged).unwrap_or_else(|| self.sent())
    }

    fn draining(&self) -> bool {
        lifecycle::phase() != Phase::Serving
    }
}
