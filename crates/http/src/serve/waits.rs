//! The waits of a connection: for bytes, for room, and for its end. Each has a deadline, and a minimum rate limits
//! how often a send or a body renews it.
//!
//! They are futures and not `async fn`s, which would hold their arguments twice.

use std::future::{Future, poll_fn};
use std::task::{Poll, ready};
use std::time::Duration;

use super::session::Next;
use crate::clock::{self, Instant};
use crate::io::{Finish, Io, IoError, Patience, Received};
use crate::limits::Limits;

/// The empty line that is skipped before a request line.
pub(crate) const BLANK: &[u8] = b"\r\n";

/// Receives more bytes, with room for the largest head and the empty line before it.
pub(crate) fn receive<I: Io>(
    io: &mut I,
    limits: &Limits,
    patience: Patience,
    by: Instant,
) -> impl Future<Output = Result<Received, IoError>> {
    let room = limits.max_head.saturating_add(BLANK.len());
    poll_fn(move |cx| io.poll_receive(cx, room, patience, by))
}

/// Sends the output while the peer takes it at the minimum rate.
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

/// Ends the output. Returns what the driver does with the connection.
pub(crate) fn finish<I: Io>(io: &mut I, limits: &Limits, how: Finish) -> impl Future<Output = Next> {
    let by = clock::now() + limits.send_timeout;
    poll_fn(move |cx| {
        io.poll_finish(cx, how, by).map(|()| match how {
            Finish::Close => Next::Close,
            Finish::Linger => Next::Linger,
        })
    })
}

/// A minimum rate: from the second window of time on, each window moves at least `least` bytes. A large file on a
/// slow line is sent; a line that stalls is dropped after two windows.
pub(crate) struct Pace {
    by: Instant,
    window: Duration,
    least: u64,
    /// Bytes that had moved when this window began; none if they were not counted before the first window.
    moved: Option<u64>,
}

impl Pace {
    pub(crate) fn begin(window: Duration, rate: u64, moved: Option<u64>) -> Pace {
        let least = rate.saturating_mul(window.as_secs()).max(1);
        Pace { by: clock::now() + window, window, least, moved }
    }

    /// The end of this window.
    pub(crate) fn by(&self) -> Instant {
        self.by
    }

    /// Begins the next window if enough has moved in this one; `moved` is the sum so far.
    pub(crate) fn renew(&mut self, moved: u64) -> Result<(), IoError> {
        if self.moved.is_some_and(|before| moved.saturating_sub(before) < self.least) {
            return Err(IoError::TimedOut);
        }
        self.moved = Some(moved);
        self.by = clock::now() + self.window;
        Ok(())
    }
}
