//! The loop of a connection: heads in, responses out, and the waits between them. HTTP/2 takes the connection over if
//! the client chose it.
//!
//! [`serve_connection`] runs on every I/O model. Steps that do not wait (finding, parsing and answering
//! heads) are one synchronous function. The future only holds state that outlives a wait.

use std::future::Future;

use tenfold_wire::frame::PREFACE;

use super::body::{Broken, discard};
use super::deferred::{PendingResponse, resolve};
use crate::clock::{self, Instant};
use crate::h1::encode::Http1Encoder;
use crate::h1::head::{self, FieldTable, Head};
use crate::io::{Finish, Io, IoError, Patience, Received};
use crate::limits::Limits;
use crate::message::connection::Connection;
use crate::message::refusal::Refusal;
use crate::message::request::{Body, Request};
use crate::out::Out;
use crate::response::encoder::Encoder;
use crate::response::writer::ResponseWriter;
use crate::serve::http2::parked::ParkedHttp2;
use crate::serve::http2::{chosen, serve_http2};
use crate::serve::session::{After, BLANK, Next, Persistence, Session, finish, flush, receive, summarize};
use crate::service::{Answer, Service};

/// Serves requests on `io` until no received bytes are left. Returns the driver's next step with the connection.
/// `http2` has the states of parked HTTP/2 connections; `None` if the server has only HTTP/1.
#[expect(clippy::manual_async_fn, reason = "an async fn holds its arguments twice")]
pub fn serve_connection<I: Io>(
    io: &mut I,
    service: &dyn Service,
    limits: &Limits,
    session: &mut Session,
    http2: Option<&ParkedHttp2>,
) -> impl Future<Output = Next> {
    async move {
        if let Some(parked) = http2.filter(|_| chosen(io, session)) {
            return Box::pin(serve_http2(io, service, limits, session, parked)).await;
        }
        let mut progress = HeadProgress { answered: false, ..HeadProgress::AFTER_AN_ANSWER };
        loop {
            // Most activations begin without received bytes.
            let outcome = match io.split().0.is_empty() {
                true => ParseOutcome::Incomplete,
                false => answer_heads(io, service, limits, session, &mut progress, http2.is_some()),
            };
            if matches!(outcome, ParseOutcome::Then(After::End(_))) {
                io.end_output();
            }
            if !io.split().1.is_empty() && flush(io, limits).await.is_err() {
                return Next::Close;
            }
            let after = match outcome {
                ParseOutcome::Again => After::Continue,
                ParseOutcome::Then(after) => after,
                ParseOutcome::Preface => {
                    let Some(parked) = http2 else { return Next::Close };
                    return Box::pin(serve_http2(io, service, limits, session, parked)).await;
                }
                ParseOutcome::Wait(pending) => {
                    match Box::pin(resolve(io, service, limits, session, *pending)).await {
                        Ok(after) => after,
                        Err(_) => return Next::Close,
                    }
                }
                ParseOutcome::Incomplete => {
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
                    Err(Broken::Lost | Broken::Refused(Refusal::TimedOut)) => {
                        return Next::Close;
                    }
                    // The response was sent, but the beginning of the next request is unknown or too far
                    // away.
                    Err(Broken::Refused(_)) => return finish(io, limits, Finish::Linger).await,
                },
                After::End(how) => return finish(io, limits, how).await,
            }
        }
    }
}

/// Compares the first bytes of a connection with the request line of the preface of HTTP/2 (RFC 9113 §3.4). `None`: they
/// differ.
fn find_preface(input: &[u8]) -> Option<ParseOutcome> {
    let line = &PREFACE[..16];
    let length = input.len().min(line.len());
    match input[..length] == line[..length] {
        true if length == line.len() => Some(ParseOutcome::Preface),
        true => Some(ParseOutcome::Incomplete),
        false => None,
    }
}

/// The progress of the present head.
struct HeadProgress {
    /// Scanned bytes, which contain no end of a head.
    scanned: usize,
    /// Whether the request line is complete and well-formed.
    line_checked: bool,
    /// The deadline of the head; `NEVER` before its first byte.
    head_by: Instant,
    /// Whether a request was answered in this activation.
    answered: bool,
}

/// A deadline in the past.
const OVERDUE: Instant = Instant(0);

impl HeadProgress {
    /// The progress after a head was answered.
    const AFTER_AN_ANSWER: HeadProgress =
        HeadProgress { scanned: 0, line_checked: false, head_by: Instant::NEVER, answered: true };

