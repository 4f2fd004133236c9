//! What a server does with a request: the trait that a site implements.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::clock::Instant;
use crate::head::Head;
use crate::io::Peer;
use crate::out::Out;

/// Answers requests. One value serves all connections of a worker, and often of several.
pub trait Service: Send + Sync {
    /// Answers `head` by staging a whole response in `out`, now or later.
    ///
    /// It is called on the thread that drives the connection and must not wait: what has to (a database,
    /// a hash, a disk) is returned as [`Answer::Later`]. The response must carry
    /// `Connection: close` where [`Head::persistent`] is false.
    fn answer(&self, head: &Head<'_>, peer: &Peer, out: &mut Out) -> Answer;

    /// Answers a request for whose body [`Service::answer`] asked, now that it is here, all of it, without
    /// its framing. `head` is the same, but for [`Head::persistent`], which is decided anew.
    ///
    /// It is called after [`Answer::NeedBody`] and at no other time, so a service that never asks has none.
    /// Asking again is a mistake: it closes the connection.
    fn answer_body(&self, head: &Head<'_>, body: &[u8], peer: &Peer, out: &mut Out) -> Answer {
        let _ = (head, body, peer, out);
        unreachable!("a service that asks for bodies answers them")
    }

    /// Answers a request that is none: stages a short response that says `Connection: close`. `head_line`
    /// is what arrived of its first line, for a log.
    fn refuse(&self, refusal: Refusal, first_line: &[u8], peer: &Peer, out: &mut Out);
}

/// What became of a request.
pub enum Answer {
    /// The response is staged.
    Done,
    /// The response is staged, and the connection ends after it, whatever the request asked for.
    Close,
    /// Nothing is staged: the response needs the request's body, of at most `max` bytes, and never more than
    /// [`crate::Limits::max_body`]. A peer that waits for it gets `100 Continue`; a longer body is refused.
    NeedBody {
        /// The most bytes of content.
        max: u64,
    },
    /// The response comes when this future is done. What was staged before is flushed before it is
    /// awaited; a peer that goes away, or [`crate::Limits::later_timeout`], drops it.
    Later(Coming),
}

// It is handed through several layers for every request: in registers.
const _: () = assert!(size_of::<Answer>() <= 16);

impl Answer {
    /// [`Answer::Later`], as this future says.
    pub fn later(future: impl Future<Output = Reply> + Send + 'static) -> Answer {
        Answer::Later(Coming(Box::new(Box::pin(future))))
    }
}

/// A response that is waited for. It is one pointer, so that an [`Answer`] is small.
pub struct Coming(Box<Pin<Box<dyn Future<Output = Reply> + Send>>>);

impl Future for Coming {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Reply> {
        Pin::new(&mut *self.0).poll(cx)
    }
}

/// Stages a response that was waited for; runs on the connection's own thread.
pub type Reply = Box<dyn FnOnce(&mut Out) -> Answer + Send>;

/// What a driver does with a connection when [`crate::serve_connection`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing is in hand: keep the socket and the [`Session`], give everything else back, and serve the
    /// connection again when there is something to read. Close it when this moment passes.
    Park(Instant),
    /// Output is shut down: read and throw away what still comes, within a bound, then close.
    Linger,
    /// Close at once.
    Close,
}

/// What is remembered of a connection while it is parked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// Requests answered so far; stays at its greatest value.
    pub requests: u32,
}

/// Why bytes are not a request that is served. Each closes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The bytes are not a request of RFC 9112; the words say what is wrong with them.
    Malformed(&'static str),
    /// The head, or the body, did not arrive in time.
    TimedOut,
    /// The target is longer than [`crate::Limits::max_target`].
    TargetTooLong,
    /// The head is longer than [`crate::Limits::max_head`] or has more than
    /// [`crate::Limits::max_headers`] fields; or the extensions and trailers of a body in chunks are longer
    /// than a head may be.
    HeadTooLarge,
    /// The body is longer than what was asked for, or than [`crate::Limits::max_body`].
    BodyTooLarge,
    /// A method that this server does not know.
    UnknownMethod,
    /// A transfer coding other than `chunked`.
    UnknownTransferCoding,
    /// A major version other than 1.
    UnknownVersion,
    /// An expectation other than `100-continue`.
    UnknownExpectation,
    /// A [`Answer::Later`] did not come in time.
    Overdue,
    /// As many requests are waiting to be answered as may wait.
    Busy,
}

impl Refusal {
    /// The status code of the response (RFC 9110 §15).
    pub fn status(self) -> u16 {
        match self {
            Refusal::Malformed(_) => 400,
            Refusal::TimedOut => 408,
            Refusal::BodyTooLarge => 413,
            Refusal::TargetTooLong => 414,
            Refusal::UnknownExpectation => 417,
            Refusal::HeadTooLarge => 431,
            Refusal::UnknownMethod | Refusal::UnknownTransferCoding => 501,
            Refusal::Overdue | Refusal::Busy => 503,
            Refusal::UnknownVersion => 505,
        }
    }

    /// What is wrong, in a few words.
    pub fn words(self) -> &'static str {
        match self {
            Refusal::Malformed(what) => what,
            Refusal::TimedOut => "the request did not arrive in time",
            Refusal::TargetTooLong => "the target is too long",
            Refusal::HeadTooLarge => "the head is too large",
            Refusal::BodyTooLarge => "the body is too large",
            Refusal::UnknownMethod => "the method is not known here",
            Refusal::UnknownTransferCoding => "the transfer coding is not known here",
            Refusal::UnknownVersion => "only HTTP/1.0 and HTTP/1.1 are spoken here",
            Refusal::UnknownExpectation => "the expectation can not be met",
            Refusal::Overdue => "the answer took too long",
            Refusal::Busy => "as many requests are waiting as may wait",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}
