//! What a connection waits for: bytes, its output's way, its own end. None of it lasts longer than a
//! deadline and a least rate allow.
//!
//! These are futures of their own and no `async fn`s, which would hold their arguments twice.

use std::future::{Future, poll_fn};
use std::task::{Poll, ready};
use std::time::Duration;

use super::session::Next;
use crate::clock::{self, Instant};
use crate::io::{Finish, Io, IoError, Patience, Received};
use crate::limits::Limits;

/// What may stand before a request line.
pub(crate) const BLANK: &[u8] = b"\r\n";

/// Receives more bytes. The room is that of the largest head and the empty line before it.
pub(crate) fn receive<I: Io>(
    io: &mut I,
    limits: &Limits,
    patience: Patience,
    by: Instant,
) -> impl Future<Output = Result<Received, IoError>> {
    let room = limits.max_head.saturating_add(BLANK.len());
    poll_fn(move |cx| io.poll_receive(cx, room, patience, by))
}

/// Sends what is staged, as long as the peer takes it at the least rate.
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

/// Ends the output; says what becomes of the connection.
pub(crate) fn finish<I: Io>(io: &mut I, limits: &Limits, how: Finish) -> impl Future<Output = Next> {
    let by = clock::now() + limits.send_timeout;
    poll_fn(move |cx| {
        io.poll_finish(cx, how, by).map(|()| match how {
            Finish::Close => Next::Close,
            Finish::Linger => Next::Linger,
        })
    })
}

/// A start, a grace, and a least rate: from the second window of time on, at least so many bytes have to
/// move in each. A large file on a slow line lives; a line that stalls is dropped after two windows.
pub(crate) struct Pace {
    by: Instant,
    window: Duration,
    least: u64,
    /// What had moved when this window began; none in a first window whose start nobody counted.
    moved: Option<u64>,
}

impl Pace {
    pub(crate) fn begin(window: Duration, rate: u64, moved: Option<u64>) -> Pace {
        let least = rate.saturating_mul(window.as_secs()).max(1);
        Pace { by: clock::now() + window, window, least, moved }
    }

    /// When this window ends.
    pub(crate) fn by(&self) -> Instant {
        self.by
    }

    /// Begins the next window where enough has moved in this one; `moved` is what has moved in all.
    pub(crate) fn renew(&mut self, moved: u64) -> Result<(), IoError> {
        if self.moved.is_some_and(|before| moved.saturating_sub(before) < self.least) {
            return Err(IoError::TimedOut);
        }
        self.moved = Some(moved);
        self.by = clock::now() + self.window;
        Ok(())
    }
}
