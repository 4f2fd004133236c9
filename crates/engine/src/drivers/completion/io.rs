//! A connection on a ring: what it sends is handed over, and what it receives comes by itself.

use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use tenfold_http::{
    Finish, Instant, Io, IoError, Local, Memory, OpenFile, Out, Patience, Peer, Received, clock,
};
use tenfold_sys::completion::Bytes;
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::socket::Socket;

use super::input::Input;
use super::link::{FileRead, Link, Piece, Wants};
use super::ring::Buffer;
use crate::plan::Plan;
use crate::plan::choice::Sender;
use crate::senders::cork::Cork;
use crate::senders::piece::still_there;
use crate::senders::sender::{FileSender, MappedPiece, Sent, send_some};

/// Bytes that may be in flight while the connection goes on to its next request, or rests.
const HANDED_OVER: usize = 128 * 1024;
/// Bytes of a file that the sender `copy` reads at once.
const COPY_BYTES: usize = 128 * 1024;
/// Pieces that are handed over together.
const CHAIN: usize = 8;
/// Memory of the output that is kept from one activation to the next.
const KEPT_OUT: usize = 32 * 1024;

/// The `Io` of the completion driver.
pub(super) struct RingIo<B> {
    socket: Option<Socket>,
    link: Rc<Link<B>>,
    input: Input<B>,
    out: Out,
    peer: Peer,
    local: Local,
    sender: Sender,
    cork: Cork,
    files: FileSender,
    /// The file that was handed over from a mapping, and up to where.
    mapped: Option<(Arc<OpenFile>, u64)>,
    turn_bytes: usize,
    /// Bytes that left by calls, and not through the ring.
    by_calls: u64,
    /// Bytes that were handed over.
    handed: u64,
    /// Whether closing throws away what waits in the socket.
    resets: bool,
}

/// A file that the ring reads.
struct ReadFrom(Arc<OpenFile>);

impl AsFd for ReadFrom {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.file.as_fd()
    }
}

impl<B: Buffer> RingIo<B> {
    pub(super) fn new(plan: &Plan) -> RingIo<B> {
        RingIo {
            socket: None,
            link: Rc::new(Link::new()),
            input: Input::default(),
            out: Out::new(),
            peer: Peer::Unix,
            local: Local { listener: 0 },
            sender: plan.sender,
            cork: Cork::new(plan),
            files: FileSender::new(plan),
            mapped: None,
            turn_bytes: plan.bounds.turn_bytes,
            by_calls: 0,
            handed: 0,
            resets: false,
        }
    }

    /// Begins an activation.
    pub(super) fn begin(&mut self, socket: Socket, peer: Peer, listener: u16, sending: u8) {
        self.socket = Some(socket);
        (self.peer, self.local) = (peer, Local { listener });
        self.cork.begin(&peer);
        (self.by_calls, self.handed, self.resets) = (0, 0, false);
        self.link.begin(sending);
    }

    /// Ends it: gives the socket back, and all memory but a little.
    pub(super) fn end(&mut self) -> Option<Socket> {
        self.input.release();
        // Who watches hears of what was handed over and has not left.
        self.out.lose(self.handed.saturating_sub(self.link.sent.get()));
        self.out.clear(KEPT_OUT);
        self.files.clear();
        self.mapped = None;
        self.socket.take()
    }

    /// What the sender of files has counted in this activation.
    pub(super) fn files(&mut self) -> &mut FileSender {
        &mut self.files
    }

    /// Whether the socket is to be closed by a reset.
    pub(super) fn resets(&self) -> bool {
        self.resets
    }

    /// Bytes that left by calls in this activation.
    pub(super) fn called(&self) -> u64 {
        self.by_calls
    }

    /// Bytes that left by calls or completed sends in this activation.
    fn sent(&self) -> u64 {
        self.by_calls + self.link.sent.get()
    }

    pub(super) fn link(&self) -> &Rc<Link<B>> {
        &self.link
    }

