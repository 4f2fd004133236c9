//! The blocking driver: every call waits, one connection at a time.
//!
//! Calls wait in slices (`SO_RCVTIMEO`, `SO_SNDTIMEO`), so that a deadline and the end of the server are
//! seen within one. There is no `poll()` in front of `recv`: that would be another model.

use std::future::Future;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use tenfold_http::{Finish, Instant, Io, IoError, Local, Next, Out, Patience, Peer, Received};
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::socket::Socket;

use super::cork::Cork;
use super::files::{Sent, send_some};
use super::{connection_error, interrupted, read_clock};
use crate::input::Input;
use crate::plan::{Bounds, Plan};
use crate::protocol::{Event, Protocol};
use crate::senders::FileSender;

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
    socket: &'a Socket,
    idle: &'a dyn Idle,
    /// Called between two slices of a wait: [`Protocol::rest`].
    rest: &'a dyn Fn(),
    input: Input,
    out: Out,
    sent: u64,
    peer: Peer,
    local: Local,
    files: FileSender,
    cork: Cork,
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

/// Serves a connection until it is to be closed, which is left to the caller. `idle` hears of its waits.
pub(crate) fn serve<P: Protocol>(
    socket: &Socket,
    peer: Option<SocketAddr>,
    listener: u16,
    plan: &Plan,
    protocol: &P,
    idle: &dyn Idle,
) {
    if peer.is_none() && socket.set_wait_slice(SLICE).is_err() {
        return;
    }
    let peer = peer.map_or(Peer::Unix, Peer::Internet);
    let local = Local { listener };
    let rest = || {
        protocol.rest();
    };
    let (input, out, files) = (Input::that_grows(), Out::new(), FileSender::new(plan));
    let mut cork = Cork::new(plan);
    cork.begin(&peer);
    let mut io = BlockingIo { socket, idle, rest: &rest, input, out, sent: 0, peer, local, files, cork };
    let mut memory = P::State::default();
    read_clock();
    loop {
        let before = io.sent;
        let next = catch_unwind(AssertUnwindSafe(|| block_on(protocol.serve(&mut io, &mut memory))));
        protocol.observe(Event::Sent(io.sent - before));
        io.files.report(|event| protocol.observe(event));
        io.files.clear();
        match next {
            Ok(Next::Park(by)) => {
                protocol.rest();
                let now = read_clock();
                if lifecycle::phase() != Phase::Serving || now >= by {
                    return;
                }
            }
            Ok(Next::Linger) => return linger(io.socket, &plan.bounds),
            Ok(Next::Close) => return,
            Err(_) => return protocol.observe(Event::Panicked),
        }
    }
}

/// Reads and throws away what still comes, within a bound, so that closing does not reset what was sent.
fn linger(socket: &Socket, bounds: &Bounds) {
    let (mut scratch, mut left) = ([0; 4096], bounds.linger_bytes);
    let by = read_clock() + bounds.linger_time;
    while left > 0 && read_clock() < by && lifecycle::phase() != Phase::Stopping {
        match socket.receive(&mut scratch) {
            Ok(0) => return,
            Ok(count) => left = left.saturating_sub(count as u64),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock || interrupted(&error) => {}
            Err(_) => return,
        }
    }
}

struct Unparker(Thread);

impl Wake for Unparker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    static WAKER: Waker = Waker::from(Arc::new(Unparker(thread::current())));
}

/// Runs `future` to its end on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = WAKER.with(Waker::clone);
    let mut cx = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut cx) {
            return value;
        }
        thread::park_timeout(SLICE);
    }
}
