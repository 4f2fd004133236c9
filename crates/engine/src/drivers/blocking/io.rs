//! A connection on a blocking socket: every call waits, in slices.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tenfold_http::{Finish, Flushed, Instant, IoError, Patience, Received};
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::socket::{Socket, wait_slice};

use crate::drivers::connection::{ConnectionIo, CoreOf, SLICE, Transport};
use crate::drivers::input::NoBuffer;
use crate::senders::failure::{connection_error, interrupted};
use crate::worker::retirement::idle_until;
use crate::worker::tick::read_clock;

/// The most bytes of a file that one call sends. A larger call could last for minutes with a slow peer that always
/// accepts some bytes in time.
const PART: usize = 1024 * 1024;

/// An observer of connections that are idle for a slice or longer; shorter waits cost nothing.
pub(crate) trait Idle {
    /// Called after each slice of a connection that has been idle since `since`, or that [`LINGERS`]. Returns whether
    /// to close the connection.
    fn gives_way(&self, since: Instant) -> bool;

    /// Whether the end of the input is an eviction.
    fn is_evicted(&self) -> bool {
        false
    }

    /// Called when the wait ends.
    fn over(&self) {}
}

/// The idle time of a lingering connection: it is evicted before all others.
pub(crate) const LINGERS: Instant = Instant(1);

/// The time at which a connection became idle, for other threads or processes, in milliseconds of the monotonic clock;
/// 0 while it is active.
pub(crate) struct IdleSince<'a>(pub(crate) &'a AtomicU64);

/// The word of an evicted connection.
const EVICTED: u64 = u64::MAX;

impl IdleSince<'_> {
    /// Whether the connection lingers.
    pub(crate) fn lingers(&self) -> bool {
        self.0.load(Ordering::Relaxed) == LINGERS.0
    }

    /// Evicts the connection. Returns whether it lingers: then it checks by itself whether it is evicted.
    pub(crate) fn evict(&self) -> bool {
        self.0.swap(EVICTED, Ordering::Relaxed) == LINGERS.0
    }

    /// Begins a connection, which is active.
    pub(crate) fn begin(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Returns the time for which the connection has been idle at `now`, if it is.
    pub(crate) fn idle_for(&self, now: Instant) -> Option<Duration> {
        let since = Some(self.0.load(Ordering::Relaxed)).filter(|since| *since != 0);
        since.map(|since| now.since(Instant(since)))
    }
}

impl Idle for IdleSince<'_> {
    fn gives_way(&self, since: Instant) -> bool {
        // Before, the word is 0 or the same time.
        self.0.fetch_max(since.0.max(1), Ordering::Relaxed) == EVICTED
    }

    fn is_evicted(&self) -> bool {
        self.0.load(Ordering::Relaxed) == EVICTED
    }

    fn over(&self) {
        let active = |word| (word != EVICTED).then_some(0);
        // An evicted connection answers a request that has just arrived, and then ends.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, active);
    }
}

/// A connection on a blocking socket.
pub(crate) type BlockingIo<'a> = ConnectionIo<Blocking<'a>>;

/// Calls that block.
pub(crate) struct Blocking<'a> {
    pub(super) idle: &'a dyn Idle,
    /// The deadline of the last idle wait, and the time since which the connection is idle.
    idle_wait: (Instant, Instant),
    /// Whether the connection gives way to another one.
    pub(super) evicted: bool,
    /// Called between two slices of a wait: [`crate::Protocol::before_wait`].
    pub(super) before_wait: &'a dyn Fn(),
}

impl<'a> Blocking<'a> {
    pub(super) fn new(idle: &'a dyn Idle, before_wait: &'a dyn Fn()) -> Blocking<'a> {
        Blocking { idle, idle_wait: (Instant::NEVER, Instant::NEVER), evicted: false, before_wait }
    }

    /// The time since which the connection has been idle, in a wait that begins `now`. A wait with the deadline of the
    /// last one continues it: the bytes in between were no request.
    fn idle_since(&mut self, by: Instant, now: Instant) -> Instant {
        if self.idle_wait.0 != by {
            self.idle_wait = (by, now);
        }
        self.idle_wait.1
    }

    /// Whether a connection that has been idle since `since` ends before its next wait. Bytes that come more often than
    /// once in a slice would otherwise keep it open.
    fn ends_before_wait(&mut self, socket: &Socket, since: Instant) -> bool {
        if socket.has_input() {
            return false;
        }
        self.evicted = self.idle.gives_way(since);
        self.evicted || lifecycle::phase() >= Phase::Draining
    }

    /// Repeats `call`, one slice each time, until its result is not a timeout.
    fn until<T>(
        &self,
        mut by: Instant,
        is_idle: bool,
        mut call: impl FnMut() -> Option<T>,
    ) -> Result<Option<T>, IoError> {
        loop {
            if let Some(value) = call() {
                read_clock();
                return Ok(Some(value));
            }
            let now = read_clock();
            match lifecycle::phase() {
                Phase::Stopping => return Err(IoError::Gone),
                Phase::Draining if is_idle => return Ok(None),
                phase if is_idle => by = idle_until(by, phase),
                _ => {}
            }
            if now >= by {
                return Err(IoError::TimedOut);
            }
            (self.before_wait)();
        }
    }

    /// Ends a flush: waits until the kernel has released the sent memory.
    fn end_flush(&self, core: &mut CoreOf<Self>, by: Instant) -> Result<(), IoError> {
        let socket = *core.socket.as_ref().ok_or(IoError::Gone)?;
        core.cork.iter_mut().for_each(|cork| cork.pop(socket));
        if !core.files.is_outstanding() {
            return Ok(());
        }
        let files = &mut core.files;
        let released = || match files.holds(socket) {
            Ok(false) => Some(Ok(())),
            Ok(true) => {
                socket.wait_for_error(wait_slice());
                None
            }
            Err(error) => Some(Err(error)),
        };
        self.until(by, false, released)?.unwrap_or(Ok(()))
    }
}

