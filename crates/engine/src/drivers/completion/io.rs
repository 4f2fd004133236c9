//! A connection on a ring: sends are submitted, and received bytes arrive as completions.

use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tenfold_http::{
    Finish, Flushed, Instant, IoError, Memory, OpenFile, Out, Patience, Peer, Received, clock,
};
use tenfold_sys::completion::Bytes;
use tenfold_sys::socket::Socket;

use super::link::{FileRead, HandedBytes, RingLink, Wants};
use crate::dispatch::offload::OffloadPool;
use crate::drivers::connection::{ConnectionIo, Core, CoreOf, SLICE, Transport};
use crate::drivers::input::{Input, ReceiveBuffer};
use crate::drivers::prefetch::Prefetch;
use crate::plan::Plan;
use crate::plan::choice::{Engine, Sender};
use crate::senders::piece::still_there;
use crate::senders::sender::MappedPiece;

/// The most bytes in flight with which a connection serves its next request or becomes idle.
const HANDED_OVER: usize = 128 * 1024;
/// Bytes of a file that the sender `copy` reads at once.
const COPY_BYTES: usize = 128 * 1024;
/// The most pieces in one submission.
const CHAIN: usize = 8;

/// The `Io` of the completion driver.
pub(super) type RingIo<B> = ConnectionIo<CompletionTransport<B>>;

/// The operations to submit.
pub(super) struct CompletionTransport<B> {
    link: Rc<RingLink<B>>,
    sender: Sender,
    /// The file whose mapping was submitted, and the end of the submitted part.
    mapped: Option<(Arc<OpenFile>, u64)>,
    turn_bytes: usize,
    /// Bytes that were submitted.
    handed: u64,
    /// Whether closing discards unsent data in the socket.
    resets: bool,
}

/// The file that the ring is reading.
struct ReadFrom(Arc<OpenFile>);

impl AsFd for ReadFrom {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.file.as_fd()
    }
}

impl<B: ReceiveBuffer> RingIo<B> {
    pub(super) fn new(plan: &Plan, readers: &OffloadPool) -> RingIo<B> {
        let transport = CompletionTransport {
            link: Rc::new(RingLink::new()),
            sender: plan.sender,
            mapped: None,
            turn_bytes: plan.bounds.turn_bytes,
            handed: 0,
            resets: false,
        };
        // The sender `copy` reads through the ring, which does not block the loop.
        let ring_reads = plan.sender == Sender::Copy && plan.engine == Engine::Uring;
        let prefetch = (!ring_reads).then(|| Prefetch::new(readers.clone()));
        RingIo { core: Core::new(plan, Input::default(), prefetch), transport }
    }

    /// Begins an activation.
    pub(super) fn begin(&mut self, socket: Socket, peer: Peer, listener: u16, sending: u8) {
        self.core.begin(socket, peer, listener);
        (self.transport.handed, self.transport.resets) = (0, false);
        self.transport.link.begin(sending);
    }

    /// Ends the activation: returns the socket, and frees all memory except a small reserve.
    pub(super) fn end(&mut self) -> Option<Socket> {
        // Observers get these bytes as unsent.
        self.core.out.lose(self.transport.handed.saturating_sub(self.transport.link.sent.get()));
        self.transport.mapped = None;
        self.core.end()
    }

    /// Whether to close the socket with a reset.
    pub(super) fn resets(&self) -> bool {
        self.transport.resets
    }

    pub(super) fn link(&self) -> &Rc<RingLink<B>> {
        &self.transport.link
    }
}

impl<B: ReceiveBuffer> CompletionTransport<B> {
    fn wait<T>(&mut self, core: &mut CoreOf<Self>, wants: Wants, by: Instant) -> Poll<Result<T, IoError>> {
        if clock::now() >= by {
            return Poll::Ready(Err(IoError::TimedOut));
        }
        core.input.settle();
        self.link.wait_for(wants, by);
        Poll::Pending
    }

