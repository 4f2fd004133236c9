//! The life of a connection.
//!
//! [`serve_connection`] is written once and runs on every I/O model. What does not wait (finding a head,
//! parsing it, answering it) is the synchronous [`turn`]; the future only holds what outlives a wait.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use crate::clock::{self, Instant};
use crate::framing::Body;
use crate::head::{self, Head, Scan};
use crate::io::{Finish, Io, IoError, Patience, Received};
use crate::limits::Limits;
use crate::service::{Answer, Next, Refusal, Reply, Service, Session};

/// Serves the requests that arrive on `io` until there is nothing in hand, and says what becomes of the
/// connection then.
pub async fn serve_connection<I, S>(io: &mut I, service: &S, limits: &Limits, session: &mut Session) -> Next
where
    I: Io,
    S: Service + ?Sized,
{
    let mut scanned = 0;
    let mut head_by = None;
    let mut answered = false;
    loop {
        let before = session.requests;
        let turn = turn(io, service, limits, session, &mut scanned);
        if session.requests != before {
            answered = true;
            head_by = None;
        }
        if !io.split().1.is_empty() && flush(io, limits).await.is_err() {
            return Next::Close;
        }
        match turn {
            Turn::Again => {}
            Turn::Incomplete => {
                let now = clock::now();
                let in_hand = !io.split().0.is_empty();
                if !in_hand && answered {
                    return if io.draining() { Next::Close } else { Next::Park(now + limits.idle_timeout) };
                }
                let by = match in_hand {
                    true => *head_by.get_or_insert(now + limits.head_timeout),
                    false if session.requests == 0 => now + limits.head_timeout,
                    false => now + limits.idle_timeout,
                };
                let room = limits.max_head + BLANK.len();
                match poll_fn(|cx| io.poll_receive(cx, room, Patience::Park, by)).await {
                    Ok(Received::Bytes) => {}
                    Ok(Received::Idle) => return Next::Park(by),
                    Ok(Received::Full) => return refuse(io, service, limits, Refusal::HeadTooLarge).await,
                    Err(IoError::TimedOut) if in_hand && io.split().0 != BLANK => {
                        return refuse(io, service, limits, Refusal::TimedOut).await;
                    }
                    Ok(Received::End) | Err(_) => return finish(io, limits, Finish::Close).await,
                }
            }
            Turn::Then(after) => {
                if let Some(next) = follow(io, limits, after).await {
                    return next;
                }
            }
            Turn::Wait(waiting) => {
                let Ok(after) = later(io, service, limits, waiting).await else { return Next::Close };
                if let Some(next) = follow(io, limits, after).await {
                    return next;
                }
            }
        }
    }
}

/// What may stand before a request line.
const BLANK: &[u8] = b"\r\n";

type Coming = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// What the synchronous part came to.
enum Turn {
    /// The output is full: flush, then go on.
    Again,
    /// No whole head is in hand.
    Incomplete,
    /// Something has to happen before the next head.
    Then(After),
    /// An answer has to be waited for.
    Wait(Box<Waiting>),
}

/// What follows an answer.
#[derive(Clone, Copy)]
enum After {
    Continue,
    Discard(u64),
    End(Finish),
}

struct Waiting {
    coming: Coming,
    after: After,
}

/// Answers the heads that are in hand, until there is none, the output is full, or something has to be
/// waited for.
fn turn<I, S>(io: &mut I, service: &S, limits: &Limits, session: &mut Session, scanned: &mut usize) -> Turn
where
    I: Io,
    S: Service + ?Sized,
{
    let (peer, draining) = (*io.peer(), io.draining());
    loop {
        let (input, out) = io.split();
        if out.full() {
            return Turn::Again;
        }
        // One empty line before a request is passed over (RFC 9112 §2.2); a second one is malformed. It
        // stays in hand until the head is whole, so that empty lines win a peer no time.
        let blank = if input.starts_with(BLANK) { BLANK.len() } else { 0 };
        let input = &mut input[blank..];
        let mut looked_at = scanned.saturating_sub(blank);
        let length = match head::scan(input, &mut looked_at, limits) {
            Ok(Scan::Whole(length)) => length,
            Ok(Scan::Partial) => {
                *scanned = blank + looked_at;
                return Turn::Incomplete;
            }
            Err(refusal) => {
                service.refuse(refusal, first_line(input), &peer, out);
                return Turn::Then(After::End(Finish::Linger));
            }
        };
        *scanned = 0;
        session.requests = session.requests.saturating_add(1);
        let more = input.len() > length;
        let (bytes, mut table) = (&mut input[..length], head::table());
        let (answer, after) = match Head::parse(bytes, &mut table, limits) {
            Ok(mut head) => {
                let after = settle(&mut head, limits, session, draining, more);
                (service.answer(&head, &peer, out), after)
            }
            Err(refusal) => {
                service.refuse(refusal, first_line(&input[..length]), &peer, out);
                return Turn::Then(After::End(Finish::Linger));
            }
        };
        io.consume(blank + length);
        match (answer, after) {
            (Answer::Done, After::Continue) => {}
            (Answer::Done, after) => return Turn::Then(after),
            (Answer::Close, _) => return Turn::Then(After::End(Finish::Linger)),
            (Answer::Later(coming), after) => return Turn::Wait(Box::new(Waiting { coming, after })),
        }
    }
}