    fn wait<T>(&mut self, wants: Wants, by: Instant) -> Poll<Result<T, IoError>> {
        if clock::now() >= by {
            return Poll::Ready(Err(IoError::TimedOut));
        }
        self.input.settle();
        self.link.wait_for(wants, by);
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
            outgoing.push(Piece { bytes, more: self.out.follows(), held: false });
        }
        self.handed += total as u64;
        total
    }

    /// Sends from the file at the front by calls: `sendfile(2)` is no operation of the ring, and a splice is
    /// one that keeps a thread of the kernel waiting for as long as the peer takes.
    fn call_for_file(&mut self, by: Instant) -> Poll<Result<(), IoError>> {
        let Some(socket) = &self.socket else { return Poll::Ready(Err(IoError::Gone)) };
        let mut left = self.turn_bytes;
        while self.out.file().is_some() {
            if left == 0 {
                return self.wait(Wants::AGAIN, by);
            }
            if !self.link.writable.get() {
                return self.wait(Wants::WRITABLE, by);
            }
            match send_some(socket, &mut self.out, &mut self.files, left)? {
                Sent::Some(count) => {
                    self.by_calls += count as u64;
                    left = left.saturating_sub(count);
                }
                Sent::Nothing => self.link.writable.set(false),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Hands over what is mapped of the file at the front, behind what was handed over before; says whether
    /// anything is.
    fn hand_over_mapped(&mut self) -> Result<bool, IoError> {
        let Some(piece) = self.files.map(&self.out, self.turn_bytes)? else { return Ok(false) };
        let MappedPiece { file, mapped, more, held } = piece;
        let count = mapped.len();
        self.mapped = Some((file, mapped.range.end));
        self.out.pop_file(count);
        self.handed += count;
        let bytes = Bytes::Mapped(mapped);
        self.link.outgoing.borrow_mut().push(Piece { bytes, more, held });
        Ok(true)
    }

    /// Hands over what is mapped of the file at the front; where nothing can be, what is read of it.
    fn send_mapped(&mut self, by: Instant) -> Poll<Result<(), IoError>> {
        let reads = self.link.wants(Wants::FILE_READ) || self.link.file_done.borrow().is_some();
        if !reads && self.hand_over_mapped()? {
            return Poll::Ready(Ok(()));
        }
        self.copy_file(by)
    }

    /// Sees that what was sent from a mapping was all the file's own.
    fn see_what_was_mapped(&mut self) -> Result<(), IoError> {
        match self.mapped.take() {
            Some((file, end)) => Ok(still_there(&file, end)?),
            None => Ok(()),
        }
    }

    /// Reads from the file at the front through the ring, and hands over what was read.
    fn copy_file(&mut self, by: Instant) -> Poll<Result<(), IoError>> {
        let Some((file, range, goes_on)) = self.out.file() else { return Poll::Ready(Ok(())) };
        let Some((mut memory, result)) = self.link.file_done.take() else {
            if self.link.file_read.borrow().is_none() && !self.link.wants(Wants::FILE_READ) {
                let length = COPY_BYTES.min(usize::try_from(range.end - range.start).unwrap_or(usize::MAX));
                let memory = vec![0; length];
                let file = Arc::new(ReadFrom(file.clone()));
                self.link.file_read.replace(Some(FileRead { file, offset: range.start, memory }));
            }
            return self.wait(Wants::FILE_READ, by);
        };
        self.link.wait_for(Wants::default(), by);
        match usize::try_from(result) {
            Ok(0) => Poll::Ready(Err(IoError::Truncated)),
            Ok(count) => {
                memory.truncate(count);
                let more = goes_on || (count as u64) < range.end - range.start;
                self.out.pop_file(count as u64);
                self.handed += count as u64;
                let piece = Piece { bytes: Bytes::Owned(memory, 0), more, held: false };
                self.link.outgoing.borrow_mut().push(piece);
                self.wait(Wants::SENT, by)
            }
            // A signal came in between (EINTR), or there was no memory to wait in (EAGAIN).
            Err(_) if matches!(result, -4 | -11) => self.copy_file(by),
            Err(_) => Poll::Ready(Err(IoError::System(-result))),
        }
    }

    /// Sends all output, or as much of it as can be handed over.
    fn flush(&mut self, by: Instant) -> Poll<Result<(), IoError>> {
        loop {
            if let Some(error) = self.link.failed.get() {
                return Poll::Ready(Err(error));
            }
            if self.in_flight() {
                return self.wait(Wants::SENT, by);
            }
            self.see_what_was_mapped()?;
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
                    Sender::Auto | Sender::Sendfile | Sender::Splice => self.call_for_file(by),
                    Sender::Copy => self.copy_file(by),
                    Sender::Mmap | Sender::Zerocopy => self.send_mapped(by),
                };
                match sent {
                    Poll::Ready(Ok(())) => continue,
                    other => return other,
                }
            }
            let handed = self.hand_over();
            if self.sender == Sender::Mmap && self.in_flight() && self.hand_over_mapped()? {
                continue;
            }
            // What holds output back is taken away when all of it has left, and not before.
            if handed <= HANDED_OVER && self.out.is_empty() && !self.cork.is_put() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<B> Drop for RingIo<B> {
    fn drop(&mut self) {
        // A task that panicked: the driver closes the socket when no operation names it any more.
        self.link.abandoned.set(self.socket.take());
    }
}

impl<B: Buffer> Io for RingIo<B> {
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
        self.wait(Wants::RECEIVED, by)
    }

    fn poll_lost(&mut self, _cx: &mut Context<'_>, by: Instant) -> Poll<IoError> {
        if let Some(error) = self.link.failed.get() {
            return Poll::Ready(error);
        }
        self.wait::<()>(Wants::LOST, by).map(|waited| waited.err().unwrap_or(IoError::Gone))
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>, by: Instant) -> Poll<Result<(), IoError>> {
        let flushed = match self.flush(by) {
            // A ring that lost a page in the middle says no more than that not all was sent, or nothing at all.
            Poll::Ready(Err(error)) => Poll::Ready(Err(self.see_what_was_mapped().err().unwrap_or(error))),
            other => other,
        };
        if let (Poll::Ready(Err(IoError::Truncated)), Some(socket)) = (&flushed, &self.socket) {
            // What is left of it in the socket may be zeros by now.
            socket.reset_on_close();
            self.resets = true;
        }
        flushed
    }

    fn poll_finish(&mut self, _cx: &mut Context<'_>, how: Finish, by: Instant) -> Poll<()> {
        // For a close the driver waits itself; until when, it is told here.
        self.link.wait_for(Wants::default(), by);
        if how == Finish::Linger {
            if self.in_flight() && self.link.failed.get().is_none() && clock::now() < by {
                self.link.wait_for(Wants::SENT, by);
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