    /// Moves received bytes into the input. Returns whether there were any.
    fn take_received(&mut self, core: &mut CoreOf<Self>, room: usize) -> bool {
        let mut inbox = self.link.inbox.borrow_mut();
        if !inbox.is_empty() {
            // The bytes of the inbox arrived first.
            if let Some(buffer) = self.link.current.take() {
                inbox.extend_from_slice(&buffer);
            }
            return core.input.take_from(&mut inbox, room);
        }
        match self.link.current.take() {
            Some(buffer) => {
                core.input.accept(buffer, room, &mut inbox);
                true
            }
            None => false,
        }
    }

    fn in_flight(&self) -> bool {
        self.link.sending.get() > 0 || !self.link.outgoing.borrow().is_empty()
    }

    /// Takes the memory at the front of the output for submission. Returns the number of bytes.
    fn hand_over(&mut self, core: &mut CoreOf<Self>) -> usize {
        let (mut outgoing, mut spare) = (self.link.outgoing.borrow_mut(), self.link.spare.borrow_mut());
        let mut total = 0;
        while outgoing.len() < CHAIN {
            let Some(memory) = core.out.pop_memory(spare.pop().unwrap_or_default()) else { break };
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
            outgoing.push(HandedBytes { bytes, more: core.out.follows(), held: false });
        }
        self.handed += total as u64;
        total
    }

