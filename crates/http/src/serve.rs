//! The life of a connection.
//!
//! [`serve_connection`] is written once and runs on every I/O model. What does not wait (finding a head,
//! parsing it, answering it) is one synchronous step; the future only holds what outlives a wait.

use std::future::Future;

use crate::body::{Broken, discard};
use crate::clock::{self, Instant};
use crate::framing::Body;
use crate::head::{self, Head, Method, Scan};
use crate::io::{Finish, Io, IoError, Patience, Peer, Received};
use crate::limits::Limits;
use crate::out::Out;
use crate::pending::{Pending, resolve};
use crate::service::{Answer, Next, Refusal, Service, Session};
use crate::waits::{BLANK, finish, flush, receive};

/// Serves the requests that arrive on `io` until there is nothing in hand, and says what becomes of the
/// connection then.
#[expect(clippy::manual_async_fn, reason = "an async fn holds its arguments twice")]
pub fn serve_connection<I, S>(
    io: &mut I,
    service: &S,
    limits: &Limits,
    session: &mut Session,
) -> impl Future<Output = Next>
where
    I: Io,
    S: Service + ?Sized,
{
    async move {
        let mut progress = Progress { answered: false, ..Progress::BEHIND_AN_ANSWER };
        loop {
            // Most activations begin with nothing in hand.
            let turn = match io.split().0.is_empty() {
                true => Turn::Incomplete,
                false => turn(io, service, limits, session, &mut progress),
            };
            if !io.split().1.is_empty() && flush(io, limits).await.is_err() {
                return Next::Close;
            }
            let after = match turn {
                Turn::Again => After::Continue,
                Turn::Then(after) => after,
                Turn::Wait(pending) => {
                    match Box::pin(resolve(io, service, limits, session, *pending)).await {
                        Ok(after) => after,
                        Err(_) => return Next::Close,
                    }
                }
                Turn::Incomplete => {
                    let by = match progress.wait(io, limits, session) {
                        Ok(by) => by,
                        Err(next) => return next,
                    };
                    match receive(io, limits, Patience::Park, by).await {
                        Ok(Received::Bytes) => After::Continue,
                        Ok(Received::Idle) => return Next::Park(by),
                        Err(IoError::TimedOut) if begun(io) => {
                            progress.head_by = OVERDUE;
                            After::Continue
                        }
                        Ok(Received::End | Received::Full) | Err(_) => After::End(Finish::Close),
                    }
                }
            };
            match after {
                After::Continue => {}
                After::Discard(body) => match Box::pin(discard(io, limits, body)).await {
                    Ok(()) => {}
                    Err(Broken::Lost | Broken::Refused(Refusal::TimedOut)) => return Next::Close,
                    // The answer has left; where the next request begins can not be told, or is too far.
                    Err(Broken::Refused(_)) => return finish(io, limits, Finish::Linger).await,
                },
                After::End(how) => return finish(io, limits, how).await,
            }
        }
    }
}

/// How far the head in hand is.
struct Progress {
    /// Bytes in hand that hold no end of a head.
    scanned: usize,
    /// Whether its request line is whole and well-formed.
    line_checked: bool,
    /// When the head has to be whole; `NEVER` while none has begun.
    head_by: Instant,
    /// Whether a request was answered in this activation.
    answered: bool,
}

/// The deadline of a head whose time is over.
const OVERDUE: Instant = Instant(0);

impl Progress {
    /// Of the next head, when one was answered.
    const BEHIND_AN_ANSWER: Progress =
        Progress { scanned: 0, line_checked: false, head_by: Instant::NEVER, answered: true };

    /// Until when to wait for more bytes; or what becomes of the connection instead.
    fn wait<I: Io>(&mut self, io: &mut I, limits: &Limits, session: &Session) -> Result<Instant, Next> {
        let now = clock::now();
        if !io.split().0.is_empty() {
            self.head_by = self.head_by.min(now + limits.head_timeout);
            return Ok(self.head_by);
        }
        let idle = now + limits.idle_timeout;
        match (self.answered, io.draining()) {
            (true, true) => Err(Next::Close),
            (true, false) => Err(Next::Park(idle)),
            (false, _) if session.requests == 0 => Ok(now + limits.head_timeout),
            (false, _) => Ok(idle),
        }
    }
}

/// Whether a part of a head is in hand. An empty line is none.
fn begun<I: Io>(io: &mut I) -> bool {
    let input = io.split().0;
    !input.is_empty() && input != BLANK
}

