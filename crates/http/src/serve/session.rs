//! The state of a connection between requests, the step after a response, and the waits for bytes, for room,
//! and for the end. Each wait has a deadline, and a minimum rate limits how often a send or a body renews it.
//!
//! Waits are futures instead of `async fn`s, which would store their arguments twice.

use std::future::{Future, poll_fn};
use std::task::{Poll, ready};
use std::time::Duration;

use crate::clock::{self, Instant};
use crate::io::{Finish, Io, IoError, Patience, Received};
use crate::limits::Limits;
use crate::message::request::{Body, Method, Request, RequestSummary};

/// The driver's next step with a connection after [`crate::serve_connection`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// No bytes are left: keep the socket and the [`Session`], release everything else, and serve the
    /// connection again when bytes arrive. Close it at this time.
    Park(Instant),
    /// Output is shut down: read and discard input within a bound, then close.
    Linger,
    /// Close immediately.
    Close,
}

/// The state of an idle connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Session(u32);

impl Session {
    /// The bit of a connection that speaks HTTP/2.
    const HTTP2: u32 = 1 << 31;

    /// The bit of an HTTP/2 connection that has answered a request. The other bits are its key.
    const ANSWERED: u32 = 1 << 30;

    /// Returns the session of a parked HTTP/2 connection. `answered`: it has answered a request.
    pub(crate) fn http2(key: u32, answered: bool) -> Session {
        debug_assert!(key < Session::ANSWERED, "30 bits");
        Session(Session::HTTP2 | if answered { Session::ANSWERED } else { 0 } | key)
    }

    /// Returns the key of a parked HTTP/2 connection.
    pub(crate) fn http2_key(self) -> Option<u32> {
        (self.0 & Session::HTTP2 != 0).then_some(self.0 & (Session::ANSWERED - 1))
    }

    /// Returns the number of requests answered so far by HTTP/1, saturating.
    pub fn requests(self) -> u32 {
        if self.http2_key().is_some() { 0 } else { self.0 }
    }

    /// Whether a request was answered.
    pub fn has_answered(self) -> bool {
        match self.http2_key() {
            Some(_) => self.0 & Session::ANSWERED != 0,
            None => self.0 != 0,
        }
    }

    /// Counts a request of HTTP/1.
    #[inline]
    pub(crate) fn count(&mut self) {
        self.0 = (self.0 + 1).min(Session::HTTP2 - 1);
    }
}

/// The step after a response.
#[derive(Clone, Copy)]
pub(crate) enum After {
    /// Parse the next head.
    Continue,
    /// Discard this body, which the service did not read.
    Discard(Body),
    /// End the connection.
    End(Finish),
}

/// The facts that decide whether a connection persists.
#[derive(Clone, Copy)]
pub(crate) struct Persistence<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) session: &'a Session,
    pub(crate) draining: bool,
    /// Whether further bytes follow the request.
    pub(crate) more: bool,
}

impl Persistence<'_> {
    /// Decides whether the connection persists after the response to this request, and returns the next step.
    /// `persistent` is the request's own wish, and `unread` the body that follows it.
    pub(crate) fn decide(self, request: &Request<'_>, persistent: bool, unread: Body) -> (bool, After) {
        let Persistence { limits, session, draining, more } = self;
        let readable = match unread {
            Body::Empty => true,
            // A client that waits for `100 Continue` sends no body after another response; a client that does
            // not wait sends it. The server cannot distinguish them, and closes (RFC 9110 §10.1.1).
            _ if request.expects_continue => false,
            Body::Length(length) => length <= limits.max_discard,
            // The length is only known after reading it.
            Body::Streamed => true,
        };
        let last = limits.requests_per_connection.is_some_and(|bound| session.requests() >= bound);
        // Bytes after a refused CONNECT may be meant for the other end of a tunnel.
        let persistent = persistent && readable && !last && !draining && request.method != Method::Connect;
        let after = match (persistent, unread) {
            (true, Body::Empty) => After::Continue,
            (true, body) => After::Discard(body),
            // If the client demanded the end and sent no further bytes, closing loses nothing.
            (false, Body::Empty) if !more && !last && !draining => After::End(Finish::Close),
            _ => After::End(Finish::Linger),
        };
        (persistent, after)
    }
}

/// Returns the summary of refused bytes: their first line, shortened.
pub(crate) fn summarize(input: &[u8]) -> RequestSummary<'_> {
    const SHOWN: usize = 1024;
    let input = &input[..input.len().min(SHOWN)];
    RequestSummary::Unparsed(&input[..memchr::memchr2(b'\r', b'\n', input).unwrap_or(input.len())])
}

/// The empty line that may precede a request line.
pub(crate) const BLANK: &[u8] = b"\r\n";

/// Receives more bytes, up to the largest head with an empty line before it.
pub(crate) fn receive<I: Io>(
    io: &mut I,
    limits: &Limits,
    patience: Patience,
    by: Instant,
) -> impl Future<Output = Result<Received, IoError>> {
    let room = limits.max_head.saturating_add(BLANK.len());
    poll_fn(move |cx| io.poll_receive(cx, room, patience, by))
}

/// Sends the output while the peer receives at the minimum rate.
pub(crate) fn flush<I: Io>(io: &mut I, limits: &Limits) -> impl Future<Output = Result<(), IoError>> {
    let mut pace = Pace::begin(limits.send_timeout, limits.min_rate, None);
    poll_fn(move |cx| {
        loop {
            match ready!(io.poll_flush(cx, pace.by)) {
                Err(IoError::TimedOut) => pace.renew(io.delivered())?,
                other => return Poll::Ready(other),
            }
        }
    })
}

/// Ends the output. Returns the driver's next step.
pub(crate) fn finish<I: Io>(io: &mut I, limits: &Limits, how: Finish) -> impl Future<Output = Next> {
    let by = clock::now() + limits.send_timeout;
    poll_fn(move |cx| {
        io.poll_finish(cx, how, by).map(|()| match how {
            Finish::Close => Next::Close,
            Finish::Linger => Next::Linger,
        })
    })
}

/// A minimum rate: from the second window on, each window must transfer at least `least` bytes. A large file
/// on a slow line is sent; a stalled line is dropped after two windows.
pub(crate) struct Pace {
    by: Instant,
    window: Duration,
    least: u64,
    /// The bytes transferred before this window; None if they were not counted before the first window.
    moved: Option<u64>,
}

impl Pace {
    pub(crate) fn begin(window: Duration, rate: u64, moved: Option<u64>) -> Pace {
        let milliseconds = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
        let least = (rate.saturating_mul(milliseconds) / 1000).max(1);
        Pace { by: clock::now() + window, window, least, moved }
    }

    /// Returns the end of this window.
    pub(crate) fn by(&self) -> Instant {
        self.by
    }

    /// Begins the next window if this one transferred enough. `moved` is the total so far.
    pub(crate) fn renew(&mut self, moved: u64) -> Result<(), IoError> {
        if self.moved.is_some_and(|before| moved.saturating_sub(before) < self.least) {
            return Err(IoError::TimedOut);
        }
        self.moved = Some(moved);
        self.by = clock::now() + self.window;
        Ok(())
    }
}
