//! A connection on a non-blocking socket: it tries each call before a wait. Its [`TaskLink`] has the signals that it
//! waits for, and the signals that the loop found ready.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use bitflags::bitflags;
use tenfold_http::{Finish, Flushed, Instant, IoError, Patience, Peer, Received, clock};
use tenfold_sys::clock::monotonic;
use tenfold_sys::readiness::Ready;
use tenfold_sys::socket::Socket;

use super::selector::Interest;
use crate::dispatch::offload::OffloadPool;
use crate::drivers::connection::{ConnectionIo, Core, CoreOf, SLICE, Transport};
use crate::drivers::input::{Input, NoBuffer};
use crate::drivers::prefetch::Prefetch;
use crate::plan::Plan;
use crate::senders::failure::{connection_error, interrupted};

/// The `Io` of the readiness driver. It owns the socket while its connection is served.
pub(crate) type ReadinessIo = ConnectionIo<ReadinessTransport>;

/// Calls that do not block.
pub(crate) struct ReadinessTransport {
    link: Arc<TaskLink>,
}

impl ReadinessIo {
    pub(super) fn new(plan: &Plan, readers: &OffloadPool) -> ReadinessIo {
        let transport = ReadinessTransport { link: Arc::new(TaskLink::new()) };
        let prefetch = Prefetch::new(readers.clone());
        ReadinessIo { core: Core::new(plan, Input::default(), Some(prefetch)), transport }
    }

    /// Begins an activation.
    #[inline]
    pub(super) fn begin(&mut self, socket: Socket, peer: Peer, listener: u16, ready: Signals) {
        self.core.begin(socket, peer, listener);
        self.transport.link.begin(ready);
    }

    /// Returns the resources of this thread, before another thread ends the activation.
    pub(super) fn give_back_memory(&mut self) {
        self.core.input.release();
    }

    #[inline]
    pub(super) fn link(&self) -> &Arc<TaskLink> {
        &self.transport.link
    }
}

impl ReadinessTransport {
    #[inline]
    fn wait<T>(
        &mut self,
        core: &mut CoreOf<Self>,
        signals: Signals,
        by: Instant,
    ) -> Poll<Result<T, IoError>> {
        if clock::now() >= by {
            return Poll::Ready(Err(IoError::TimedOut));
        }
        core.input.settle();
        self.link.wait_for(signals, by);
        Poll::Pending
    }

    /// Waits until the kernel has released the sent bytes, as reported in the socket's error queue.
    fn wait_for_release(&mut self, core: &mut CoreOf<Self>, by: Instant) -> Poll<Result<(), IoError>> {
        self.link.clear_ready(Signals::FAULT);
        self.wait_unless_gone(core, Signals::FAULT, by)
    }

    fn wait_unless_gone<T>(
        &mut self,
        core: &mut CoreOf<Self>,
        signals: Signals,
        by: Instant,
    ) -> Poll<Result<T, IoError>> {
        if self.link.is_ready(Signals::GONE) {
            return Poll::Ready(Err(IoError::Gone));
        }
        self.wait(core, signals, by)
    }

    #[inline]
    fn wait_for_bytes(
        &mut self,
        core: &mut CoreOf<Self>,
        patience: Patience,
        by: Instant,
    ) -> Poll<Result<Received, IoError>> {
        if patience == Patience::Try || patience == Patience::Park && core.input.is_empty() {
            return Poll::Ready(Ok(Received::Idle));
        }
        self.wait(core, Signals::READ, by)
    }

    /// Makes one call that sends from the front of the output, which is not empty; at most `most` bytes of a file.
    #[inline]
    fn poll_call(
        &mut self,
        core: &mut CoreOf<Self>,
        cx: &mut Context<'_>,
        most: usize,
        by: Instant,
    ) -> Poll<Result<(), IoError>> {
        loop {
            if !self.link.is_ready(Signals::WRITE) {
                return self.wait(core, Signals::WRITE, by);
            }
            if self.link.left() == 0 {
                return self.wait(core, Signals::AGAIN, by);
            }
            let Poll::Ready(most) = core.poll_cached(cx, self.link.left().min(most)) else {
                return self.wait_unless_gone(core, Signals::default(), by);
            };
            match core.send(most?)? {
                Some(count) => {
                    self.link.moved(count);
                    return Poll::Ready(Ok(()));
                }
                None => self.link.clear_ready(Signals::WRITE),
            }
        }
    }