/// What the synchronous part came to.
enum Turn {
    /// The output is full: flush, then go on.
    Again,
    /// No whole head is in hand.
    Incomplete,
    /// Something has to happen before the next head.
    Then(After),
    /// An answer has to be waited for.
    Wait(Box<Pending>),
}

impl Turn {
    /// What an answer comes to; none where the next head is looked for at once.
    #[inline]
    fn behind(answer: Answer, after: After) -> Option<Turn> {
        match (answer, after) {
            (Answer::Done, After::Continue) => None,
            (Answer::Done, after) => Some(Turn::Then(after)),
            (Answer::Close | Answer::NeedBody { .. }, _) => Some(Turn::Then(After::End(Finish::Linger))),
            (Answer::Later(coming), after) => Some(Turn::Wait(Box::new(Pending::Later(coming, after)))),
        }
    }
}

/// What follows an answer.
#[derive(Clone, Copy)]
pub(crate) enum After {
    /// The next head.
    Continue,
    /// This body, which nobody wants.
    Discard(Body),
    /// Nothing.
    End(Finish),
}

/// Answers the heads that are in hand, until there is none, the output is full, or something has to be
/// waited for.
fn turn<I, S>(
    io: &mut I,
    service: &S,
    limits: &Limits,
    session: &mut Session,
    progress: &mut Progress,
) -> Turn
where
    I: Io,
    S: Service + ?Sized,
{
    let mut serving = Serving { service, limits, session, peer: *io.peer(), draining: io.draining() };
    loop {
        let (input, out) = io.split();
        if out.full() {
            return Turn::Again;
        }
        if input.is_empty() {
            return Turn::Incomplete;
        }
        let mut table = head::table();
        let at_once = match progress.scanned {
            0 => Head::at_once(input, &mut table, limits),
            // It was not whole before: bytes that come one by one are looked at once.
            _ => None,
        };
        let (length, behind) = match at_once {
            Some(mut head) => {
                *progress = Progress::BEHIND_AN_ANSWER;
                let length = head.bytes.len();
                (length, serving.answer(&mut head, input.len() > length, out))
            }
            None => match serving.look_closely(input, progress, out) {
                Ok(answered) => answered,
                Err(turn) => return turn,
            },
        };
        io.consume(length);
        if let Some(turn) = behind {
            return turn;
        }
    }
}

/// What the heads in hand are answered with.
struct Serving<'a, S: ?Sized> {
    service: &'a S,
    limits: &'a Limits,
    session: &'a mut Session,
    peer: Peer,
    draining: bool,
}

impl<S: Service + ?Sized> Serving<'_, S> {
    /// Answers a head, behind which there are `more` bytes in hand; says what has to happen next, where it is
    /// not the next head.
    #[inline(always)]
    fn answer(&mut self, head: &mut Head<'_>, more: bool, out: &mut Out) -> Option<Turn> {
        let Serving { service, limits, session, peer, draining } = self;
        session.requests = session.requests.saturating_add(1);
        let unread = head.body;
        let after = settle(head, unread, limits, session, *draining, more);
        match out.answer(limits.write, |out| service.answer(head, peer, out)) {
            Answer::NeedBody { max } => need_body(*service, head, max, limits, (more, after), peer, out),
            answer => Turn::behind(answer, after),
        }
    }

    /// Answers what `input` begins with, where it is not a whole and well-formed head at the first look; says
    /// how many bytes that was.
    #[inline(never)]
    fn look_closely(
        &mut self,
        input: &mut [u8],
        progress: &mut Progress,
        out: &mut Out,
    ) -> Result<(usize, Option<Turn>), Turn> {
        let limits = self.limits;
        // One empty line before a request is passed over (RFC 9112 §2.2); a second one is malformed. It
        // stays in hand until the head is whole, so that empty lines win a peer no time.
        let blank = if input.starts_with(BLANK) { BLANK.len() } else { 0 };
        let input = &mut input[blank..];
        let mut scanned = progress.scanned.saturating_sub(blank);
        if !progress.line_checked {
            let within = input.len().min(limits.max_head);
            match head::check_line(&mut input[..within], scanned.min(within)) {
                Ok(whole) => progress.line_checked = whole,
                Err(refusal) => return Err(self.refuse(refusal, input, out)),
            }
        }
        let found = match head::scan(input, &mut scanned, limits) {
            Ok(Scan::Partial) if progress.head_by == OVERDUE => Err(Refusal::TimedOut),
            found => found,
        };
        let length = match found {
            Ok(Scan::Whole(length)) => length,
            Ok(Scan::Partial) => {
                progress.scanned = blank + scanned;
                return Err(Turn::Incomplete);
            }
            Err(refusal) => return Err(self.refuse(refusal, input, out)),
        };
        *progress = Progress::BEHIND_AN_ANSWER;
        let more = input.len() > length;
        let mut table = head::table();
        match Head::parse(&mut input[..length], &mut table, limits) {
            Ok(mut head) => Ok((blank + length, self.answer(&mut head, more, out))),
            Err(refusal) => {
                self.session.requests = self.session.requests.saturating_add(1);
                Err(self.refuse(refusal, &input[..length], out))
            }
        }
    }

    /// Answers what is not served, after which nothing is.
    fn refuse(&self, refusal: Refusal, input: &[u8], out: &mut Out) -> Turn {
        let line = first_line(input);
        out.answer(self.limits.write, |out| self.service.refuse(refusal, line, &self.peer, out));
        Turn::Then(After::End(Finish::Linger))
    }
}