    /// Returns the deadline of the wait for more bytes, or the driver's next step if there is nothing to wait
    /// for.
    fn wait<I: Io>(&mut self, io: &mut I, limits: &Limits, session: &Session) -> Result<Instant, Next> {
        let now = clock::now();
        if !io.split().0.is_empty() {
            self.head_by = self.head_by.min(now + limits.head_timeout);
            return Ok(self.head_by);
        }
        let idle = now + limits.idle_timeout;
        match (self.answered, io.closes_idle()) {
            (true, true) => Err(Next::Close),
            (true, false) => Err(Next::Park(idle)),
            (false, _) if session.requests() == 0 => Ok(now + limits.head_timeout),
            (false, _) => Ok(idle),
        }
    }
}

/// Whether a part of a head has been received. An empty line is not part of a head.
fn begun<I: Io>(io: &mut I) -> bool {
    let input = io.split().0;
    !input.is_empty() && input != BLANK
}

/// The result of parsing and answering received bytes.
enum ParseOutcome {
    /// Flush, then continue: the output is full, or many heads were answered.
    Again,
    /// No complete head is left.
    Incomplete,
    /// This step precedes the next head.
    Then(After),
    /// A response is not yet written.
    Wait(Box<PendingResponse>),
    /// The client begins with the preface of HTTP/2.
    Preface,
}

impl ParseOutcome {
    /// Returns the step after an answer; None if the next head follows.
    #[inline]
    fn after(
        answer: Answer,
        encoder: Http1Encoder,
        after: After,
        request: &Request<'_>,
    ) -> Option<ParseOutcome> {
        match (answer, after) {
            (Answer::Done, After::Continue) => None,
            (Answer::Done, after) => Some(ParseOutcome::Then(after)),
            (Answer::Close | Answer::NeedBody { .. }, _) => {
                Some(ParseOutcome::Then(After::End(Finish::Linger)))
            }
            (Answer::Later(deferred), after) => Some(ParseOutcome::Wait(Box::new(PendingResponse::Later(
                deferred,
                encoder,
                after,
                request.method,
            )))),
        }
    }
}

/// The most heads answered before a flush, which lets other connections proceed: a short response can be much
/// work.
const HEADS_AT_ONCE: usize = 32;

/// Answers heads until none is left, many were answered, the output is full, or a response must wait.
fn answer_heads<I: Io>(
    io: &mut I,
    service: &dyn Service,
    limits: &Limits,
    session: &mut Session,
    progress: &mut HeadProgress,
    http2: bool,
) -> ParseOutcome {
    let mut handler = HeadHandler {
        http2,
        service,
        limits,
        session,
        connection: io.connection().clone(),
        draining: io.draining(),
    };
    let mut table = FieldTable::new();
    for _ in 0..HEADS_AT_ONCE {
        let (input, out) = io.split();
        if out.full() {
            return ParseOutcome::Again;
        }
        if input.is_empty() {
            return ParseOutcome::Incomplete;
        }
        let parsed = match progress.scanned {
            0 => Head::parse_fast(input, &mut table, limits),
            // The head was incomplete before. This path scans bytes once even if they arrive one by one.
            _ => None,
        };
        let (length, outcome) = match parsed {
            Some(head) => {
                *progress = HeadProgress::AFTER_AN_ANSWER;
                let length = head.length();
                (length, handler.answer(&head, input.len() > length, out))
            }
            None => match handler.look_closely(input, progress, out) {
                Ok(answered) => answered,
                Err(outcome) => return outcome,
            },
        };
        io.consume(length);
        if let Some(outcome) = outcome {
            return outcome;
        }
    }
    ParseOutcome::Again
}

/// The context for answering heads.
struct HeadHandler<'a> {
    /// Whether a connection may begin with the preface of HTTP/2.
    http2: bool,
    service: &'a dyn Service,
    limits: &'a Limits,
    session: &'a mut Session,
    connection: Connection,
    draining: bool,
}