    /// Ends a flush: waits until the kernel has released the sent memory.
    #[inline]
    fn end_flush(&mut self, core: &mut CoreOf<Self>, by: Instant) -> Poll<Result<(), IoError>> {
        let Some(socket) = &core.socket else { return Poll::Ready(Err(IoError::Gone)) };
        core.cork.iter_mut().for_each(|cork| cork.pop(socket));
        if core.files.is_outstanding() {
            if core.files.holds(socket)? {
                return self.wait_for_release(core, by);
            }
            self.link.add_ready(Signals::MOVED);
        }
        Poll::Ready(Ok(()))
    }
}

impl Transport for ReadinessTransport {
    type Socket = Socket;
    type Buffer = NoBuffer;

    fn poll_receive(
        &mut self,
        core: &mut CoreOf<Self>,
        room: usize,
        patience: Patience,
        by: Instant,
    ) -> Poll<Result<Received, IoError>> {
        let Some(socket) = &core.socket else { return Poll::Ready(Err(IoError::Gone)) };
        if patience == Patience::Try {
            // No event reports bytes for which the task did not wait.
            self.link.add_ready(Signals::READ);
        }
        while self.link.is_ready(Signals::READ) {
            let into = core.input.room(room);
            if into.is_empty() {
                return Poll::Ready(Ok(Received::Full));
            }
            // A peer that sends as fast as it is served must not starve the others.
            if self.link.left() == 0 {
                return match patience {
                    Patience::Try => Poll::Ready(Ok(Received::Idle)),
                    Patience::Park | Patience::Wait => self.wait(core, Signals::AGAIN, by),
                };
            }
            let asked = into.len();
            match socket.receive(into) {
                Ok(0) => return Poll::Ready(Ok(Received::End)),
                Ok(count) => {
                    core.input.filled(count);
                    self.link.moved(count);
                    // A short receive empties the socket, unless the peer's end arrived with the bytes: its edge was
                    // already reported.
                    if count < asked && !self.link.is_ready(Signals::ENDED) {
                        self.link.clear_ready(Signals::READ);
                    }
                    return Poll::Ready(Ok(Received::Bytes));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.link.clear_ready(Signals::READ),
                Err(error) if interrupted(&error) => {}
                Err(error) => return Poll::Ready(Err(connection_error(&error))),
            }
        }
        if core.input.len() >= room {
            return Poll::Ready(Ok(Received::Full));
        }
        self.wait_for_bytes(core, patience, by)
    }

    /// A mechanism that reports errors without interest (`POLLERR`, `POLLHUP`) wakes the task. `select` and `busy` do
    /// not: there the wait ends with its deadline.
    fn poll_lost(&mut self, core: &mut CoreOf<Self>, by: Instant) -> Poll<IoError> {
        let waited = self.wait_unless_gone::<()>(core, Signals::default(), by);
        waited.map(|waited| waited.err().unwrap_or(IoError::Gone))
    }

    fn poll_flush(
        &mut self,
        core: &mut CoreOf<Self>,
        cx: &mut Context<'_>,
        by: Instant,
    ) -> Poll<Result<(), IoError>> {
        let Some(socket) = &core.socket else { return Poll::Ready(Err(IoError::Gone)) };
        if !core.out.is_empty() {
            core.cork.iter_mut().for_each(|cork| cork.put(socket));
        }
        while !core.out.is_empty() {
            ready!(self.poll_call(core, cx, usize::MAX, by))?;
        }
        self.end_flush(core, by)
    }

    fn poll_send(
        &mut self,
        core: &mut CoreOf<Self>,
        cx: &mut Context<'_>,
        by: Instant,
    ) -> Poll<Result<Flushed, IoError>> {
        let Some(socket) = &core.socket else { return Poll::Ready(Err(IoError::Gone)) };
        if !core.out.is_empty() {
            core.cork.iter_mut().for_each(|cork| cork.put(socket));
            ready!(self.poll_call(core, cx, SLICE, by))?;
            if !core.out.is_empty() {
                return Poll::Ready(Ok(Flushed::Part));
            }
        }
        self.end_flush(core, by).map(|ended| ended.map(|()| Flushed::All))
    }

    fn poll_finish(&mut self, core: &mut CoreOf<Self>, how: Finish, _by: Instant) -> Poll<()> {
        if let (Finish::Linger, Some(socket)) = (how, &core.socket) {
            socket.shut_down_writing();
        }
        Poll::Ready(())
    }
}

bitflags! {
    /// Signals that are ready, or that a task waits for.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) struct Signals: u8 {
        /// A receive may return bytes, an end, or an error.
        const READ = 1 << 0;
        /// There may be room to write.
        const WRITE = 1 << 1;
        /// The peer has ended its output: one more receive is due even after a short one.
        const ENDED = 1 << 2;
        /// The connection is lost.
        const GONE = 1 << 3;
        /// Not an event: the task asks to be polled again after other tasks.
        const AGAIN = 1 << 4;
        /// Bytes were received or sent in this activation.
        const MOVED = 1 << 5;
        /// An error is pending, or the socket's error queue is not empty.
        const FAULT = 1 << 6;
    }
}

