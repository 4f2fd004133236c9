//! Answers that can not be given at once: those that need the request's body, and those that come later.
//! What they hold is boxed, so that a connection without them stays small.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use crate::body::{Broken, collect};
use crate::clock::{self, Instant};
use crate::framing::Body;
use crate::head::{self, Head};
use crate::io::{Finish, Io, IoError};
use crate::limits::Limits;
use crate::out::Out;
use crate::serve::{After, first_line, settle};
use crate::service::{Answer, Coming, Refusal, Service, Session};
use crate::waits::flush;

/// What an answer waits for.
pub(crate) enum Pending {
    /// The body of its request.
    Body(Wanted),
    /// Something else than the peer; and what follows it.
    Later(Coming, After),
}

/// A body that is wanted.
pub(crate) struct Wanted {
    /// The head of its request, byte for byte. The room that it lies in is needed for the body.
    head: Vec<u8>,
    body: Body,
    most: u64,
}

impl Pending {
    /// Waits for the body of this request, of at most `most` bytes. Stages `100 Continue` for a peer that
    /// waits for it: one whose body has `begun` to arrive does not (RFC 9110 §10.1.1).
    ///
    /// # Errors
    /// A length that is too much, before the peer is told to send it.
    pub(crate) fn body(head: &Head<'_>, most: u64, begun: bool, out: &mut Out) -> Result<Pending, Refusal> {
        if matches!(head.body, Body::Length(length) if length > most) {
            return Err(Refusal::BodyTooLarge);
        }
        if head.expects && !begun {
            out.stage(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        Ok(Pending::Body(Wanted { head: head.bytes.to_vec(), body: head.body, most }))
    }
}

/// Waits for what an answer needs, and sends the answer. Says what follows it.
pub(crate) async fn resolve<I, S>(
    io: &mut I,
    service: &S,
    limits: &Limits,
    session: &Session,
    pending: Pending,
) -> Result<After, IoError>
where
    I: Io,
    S: Service + ?Sized,
{
    let (mut answer, after) = match pending {
        Pending::Later(coming, after) => (Answer::Later(coming), after),
        Pending::Body(Wanted { head, body, most }) => match collect(io, limits, body, most).await {
            Ok(content) => answer_body(io, service, limits, session, head, &content),
            Err(Broken::Refused(refusal)) => {
                let peer = *io.peer();
                let (line, out) = (first_line(&head), io.split().1);
                out.answer(limits.write, |out| service.refuse(refusal, line, &peer, out));
                (Answer::Close, After::Continue)
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
            Answer::Later(coming) => later(io, service, limits, coming, by).await?,
        };
    }
}

/// Answers a request whose body is all there. What is decided about the connection is decided now.
fn answer_body<I, S>(
    io: &mut I,
    service: &S,
    limits: &Limits,
    session: &Session,
    mut head: Vec<u8>,
    content: &[u8],
) -> (Answer, After)
where
    I: Io,
    S: Service + ?Sized,
{
    let (peer, draining) = (*io.peer(), io.draining());
    let (input, out) = io.split();
    let mut table = head::table();
    let mut head = Head::parse(&mut head, &mut table, limits).expect("what was parsed can be parsed again");
    let after = settle(&mut head, Body::Empty, limits, session, draining, !input.is_empty());
    (out.answer(limits.write, |out| service.answer_body(&head, content, &peer, out)), after)
}

/// Waits for something else than the peer, while the peer is there and the time lasts.
async fn later<I, S>(
    io: &mut I,
    service: &S,
    limits: &Limits,
    mut coming: Coming,
    by: Instant,
) -> Result<Answer, IoError>
where
    I: Io,
    S: Service + ?Sized,
{
    let reply = poll_fn(|cx| match Pin::new(&mut coming).poll(cx) {
        Poll::Ready(reply) => Poll::Ready(Ok(reply)),
        Poll::Pending => io.poll_lost(cx, by).map(Err),
    })
    .await;
    let peer = *io.peer();
    let out = io.split().1;
    match reply {
        Ok(reply) => Ok(out.answer(limits.write, reply)),
        Err(IoError::TimedOut) => {
            out.answer(limits.write, |out| service.refuse(Refusal::Overdue, b"", &peer, out));
            Ok(Answer::Close)
        }
        Err(lost) => Err(lost),
    }
}