impl HeadHandler<'_> {
    /// Answers a head. `more`: whether further bytes were received. Returns the next step; None if the next
    /// head follows.
    #[inline(always)]
    fn answer(&mut self, head: &Head<'_>, more: bool, out: &mut Out) -> Option<ParseOutcome> {
        if head.request.target.is_of_other_scheme(self.connection.scheme) {
            self.session.count();
            return Some(self.refuse(Refusal::Misdirected, head.request.bytes, out));
        }
        let HeadHandler { service, limits, session, connection, draining, .. } = self;
        session.count();
        let request = &head.request;
        let persistence = Persistence { limits, session, draining: *draining, more };
        let (persistent, after) = persistence.decide(request, head.persistent, request.body);
        let encoder = Http1Encoder { version: request.version, persistent, write: limits.write };
        let mut response = ResponseWriter::new(out, Encoder::Http1(encoder));
        let answer = service.answer(request, connection, &mut response);
        response.end();
        match answer {
            Answer::NeedBody { max } => {
                need_body(*service, head, max, limits, (more, encoder, after), connection, out)
            }
            answer => ParseOutcome::after(answer, encoder, after, request),
        }
    }

    /// Answers the front of `input` if the single pass did not accept it. Returns the length of the head and
    /// the next step.
    #[inline(never)]
    fn look_closely(
        &mut self,
        input: &mut [u8],
        progress: &mut HeadProgress,
        out: &mut Out,
    ) -> Result<(usize, Option<ParseOutcome>), ParseOutcome> {
        let limits = self.limits;
        if self.http2
            && self.session.requests() == 0
            && let Some(outcome) = find_preface(input)
        {
            return Err(outcome);
        }
        // A single empty line before a request is skipped (RFC 9112 §2.2); a second one is malformed. It is
        // not consumed before the head is complete, so empty lines do not extend the deadline.
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
            Ok(None) if progress.head_by == OVERDUE => Err(Refusal::TimedOut),
            found => found,
        };
        let length = match found {
            Ok(Some(length)) => length,
            Ok(None) => {
                progress.scanned = blank + scanned;
                return Err(ParseOutcome::Incomplete);
            }
            Err(refusal) => return Err(self.refuse(refusal, input, out)),
        };
        *progress = HeadProgress::AFTER_AN_ANSWER;
        let more = input.len() > length;
        let mut table = FieldTable::new();
        match Head::parse(&mut input[..length], &mut table, limits) {
            Ok(head) => Ok((blank + length, self.answer(&head, more, out))),
            Err(refusal) => {
                self.session.count();
                Err(self.refuse(refusal, &input[..length], out))
            }
        }
    }

    /// Refuses a request, after which the connection ends.
    fn refuse(&self, refusal: Refusal, input: &[u8], out: &mut Out) -> ParseOutcome {
        let mut response = ResponseWriter::new(out, Encoder::Http1(Http1Encoder::last(self.limits.write)));
        self.service.refuse(refusal, summarize(input), &self.connection, &mut response);
        ParseOutcome::Then(After::End(Finish::Linger))
    }
}

/// Prepares the wait for the content that the service needs. `after` follows if the request has none.
#[cold]
fn need_body(
    service: &dyn Service,
    head: &Head<'_>,
    max: u64,
    limits: &Limits,
    (more, encoder, after): (bool, Http1Encoder, After),
    connection: &Connection,
    out: &mut Out,
) -> Option<ParseOutcome> {
    if head.request.body == Body::Empty {
        let mut response = ResponseWriter::new(out, Encoder::Http1(encoder));
        let answer = service.answer_body(&head.request, b"", connection, &mut response);
        return ParseOutcome::after(answer, encoder, after, &head.request);
    }
    match PendingResponse::body(head, max.min(limits.max_body), more, out) {
        Ok(pending) => Some(ParseOutcome::Wait(Box::new(pending))),
        Err(refusal) => {
            let mut response = ResponseWriter::new(out, Encoder::Http1(Http1Encoder::last(limits.write)));
            service.refuse(refusal, head.request.summary(), connection, &mut response);
            Some(ParseOutcome::Then(After::End(Finish::Linger)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::request::Request;
    use crate::script::ScriptIo;

    struct ClosingService;

    impl Service for ClosingService {
        fn answer(&self, _: &Request<'_>, _: &Connection, _: &mut ResponseWriter<'_>) -> Answer {
            Answer::Close
        }
    }

    fn assert_send<T: Send>(future: T) -> T {
        future
    }

    #[test]
    fn the_future_of_a_connection_is_small_and_goes_to_any_thread() {
        let (mut io, limits, mut session) = (ScriptIo::new(), Limits::default(), Session::default());
        let size = size_of_val(&assert_send(serve_connection(
            &mut io,
            &ClosingService,
            &limits,
            &mut session,
            None,
        )));
        assert!(size <= 192, "{size} bytes");
    }
}
