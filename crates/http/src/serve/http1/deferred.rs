//! Responses that need the request's content, and deferred responses. Their state is boxed, so that other
//! connections stay small.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use super::body::{Broken, collect};
use crate::clock::{self, Instant};
use crate::h1::encode::{CONTINUE, Http1Encoder};
use crate::h1::head::Head;
use crate::io::{Finish, Io, IoError};
use crate::limits::Limits;
use crate::message::owned::OwnedRequest;
use crate::message::refusal::Refusal;
use crate::message::request::{Body, Method, RequestSummary};
use crate::out::Out;
use crate::response::encoder::Encoder;
use crate::response::writer::ResponseWriter;
use crate::serve::session::Session;
use crate::serve::session::{After, Persistence, flush};
use crate::service::{Answer, DeferredResponse, Service};

/// A response that is not yet written.
pub(crate) enum PendingResponse {
    /// It needs the content of its request.
    Body(AwaitedBody),
    /// It waits for another event than the client's bytes; with the encoding of the response, the following
    /// step, and the method of the request.
    Later(DeferredResponse, Http1Encoder, After, Method),
}

/// A request whose content is being received.
pub(crate) struct AwaitedBody {
    /// A copy, because the content overwrites the received head.
    request: OwnedRequest,
    /// Whether the request permits a persistent connection.
    persistent: bool,
    body: Body,
    most: u64,
}

impl PendingResponse {
    /// Prepares the wait for the content of this request. Stages `100 Continue` for a client that waits for
    /// it; a client whose content has `begun` to arrive does not wait (RFC 9110 §10.1.1). Refuses a length
    /// above `most` before that.
    pub(crate) fn body(
        head: &Head<'_>,
        most: u64,
        begun: bool,
        out: &mut Out,
    ) -> Result<PendingResponse, Refusal> {
        let Head { request, persistent, .. } = head;
        if matches!(request.body, Body::Length(length) if length > most) {
            return Err(Refusal::BodyTooLarge);
        }
        if request.expects_continue && !begun {
            out.stage(CONTINUE);
        }
        let (persistent, body) = (*persistent, request.body);
        Ok(PendingResponse::Body(AwaitedBody { request: request.to_owned(), persistent, body, most }))
    }
}

/// Waits for the requirements of a response, and sends it. Returns the next step.
pub(crate) async fn resolve<I: Io>(
    io: &mut I,
    service: &dyn Service,
    limits: &Limits,
    session: &Session,
    pending: PendingResponse,
) -> Result<After, IoError> {
    let method = match &pending {
        PendingResponse::Later(.., method) => *method,
        PendingResponse::Body(awaited) => awaited.request.read(|request| request.method),
    };
    let (mut answer, encoder, after) = match pending {
        PendingResponse::Later(deferred, encoder, after, _) => (Answer::Later(deferred), encoder, after),
        PendingResponse::Body(awaited) => match collect(io, limits, awaited.body, awaited.most).await {
            Ok(content) => answer_body(io, service, limits, session, &awaited, &content),
            Err(Broken::Refused(refusal)) => {
                let (connection, encoder) = (io.connection().clone(), Http1Encoder::last(limits.write));
                let mut response = ResponseWriter::new(io.split().1, Encoder::Http1(encoder));
                awaited.request.read(|request| {
                    service.refuse(refusal, request.summary(), &connection, &mut response);
                });
                (Answer::Close, encoder, After::Continue)
            }
            Err(Broken::Lost) => return Err(IoError::Gone),
        },
    };
    let by = clock::now() + limits.later_timeout;
    loop {
        if !io.split().1.is_empty() {
            flush(io, limits).await?;
        }
        answer = match answer {
            Answer::Done => return Ok(after),
            Answer::Close | Answer::NeedBody { .. } => return Ok(After::End(Finish::Linger)),
            Answer::Later(deferred) => later(io, service, limits, deferred, (encoder, method), by).await?,
        };
    }
}

/// Answers a request with its whole content, and decides whether the connection persists.
fn answer_body<I: Io>(
    io: &mut I,
    service: &dyn Service,
    limits: &Limits,
    session: &Session,
    awaited: &AwaitedBody,
    content: &[u8],
) -> (Answer, Http1Encoder, After) {
    let (connection, draining) = (io.connection().clone(), io.draining());
    let (input, out) = io.split();
    let persistence = Persistence { limits, session, draining, more: !input.is_empty() };
    awaited.request.read(|request| {
        let (persistent, after) = persistence.decide(request, awaited.persistent, Body::Empty);
        let encoder = Http1Encoder { version: request.version, persistent, write: limits.write };
        let mut response = ResponseWriter::new(out, Encoder::Http1(encoder));
        (service.answer_body(request, content, &connection, &mut response), encoder, after)
    })
}

/// Waits for a deferred response, until `by` or the loss of the client.
async fn later<I: Io>(
    io: &mut I,
    service: &dyn Service,
    limits: &Limits,
    mut deferred: DeferredResponse,
    (encoder, method): (Http1Encoder, Method),
    by: Instant,
) -> Result<Answer, IoError> {
    let response = poll_fn(|cx| match Pin::new(&mut deferred).poll(cx) {
        Poll::Ready(response) => Poll::Ready(Ok(response)),
        Poll::Pending => io.poll_lost(cx, by).map(Err),
    })
    .await;
    let connection = io.connection().clone();
    let out = io.split().1;
    match response {
        Ok(response) => {
            let answer = if response.ends_connection() { Answer::Close } else { Answer::Done };
            ResponseWriter::new(out, Encoder::Http1(encoder)).append(response);
            Ok(answer)
        }
        Err(IoError::TimedOut) => {
            let mut response = ResponseWriter::new(out, Encoder::Http1(Http1Encoder::last(limits.write)));
            let summary = RequestSummary::Unparsed(method.as_str().as_bytes());
            service.refuse(Refusal::Overdue, summary, &connection, &mut response);
            Ok(Answer::Close)
        }
        Err(lost) => Err(lost),
    }
}
