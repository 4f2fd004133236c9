//! A connection on a socket that blocks: every call waits, in slices.

use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tenfold_http::{Finish, Instant, Io, IoError, Local, Out, Patience, Peer, Received};
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::socket::Socket;

use crate::drivers::input::Input;
use crate::protocol::read_clock;
use crate::senders::cork::Cork;
use crate::senders::failure::{connection_error, interrupted};
use crate::senders::sender::{FileSender, Sent, send_some};

/// The longest that a call waits before the clock and the phase are looked at.
pub(crate) const SLICE: Duration = Duration::from_secs(1);

/// Bytes of a file that one call sends at most: a peer that takes all of it in time would keep a long one
/// busy for minutes.
const PART: usize = 1024 * 1024;

/// Hears of a connection that is idle for a slice or longer; a shorter wait costs nothing.
pub(crate) trait Idle {
    /// Called after each slice in which nothing came. The connection has been idle since `since`; it is closed if this
    /// returns true.
    fn gives_way(&self, since: Instant) -> bool;

    /// Called when the wait is over.
    fn over(&self) {}
}

/// Tells another thread or process since when a connection has been idle, in milliseconds of the monotonic clock; 0
/// while it is not.
pub(crate) struct IdleSince<'a>(pub(crate) &'a AtomicU64);

impl IdleSince<'_> {
    /// How long the connection has been idle at `now`, if it is.
    pub(crate) fn idle_for(&self, now: Instant) -> Option<Duration> {
        let since = Some(self.0.load(Ordering::Relaxed)).filter(|since| *since != 0);
        since.map(|since| now.since(Instant(since)))
    }
}

impl Idle for IdleSince<'_> {
    fn gives_way(&self, since: Instant) -> bool {
        self.0.store(since.0.max(1), Ordering::Relaxed);
        false
    }

    fn over(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// A connection on a socket that blocks.
pub(crate) struct BlockingIo<'a> {
    pub(super) socket: &'a Socket,
    pub(super) idle: &'a dyn Idle,
    /// Called between two slices of a wait: [`Protocol::rest`].
    pub(super) rest: &'a dyn Fn(),
    pub(super) input: Input,
    pub(super) out: Out,
    pub(super) sent: u64,
    pub(super) peer: Peer,
    pub(super) local: Local,
    pub(super) files: FileSender,
    pub(super) cork: Cork,
}

impl BlockingIo<'_> {
    /// Waits in slices until `call` does something else than wait.
    fn until<T>(
        rest: &dyn Fn(),
        by: Instant,
        leaving: bool,
        mut call: impl FnMut() -> Option<T>,
    ) -> Result<Option<T>, IoError> {
        loop {
            if let Some(value) = call() {
                read_clock();
                return Ok(Some(value));
            }
            if read_clock() >= by {
                return Err(IoError::TimedOut);
            }
            rest();
            match lifecycle::phase() {
                Phase::Stopping => return Err(IoError::Gone),
                Phase::Draining if leaving => return Ok(None),
                _ => {}
            }
        }
    }
}

impl BlockingIo<'_> {
    /// Waits until the kernel no longer holds what was sent.
    fn until_released(&mut self, by: Instant) -> Result<(), IoError> {
        let (socket, files) = (self.socket, &mut self.files);
        let released = || match files.holds(socket) {
            Ok(false) => Some(Ok(())),
            Ok(true) => {
                socket.wait_for_error(SLICE);
                None
            }
            Err(error) => Some(Err(error)),
        };
        BlockingIo::until(self.rest, by, false, released)?.unwrap_or(Ok(()))
    }
}

impl Io for BlockingIo<'_> {
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
        let resting = patience == Patience::Park && self.input.is_empty();
        let (socket, into) = (self.socket, self.input.room(room));
        if into.is_empty() {
            return Poll::Ready(Ok(Received::Full));
        }
        // Bytes that keep coming, however few, do not put the deadline off.
        let since = read_clock();
        if since >= by {
            return Poll::Ready(Err(IoError::TimedOut));
        }
        let mut was_idle = false;
        let received = BlockingIo::until(self.rest, by, resting, || match socket.receive(into) {
            Ok(count) => Some(Ok(count)),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock || interrupted(&error) => {
                was_idle = resting;
                // As if the peer had ended its output.
                (resting && self.idle.gives_way(since)).then_some(Ok(0))
            }
            Err(error) => Some(Err(connection_error(&error))),
        });
        if was_idle {
            self.idle.over();
        }
        Poll::Ready(match received {
            Ok(Some(Ok(0))) => Ok(Received::End),
            Ok(Some(Ok(count))) => {
                self.input.filled(count);
                Ok(Received::Bytes)
            }
            Ok(Some(Err(error))) | Err(error) => Err(error),
            Ok(None) => Ok(Received::Idle),
        })
    }

    /// Work is done in place, and nobody looks at the socket meanwhile: what ends the wait is its deadline, or the
    /// end of the server.
    fn poll_lost(&mut self, _cx: &mut Context<'_>, by: Instant) -> Poll<IoError> {
        match () {
            () if read_clock() >= by => Poll::Ready(IoError::TimedOut),
            () if lifecycle::phase() == Phase::Stopping => Poll::Ready(IoError::Gone),
            () => Poll::Pending,
        }
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>, by: Instant) -> Poll<Result<(), IoError>> {
        if !self.out.is_empty() {
            self.cork.put(self.socket);
        }
        while !self.out.is_empty() {
            let (socket, out, files) = (self.socket, &mut self.out, &mut self.files);
            // One call may wait long before it has sent much; in slices its part is seen.
            let step =
                BlockingIo::until(self.rest, by, false, || match send_some(socket, out, files, PART) {
                    Ok(Sent::Some(count)) => Some(Ok(count)),
                    Ok(Sent::Nothing) => None,
                    Err(error) => Some(Err(error)),
                });
            match step {
                Ok(Some(Ok(count))) => self.sent += count as u64,
                Ok(Some(Err(error))) | Err(error) => return Poll::Ready(Err(error)),
                Ok(None) => {}
            }
            if lifecycle::phase() == Phase::Stopping {
                return Poll::Ready(Err(IoError::Gone));
            }
            if !self.out.is_empty() && tenfold_http::clock::now() >= by {
                return Poll::Ready(Err(IoError::TimedOut));
            }
        }
        self.cork.pop(self.socket);
        Poll::Ready(if self.files.is_outstanding() { self.until_released(by) } else { Ok(()) })
    }

    fn poll_finish(&mut self, _cx: &mut Context<'_>, how: Finish, _by: Instant) -> Poll<()> {
        if how == Finish::Linger {
            self.socket.shut_down_writing();
        }
        Poll::Ready(())
    }

    fn delivered(&self) -> u64 {
        self.socket.acknowledged().unwrap_or(self.sent)
    }

    fn draining(&self) -> bool {
        lifecycle::phase() != Phase::Serving
    }
}
