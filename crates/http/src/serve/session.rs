//! The state of a connection between its requests, and the step after a response.

use crate::clock::Instant;
use crate::io::Finish;
use crate::limits::Limits;
use crate::message::request::{Body, Method, Request, RequestSummary};

/// The driver's next step with a connection when [`crate::serve_connection`] returns.
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

/// The memory of a connection while it is idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// Requests answered so far; stays at its greatest value.
    pub requests: u32,
}

/// The step after a response on its connection.
#[derive(Clone, Copy)]
pub(crate) enum After {
    /// The next head.
    Continue,
    /// This body, which the service did not read.
    Discard(Body),
    /// The end of the connection.
    End(Finish),
}

/// Facts about a connection that decide whether it persists.
#[derive(Clone, Copy)]
pub(crate) struct Persistence<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) session: &'a Session,
    pub(crate) draining: bool,
    /// Whether bytes stand behind the request.
    pub(crate) more: bool,
}

impl Persistence<'_> {
    /// Decides whether the connection persists after the response to this request, and what follows it. `persistent`
    /// is what the request asks for, and `unread` the body behind it.
    pub(crate) fn decide(self, request: &Request<'_>, persistent: bool, unread: Body) -> (bool, After) {
        let Persistence { limits, session, draining, more } = self;
        let readable = match unread {
            Body::Empty => true,
            // A client that waits for `100 Continue` sends no body after another response; one that does not wait
            // sends it. The server cannot tell, and closes (RFC 9110 §10.1.1).
            _ if request.expects_continue => false,
            Body::Length(length) => length <= limits.max_discard,
            // Its length shows when it is read.
            Body::Streamed => true,
        };
        let last = limits.requests_per_connection.is_some_and(|bound| session.requests >= bound);
        // Bytes behind a CONNECT that was refused may be meant for the other end of a tunnel.
        let persistent = persistent && readable && !last && !draining && request.method != Method::Connect;
        let after = match (persistent, unread) {
            (true, Body::Empty) => After::Continue,
            (true, body) => After::Discard(body),
            // A client that asked for the end and sent nothing behind its request loses nothing by a close.
            (false, Body::Empty) if !more && !last && !draining => After::End(Finish::Close),
            _ => After::End(Finish::Linger),
        };
        (persistent, after)
    }
}

/// Returns the summary of bytes that are refused: their first line, cut.
pub(crate) fn summarize(input: &[u8]) -> RequestSummary<'_> {
    const SHOWN: usize = 1024;
    let input = &input[..input.len().min(SHOWN)];
    RequestSummary::Unparsed(&input[..memchr::memchr2(b'\r', b'\n', input).unwrap_or(input.len())])
}