/// What becomes of a request whose body the service asked for; `after` holds where it has none.
#[cold]
fn need_body<S: Service + ?Sized>(
    service: &S,
    head: &Head<'_>,
    max: u64,
    limits: &Limits,
    (more, after): (bool, After),
    peer: &Peer,
    out: &mut Out,
) -> Option<Turn> {
    if head.body == Body::Empty {
        let answer = out.answer(limits.write, |out| service.answer_body(head, b"", peer, out));
        return Turn::behind(answer, after);
    }
    match Pending::body(head, max.min(limits.max_body), more, out) {
        Ok(pending) => Some(Turn::Wait(Box::new(pending))),
        Err(refusal) => {
            out.answer(limits.write, |out| service.refuse(refusal, first_line(head.line), peer, out));
            Some(Turn::Then(After::End(Finish::Linger)))
        }
    }
}

/// Decides whether the connection goes on after this request, tells the head so, and says what has to
/// happen next. `unread` is the body that stands behind the head, and `more` says that bytes do.
pub(crate) fn settle(
    head: &mut Head<'_>,
    unread: Body,
    limits: &Limits,
    session: &Session,
    draining: bool,
    more: bool,
) -> After {
    let readable = match unread {
        Body::Empty => true,
        // A peer that waits for `100 Continue` sends no body to an answer that it gets instead; one that
        // does not wait sends it. Who can not tell closes (RFC 9110 §10.1.1).
        _ if head.expects => false,
        Body::Length(length) => length <= limits.max_discard,
        // Its length shows when it is read.
        Body::Chunked => true,
    };
    let last = limits.requests_per_connection.is_some_and(|bound| session.requests >= bound);
    // What follows a CONNECT that was refused may be meant for the other end of a tunnel.
    head.persistent &= readable && !last && !draining && head.method != Method::Connect;
    match (head.persistent, unread) {
        (true, Body::Empty) => After::Continue,
        (true, body) => After::Discard(body),
        // A peer that said it is done, and sent nothing behind its request, loses nothing by a close.
        (false, Body::Empty) if !more && !last && !draining => After::End(Finish::Close),
        _ => After::End(Finish::Linger),
    }
}

/// What arrived of a request line, for a log.
pub(crate) fn first_line(input: &[u8]) -> &[u8] {
    const SHOWN: usize = 1024;
    let input = &input[..input.len().min(SHOWN)];
    &input[..memchr::memchr2(b'\r', b'\n', input).unwrap_or(input.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::ScriptIo;

    struct Unit;

    impl Service for Unit {
        fn answer(&self, _: &Head<'_>, _: &Peer, _: &mut Out) -> Answer {
            Answer::Close
        }

        fn refuse(&self, _: Refusal, _: &[u8], _: &Peer, _: &mut Out) {}
    }

    fn assert_send<T: Send>(future: T) -> T {
        future
    }

    #[test]
    fn the_future_of_a_connection_is_small_and_goes_to_any_thread() {
        let (mut io, limits, mut session) = (ScriptIo::new(), Limits::default(), Session::default());
        let size = size_of_val(&assert_send(serve_connection(&mut io, &Unit, &limits, &mut session)));
        assert!(size <= 192, "{size} bytes");
    }
}