/// Decides whether the connection goes on after this request, tells the head so, and says what has to
/// happen next. `more` says that bytes stand behind the head.
fn settle(head: &mut Head<'_>, limits: &Limits, session: &Session, draining: bool, more: bool) -> After {
    let discard = match head.body {
        Body::Empty => Some(0),
        Body::Length(length) if length <= limits.max_discard => Some(length),
        Body::Length(_) | Body::Chunked => None,
    };
    let last = limits.requests_per_connection.is_some_and(|bound| session.requests >= bound);
    head.persistent &= discard.is_some() && !last && !draining;
    match (head.persistent, discard) {
        (true, Some(0)) => After::Continue,
        (true, Some(length)) => After::Discard(length),
        // A peer that said it is done, and sent nothing behind its request, loses nothing by a close.
        (false, Some(0)) if !more && !last && !draining => After::End(Finish::Close),
        _ => After::End(Finish::Linger),
    }
}

fn first_line(input: &[u8]) -> &[u8] {
    const SHOWN: usize = 1024;
    let input = &input[..input.len().min(SHOWN)];
    &input[..memchr::memchr2(b'\r', b'\n', input).unwrap_or(input.len())]
}

/// Refuses what is in hand, and ends the connection so that the refusal arrives.
async fn refuse<I, S>(io: &mut I, service: &S, limits: &Limits, refusal: Refusal) -> Next
where
    I: Io,
    S: Service + ?Sized,
{
    let peer = *io.peer();
    let (input, out) = io.split();
    service.refuse(refusal, first_line(input), &peer, out);
    match flush(io, limits).await {
        Ok(()) => finish(io, limits, Finish::Linger).await,
        Err(_) => Next::Close,
    }
}

/// Does what has to follow an answer; says how the connection ends where it does.
async fn follow<I: Io>(io: &mut I, limits: &Limits, after: After) -> Option<Next> {
    match after {
        After::Continue => None,
        After::Discard(length) => discard(io, limits, length).await.is_err().then_some(Next::Close),
        After::End(how) => Some(finish(io, limits, how).await),
    }
}

async fn finish<I: Io>(io: &mut I, limits: &Limits, how: Finish) -> Next {
    let by = clock::now() + limits.send_timeout;
    poll_fn(|cx| io.poll_finish(cx, how, by)).await;
    match how {
        Finish::Close => Next::Close,
        Finish::Linger => Next::Linger,
    }
}

/// Waits for an answer, while the peer is there and the time lasts.
async fn later<I, S>(
    io: &mut I,
    service: &S,
    limits: &Limits,
    mut waiting: Box<Waiting>,
) -> Result<After, IoError>
where
    I: Io,
    S: Service + ?Sized,
{
    let by = clock::now() + limits.later_timeout;
    loop {
        let reply = poll_fn(|cx| match waiting.coming.as_mut().poll(cx) {
            Poll::Ready(reply) => Poll::Ready(Ok(reply)),
            Poll::Pending => io.poll_lost(cx, by).map(Err),
        })
        .await;
        let peer = *io.peer();
        let out = io.split().1;
        let answer = match reply {
            Ok(reply) => reply(out),
            Err(IoError::TimedOut) => {
                service.refuse(Refusal::Overdue, b"", &peer, out);
                Answer::Close
            }
            Err(lost) => return Err(lost),
        };
        flush(io, limits).await?;
        match answer {
            Answer::Done => return Ok(waiting.after),
            Answer::Close => return Ok(After::End(Finish::Linger)),
            Answer::Later(coming) => waiting.coming = coming,
        }
    }
}

/// Reads a body that nobody wants, so that the next head is found behind it.
async fn discard<I: Io>(io: &mut I, limits: &Limits, mut left: u64) -> Result<(), IoError> {
    let mut pace = Pace::begin(limits.body_timeout, limits.min_rate, 0);
    let whole = left;
    loop {
        let in_hand = io.split().0.len();
        let step = in_hand.min(usize::try_from(left).unwrap_or(usize::MAX));
        io.consume(step);
        left -= step as u64;
        if left == 0 {
            return Ok(());
        }
        let by = pace.by;
        match poll_fn(|cx| io.poll_receive(cx, limits.max_head, Patience::Wait, by)).await {
            Ok(Received::Bytes | Received::Full) => {}
            Ok(Received::End | Received::Idle) => return Err(IoError::Gone),
            Err(IoError::TimedOut) => pace.renew(whole - left)?,
            Err(error) => return Err(error),
        }
    }
}

/// Sends what is staged, as long as the peer takes it at the least rate.
async fn flush<I: Io>(io: &mut I, limits: &Limits) -> Result<(), IoError> {
    let mut pace = Pace::begin(limits.send_timeout, limits.min_rate, io.sent());
    poll_fn(|cx| {
        loop {
            match io.poll_flush(cx, pace.by) {
                Poll::Ready(Err(IoError::TimedOut)) => {
                    if let Err(late) = pace.renew(io.sent()) {
                        return Poll::Ready(Err(late));
                    }
                }
                other => return other,
            }
        }
    })
    .await
}

/// A start, a grace, and a least rate: in each window of time at least so many bytes have to move. A
/// large file on a slow line lives; a line that stalls is dropped within two windows.
struct Pace {
    by: Instant,
    window: Duration,
    least: u64,
    moved: u64,
}

impl Pace {
    fn begin(window: Duration, rate: u64, moved: u64) -> Pace {
        let least = rate.saturating_mul(window.as_secs()).max(1);
        Pace { by: clock::now() + window, window, least, moved }
    }

    /// Begins the next window where enough has moved in this one; `moved` is what has moved in all.
    fn renew(&mut self, moved: u64) -> Result<(), IoError> {
        if moved - self.moved < self.least {
            return Err(IoError::TimedOut);
        }
        self.moved = moved;
        self.by = clock::now() + self.window;
        Ok(())
    }
}