impl Signals {
    /// The interest that is registered for a task that waits for these signals.
    #[inline]
    pub(super) fn interest(self) -> Interest {
        Interest { read: self.contains(Signals::READ), write: self.contains(Signals::WRITE) }
    }
}

impl From<Ready> for Signals {
    fn from(ready: Ready) -> Signals {
        let bit = |is_set: bool, signal: Signals| u8::from(is_set) * signal.bits();
        Signals::from_bits_retain(
            bit(ready.read, Signals::READ)
                | bit(ready.write, Signals::WRITE)
                | bit(ready.ended, Signals::ENDED)
                | bit(ready.gone, Signals::GONE)
                | bit(ready.error, Signals::FAULT),
        )
    }
}

/// A set of signals that the `Io` and the loop share.
#[derive(Default)]
struct AtomicSignals(AtomicU8);

impl AtomicSignals {
    #[inline]
    fn get(&self) -> Signals {
        Signals::from_bits_retain(self.0.load(Relaxed))
    }

    #[inline]
    fn set(&self, signals: Signals) {
        self.0.store(signals.bits(), Relaxed);
    }
}

/// The signals of a connection that are ready, and those that its task waits for.
///
/// It is atomic because a pool thread may poll the `Io`. All access is relaxed, because handing the task to another
/// thread orders it. On the thread of the loop, it costs no more than plain memory.
pub(crate) struct TaskLink {
    ready: AtomicSignals,
    want: AtomicSignals,
    deadline: AtomicU64,
    /// The remaining bytes of this poll before other tasks get their turn.
    left: AtomicUsize,
    /// The calls of this poll that moved bytes.
    moves: AtomicUsize,
    /// The end of this poll's time on the monotonic clock, in nanoseconds; set after some calls.
    turn_ends: AtomicU64,
}

/// The calls that move bytes in a poll before its time is measured. Most polls make fewer and read no clock.
const UNTIMED_MOVES: usize = 3;
/// The nanoseconds from then on until other tasks get their turn. A few bytes can cause much work.
const TURN_TIME: u64 = 2_000_000;

impl TaskLink {
    pub(crate) fn new() -> TaskLink {
        TaskLink {
            ready: AtomicSignals::default(),
            want: AtomicSignals::default(),
            deadline: AtomicU64::new(u64::MAX),
            left: AtomicUsize::new(0),
            moves: AtomicUsize::new(0),
            turn_ends: AtomicU64::new(u64::MAX),
        }
    }

    /// Begins an activation with these signals ready.
    pub(crate) fn begin(&self, ready: Signals) {
        self.ready.set(ready);
    }

    /// Begins a poll of the task and clears its waits. The poll may move `turn_bytes`, or fewer if its time ends.
    #[inline]
    pub(crate) fn begin_poll(&self, turn_bytes: usize) {
        self.want.set(Signals::default());
        self.deadline.store(u64::MAX, Relaxed);
        self.left.store(turn_bytes, Relaxed);
        self.moves.store(0, Relaxed);
    }