    /// Sends from the front by system calls while `is_for_calls`, or by one call if `once`. Files need calls because the ring has no `sendfile(2)`,
    /// and its splice would occupy a kernel thread until the peer has received everything.
    fn call_while(
        &mut self,
        core: &mut CoreOf<Self>,
        cx: &mut Context<'_>,
        is_for_calls: fn(&Out) -> bool,
        once: bool,
        by: Instant,
    ) -> Poll<Result<(), IoError>> {
        while is_for_calls(&core.out) {
            let left = self.turn_bytes.saturating_sub(self.link.called.get());
            if left == 0 || self.link.wants(Wants::AGAIN) {
                return self.wait(core, Wants::AGAIN, by);
            }
            if !self.link.writable.get() {
                return self.wait(core, Wants::WRITABLE, by);
            }
            let most = if once { left.min(SLICE) } else { left };
            let most = ready!(self.poll_cached(core, cx, most, by))?;
            match core.send(most)? {
                Some(count) => self.link.called.update(|called| called + count),
                None => self.link.writable.set(false),
            }
            if once && self.link.writable.get() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Waits until the file at the front can be sent without waiting for a disk. Returns the number of bytes that can, at
    /// most `most`.
    fn poll_cached(
        &mut self,
        core: &mut CoreOf<Self>,
        cx: &mut Context<'_>,
        most: usize,
        by: Instant,
    ) -> Poll<Result<usize, IoError>> {
        match core.poll_cached(cx, most) {
            Poll::Pending => self.wait(core, Wants::default(), by),
            cached => cached,
        }
    }

    /// Submits the mapped part of the file at the front, at most `most` bytes. Returns whether there was a mapped part.
    fn hand_over_mapped(&mut self, core: &mut CoreOf<Self>, most: usize) -> Result<bool, IoError> {
        let Some(piece) = core.files.map(&core.out, most)? else { return Ok(false) };
        let MappedPiece { file, mapped, more, held } = piece;
        let count = mapped.len();
        self.mapped = Some((file, mapped.range.end));
        core.out.pop_bytes(count);
        self.handed += count;
        let bytes = Bytes::Mapped(mapped);
        self.link.outgoing.borrow_mut().push(HandedBytes { bytes, more, held });
        Ok(true)
    }

    /// Submits the mapped part of the file at the front, or a part read into memory if mapping is impossible.
    fn send_mapped(
        &mut self,
        core: &mut CoreOf<Self>,
        cx: &mut Context<'_>,
        by: Instant,
    ) -> Poll<Result<(), IoError>> {
        let reads = self.link.reading.get() || self.link.file_done.borrow().is_some();
        if !reads {
            let most = ready!(self.poll_cached(core, cx, self.turn_bytes, by))?;
            if self.hand_over_mapped(core, most)? {
                return Poll::Ready(Ok(()));
            }
        }
        self.copy_file(core, cx, by)
    }

    /// Checks that all bytes sent from a mapping belonged to the file.
    fn see_what_was_mapped(&mut self) -> Result<(), IoError> {
        match self.mapped.take() {
            Some((file, end)) => Ok(still_there(&file, end)?),
            None => Ok(()),
        }
    }

    /// Reads from the file at the front through the ring, and submits the bytes.
    fn copy_file(
        &mut self,
        core: &mut CoreOf<Self>,
        cx: &mut Context<'_>,
        by: Instant,
    ) -> Poll<Result<(), IoError>> {
        let done = self.link.file_done.take();
        let most = match done.is_some() || self.link.reading.get() {
            true => COPY_BYTES,
            false => ready!(self.poll_cached(core, cx, COPY_BYTES, by))?,
        };
        let Some((file, range, goes_on)) = core.out.file() else { return Poll::Ready(Ok(())) };
        let Some((mut memory, result)) = done else {
            if !self.link.reading.replace(true) {
                let length = most.min(usize::try_from(range.end - range.start).unwrap_or(usize::MAX));
                let memory = vec![0; length];
                let file = Arc::new(ReadFrom(file.clone()));
                self.link.file_read.replace(Some(FileRead { file, offset: range.start, memory }));
            }
            return self.wait(core, Wants::FILE_READ, by);
        };
        match usize::try_from(result) {
            Ok(0) => Poll::Ready(Err(IoError::Truncated)),
            Ok(count) => {
                memory.truncate(count);
                let more = goes_on || (count as u64) < range.end - range.start;
                core.out.pop_bytes(count as u64);
                self.handed += count as u64;
                let piece = HandedBytes { bytes: Bytes::Owned(memory, 0), more, held: false };
                self.link.outgoing.borrow_mut().push(piece);
                self.wait(core, Wants::SENT, by)
            }
            // A signal interrupted the call (EINTR), or the kernel lacked memory (EAGAIN).
            Err(_) if matches!(result, -4 | -11) => self.copy_file(core, cx, by),
            Err(_) => Poll::Ready(Err(IoError::System(-result))),
        }
    }

    /// The same as `flush`. A file that has become shorter resets the connection.
    fn flush_whole_files(
        &mut self,
        core: &mut CoreOf<Self>,
        cx: &mut Context<'_>,
        once: bool,
        by: Instant,
    ) -> Poll<Result<Flushed, IoError>> {
        let flushed = match self.flush(core, cx, once, by) {
            // If a page was lost during a send, the ring reports a short send without a reason.
            Poll::Ready(Err(error)) => Poll::Ready(Err(self.see_what_was_mapped().err().unwrap_or(error))),
            other => other,
        };
        if let (Poll::Ready(Err(IoError::Truncated)), Some(socket)) = (&flushed, &core.socket) {
            // The remaining bytes in the socket may be zeros.
            socket.reset();
            self.resets = true;
        }
        flushed
    }

    /// Sends output until all has left, or fits in the operations that may be in flight. `once`: at most one call, or the
    /// operations of one submission.
    fn flush(
        &mut self,
        core: &mut CoreOf<Self>,
        cx: &mut Context<'_>,
        once: bool,
        by: Instant,
    ) -> Poll<Result<Flushed, IoError>> {
        let mut is_begun = false;
        loop {
            if let Some(error) = self.link.failed.get() {
                return Poll::Ready(Err(error));
            }
            if once && is_begun && !core.out.is_empty() {
                return Poll::Ready(Ok(Flushed::Part));
            }
            if self.in_flight() {
                return self.wait(core, Wants::SENT, by);
            }
            is_begun = true;
            self.see_what_was_mapped()?;
            let Some(socket) = &core.socket else { return Poll::Ready(Err(IoError::Gone)) };
            // Observers are called when all earlier bytes were sent.
            core.out.advance(0);
            if core.out.is_empty() {
                core.cork.iter_mut().for_each(|cork| cork.pop(socket));
                return Poll::Ready(Ok(Flushed::All));
            }
            core.cork.iter_mut().for_each(|cork| cork.put(socket));
            if core.out.record().is_some() {
                // A send of the ring cannot set the type of a record.
                ready!(self.call_while(core, cx, |out| out.record().is_some(), once, by))?;
                continue;
            }
            if core.out.file().is_some() {
                ready!(match self.sender {
                    Sender::Auto | Sender::Sendfile | Sender::Splice => {
                        self.call_while(core, cx, |out| out.file().is_some(), once, by)
                    }
                    Sender::Copy => self.copy_file(core, cx, by),
                    Sender::Mmap | Sender::Zerocopy => self.send_mapped(core, cx, by),
                })?;
                continue;
            }
            let handed = self.hand_over(core);
            if self.sender == Sender::Mmap
                && self.in_flight()
                && let Poll::Ready(most) = core.poll_cached(cx, self.turn_bytes)
                && self.hand_over_mapped(core, most?)?
            {
                continue;
            }
            // The cork is removed only after all output has left.
            if handed <= HANDED_OVER
                && core.out.is_empty()
                && core.cork.as_ref().is_none_or(|cork| !cork.is_put())
            {
                return Poll::Ready(Ok(Flushed::All));
            }
        }
    }
}

impl<B: ReceiveBuffer> Transport for CompletionTransport<B> {
    type Socket = Socket;
    type Buffer = B;

    fn poll_receive(
        &mut self,
        core: &mut CoreOf<Self>,
        room: usize,
        patience: Patience,
        by: Instant,
    ) -> Poll<Result<Received, IoError>> {
        if core.input.len() >= room {
            return Poll::Ready(Ok(Received::Full));
        }
        if self.take_received(core, room) {
            return Poll::Ready(Ok(Received::Bytes));
        }
        if self.link.ended.get() {
            return Poll::Ready(Ok(Received::End));
        }
        if let Some(error) = self.link.failed.get() {
            return Poll::Ready(Err(error));
        }
        match patience {
            Patience::Park if core.input.is_empty() => Poll::Ready(Ok(Received::Idle)),
            Patience::Park | Patience::Wait => self.wait(core, Wants::RECEIVED, by),
            Patience::Try => {
                self.link.add_wants(Wants::TRIED);
                Poll::Ready(Ok(Received::Idle))
            }
        }
    }

    fn poll_lost(&mut self, core: &mut CoreOf<Self>, by: Instant) -> Poll<IoError> {
        if let Some(error) = self.link.failed.get() {
            return Poll::Ready(error);
        }
        self.wait::<()>(core, Wants::LOST, by).map(|waited| waited.err().unwrap_or(IoError::Gone))
    }

    fn poll_flush(
        &mut self,
        core: &mut CoreOf<Self>,
        cx: &mut Context<'_>,
        by: Instant,
    ) -> Poll<Result<(), IoError>> {
        self.flush_whole_files(core, cx, false, by).map(|flushed| flushed.map(|_| ()))
    }

    fn poll_send(
        &mut self,
        core: &mut CoreOf<Self>,
        cx: &mut Context<'_>,
        by: Instant,
    ) -> Poll<Result<Flushed, IoError>> {
        self.flush_whole_files(core, cx, true, by)
    }

    fn poll_submitted(&mut self, core: &mut CoreOf<Self>, by: Instant) -> Poll<Result<(), IoError>> {
        match self.link.failed.get() {
            Some(error) => Poll::Ready(Err(error)),
            None if self.in_flight() => self.wait(core, Wants::SENT, by),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_finish(&mut self, core: &mut CoreOf<Self>, how: Finish, by: Instant) -> Poll<()> {
        // The driver waits before a close; this sets the deadline of its wait.
        self.link.finish_by(by);
        if how == Finish::Linger {
            if self.in_flight() && self.link.failed.get().is_none() && clock::now() < by {
                self.link.wait_for(Wants::SENT, by);
                return Poll::Pending;
            }
            if let Some(socket) = &core.socket {
                socket.shut_down_writing();
            }
        }
        Poll::Ready(())
    }

    fn sent(&self, core: &CoreOf<Self>) -> u64 {
        core.sent + self.link.sent.get()
    }

    /// The driver closes the socket of a panicked task when no operation uses it any more.
    fn dropped(&mut self, core: &mut CoreOf<Self>) {
        self.link.abandoned.set(core.socket.take());
    }
}