impl<'a> Transport for Blocking<'a> {
    type Socket = &'a Socket;
    type Buffer = NoBuffer;

    const BLOCKS: bool = true;

    fn poll_receive(
        &mut self,
        core: &mut CoreOf<Self>,
        room: usize,
        patience: Patience,
        by: Instant,
    ) -> Poll<Result<Received, IoError>> {
        let parks = patience == Patience::Park && core.input.is_empty();
        let Some(socket) = core.socket else { return Poll::Ready(Err(IoError::Gone)) };
        let into = core.input.room(room);
        if into.is_empty() {
            return Poll::Ready(Ok(Received::Full));
        }
        if patience == Patience::Try {
            return Poll::Ready(match socket.try_receive(into) {
                Ok(0) => Ok(Received::End),
                Ok(count) => {
                    core.input.filled(count);
                    Ok(Received::Bytes)
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Received::Idle),
                Err(error) => Err(connection_error(&error)),
            });
        }
        // A trickle of bytes does not extend the deadline.
        let now = read_clock();
        if now >= by {
            return Poll::Ready(Err(IoError::TimedOut));
        }
        let since = if parks { self.idle_since(by, now) } else { now };
        let mut was_idle = parks && now.since(since) >= wait_slice();
        if was_idle && self.ends_before_wait(socket, since) {
            return Poll::Ready(Ok(Received::Idle));
        }
        // No count: the connection gives way.
        let received = self.until(by, parks, || match socket.receive(into) {
            Ok(0) if parks && self.idle.is_evicted() => Some(Ok(None)),
            Ok(count) => Some(Ok(Some(count))),
            Err(error) if error.kind() == ErrorKind::WouldBlock || interrupted(&error) => {
                was_idle = parks;
                (parks && self.idle.gives_way(since)).then_some(Ok(None))
            }
            Err(error) => Some(Err(connection_error(&error))),
        });
        if was_idle {
            self.idle.over();
        }
        Poll::Ready(match received {
            Ok(Some(Ok(Some(0)))) => Ok(Received::End),
            Ok(Some(Ok(Some(count)))) => {
                core.input.filled(count);
                Ok(Received::Bytes)
            }
            Ok(Some(Err(error))) | Err(error) => Err(error),
            Ok(None) => Ok(Received::Idle),
            Ok(Some(Ok(None))) => {
                self.evicted = true;
                Ok(Received::Idle)
            }
        })
    }

    /// The thread does the work and does not watch the socket. The wait ends at its deadline, or when the server stops.
    fn poll_lost(&mut self, _core: &mut CoreOf<Self>, by: Instant) -> Poll<IoError> {
        match () {
            () if read_clock() >= by => Poll::Ready(IoError::TimedOut),
            () if lifecycle::phase() == Phase::Stopping => Poll::Ready(IoError::Gone),
            () => Poll::Pending,
        }
    }

    fn poll_flush(
        &mut self,
        core: &mut CoreOf<Self>,
        _cx: &mut Context<'_>,
        by: Instant,
    ) -> Poll<Result<(), IoError>> {
        let Some(socket) = core.socket else { return Poll::Ready(Err(IoError::Gone)) };
        if !core.out.is_empty() {
            core.cork.iter_mut().for_each(|cork| cork.put(socket));
        }
        while !core.out.is_empty() {
            // A large call could wait long for little progress, so the driver sends in slices.
            let step = self.until(by, false, || core.send(PART).transpose());
            if let Ok(Some(Err(error))) | Err(error) = step {
                return Poll::Ready(Err(error));
            }
            if lifecycle::phase() == Phase::Stopping {
                return Poll::Ready(Err(IoError::Gone));
            }
            if !core.out.is_empty() && tenfold_http::clock::now() >= by {
                return Poll::Ready(Err(IoError::TimedOut));
            }
        }
        Poll::Ready(self.end_flush(core, by))
    }

    fn poll_send(
        &mut self,
        core: &mut CoreOf<Self>,
        _cx: &mut Context<'_>,
        by: Instant,
    ) -> Poll<Result<Flushed, IoError>> {
        let Some(socket) = core.socket else { return Poll::Ready(Err(IoError::Gone)) };
        if !core.out.is_empty() {
            core.cork.iter_mut().for_each(|cork| cork.put(socket));
            let sent = core.send(SLICE)?;
            let now = read_clock();
            if lifecycle::phase() == Phase::Stopping {
                return Poll::Ready(Err(IoError::Gone));
            }
            if !core.out.is_empty() {
                if sent.is_none() {
                    (self.before_wait)();
                }
                return Poll::Ready(if now >= by { Err(IoError::TimedOut) } else { Ok(Flushed::Part) });
            }
        }
        Poll::Ready(self.end_flush(core, by).map(|()| Flushed::All))
    }

    fn poll_finish(&mut self, core: &mut CoreOf<Self>, how: Finish, _by: Instant) -> Poll<()> {
        if let (Finish::Linger, Some(socket)) = (how, core.socket) {
            socket.shut_down_writing();
        }
        Poll::Ready(())
    }
}