    /// The remaining bytes of this poll.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.left.load(Relaxed)
    }

    /// Bytes were received or sent.
    #[inline]
    pub(crate) fn moved(&self, count: usize) {
        self.add_ready(Signals::MOVED);
        let moves = self.moves.load(Relaxed) + 1;
        self.moves.store(moves, Relaxed);
        let is_over = moves >= UNTIMED_MOVES && self.is_over(moves);
        let left = if is_over { 0 } else { self.left().saturating_sub(count) };
        self.left.store(left, Relaxed);
    }

    /// Whether the time of this poll is over after `moves` calls.
    #[cold]
    fn is_over(&self, moves: usize) -> bool {
        if moves == UNTIMED_MOVES {
            self.turn_ends.store(monotonic() + TURN_TIME, Relaxed);
        }
        moves > UNTIMED_MOVES && monotonic() >= self.turn_ends.load(Relaxed)
    }

    #[inline]
    pub(crate) fn is_ready(&self, signals: Signals) -> bool {
        self.ready.get().intersects(signals)
    }

    #[inline]
    pub(crate) fn add_ready(&self, signals: Signals) {
        self.ready.set(self.ready.get() | signals);
    }

    #[inline]
    pub(crate) fn clear_ready(&self, signals: Signals) {
        self.ready.set(self.ready.get() - signals);
    }

    /// The signals that the task waits for; one of them suffices.
    #[inline]
    pub(crate) fn wants(&self) -> Signals {
        self.want.get()
    }

    /// The earliest deadline of its waits.
    #[inline]
    pub(crate) fn deadline(&self) -> Instant {
        Instant(self.deadline.load(Relaxed))
    }

    /// The task waits for these signals too.
    #[inline]
    pub(crate) fn wait_for(&self, signals: Signals, by: Instant) {
        self.want.set(self.want.get() | signals);
        self.deadline.store(by.min(self.deadline()).0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const READ: Signals = Signals::READ;
    const WRITE: Signals = Signals::WRITE;

    #[test]
    fn what_is_ready_is_remembered_until_it_is_used_up() {
        let link = TaskLink::new();
        link.begin(READ);
        link.begin_poll(9);
        link.add_ready(WRITE | Signals::ENDED);
        link.clear_ready(READ);
        assert!(!link.is_ready(READ) && link.is_ready(WRITE) && link.is_ready(READ | Signals::ENDED));
        link.wait_for(READ, Instant(7));
        assert_eq!((link.wants(), link.deadline()), (READ, Instant(7)));
        // The next connection starts without old signals.
        link.begin(READ | WRITE);
        link.begin_poll(9);
        assert!(!link.is_ready(Signals::ENDED | Signals::GONE) && link.wants() == Signals::default());
    }

    #[test]
    fn a_turn_ends_with_its_time_after_some_calls() {
        let link = TaskLink::new();
        link.begin_poll(1000);
        for _ in 0..UNTIMED_MOVES {
            link.moved(1);
            // The time of a turn is that of the machine.
            std::thread::sleep(Duration::from_nanos(2 * TURN_TIME));
        }
        assert_eq!(link.left(), 1000 - UNTIMED_MOVES);
        link.moved(1);
        assert_eq!(link.left(), 0);
        link.begin_poll(1000);
        link.moved(1);
        assert_eq!(link.left(), 999, "the next poll has a time of its own");
    }

    #[test]
    fn waits_of_one_poll_add_up_and_the_next_begins_with_none() {
        let link = TaskLink::new();
        link.begin_poll(9);
        link.wait_for(READ, Instant(70));
        link.wait_for(WRITE, Instant(50));
        link.wait_for(Signals::default(), Instant(60));
        assert_eq!((link.wants(), link.deadline()), (READ | WRITE, Instant(50)));
        link.moved(4);
        assert_eq!((link.left(), link.is_ready(Signals::MOVED)), (5, true));
        link.begin_poll(9);
        assert_eq!((link.wants(), link.deadline(), link.left()), (Signals::default(), Instant::NEVER, 9));
    }
}
