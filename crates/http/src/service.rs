//! The trait that a site implements: the responses to requests.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tenfold_wire::frame::ErrorCode;

use crate::message::connection::Connection;
use crate::message::refusal::Refusal;
use crate::message::request::{Request, RequestSummary};
use crate::response::value::Response;
use crate::response::writer::ResponseWriter;

/// Answers requests. A single value serves all connections of a worker, and often of several workers.
pub trait Service: Send + Sync {
    /// Writes the whole response to `request`, or defers it.
    ///
    /// It runs on the thread that drives the connection and must not wait. A response that must wait (for a
    /// database, a hash or a disk) is returned as [`Answer::Later`].
    fn answer(
        &self,
        request: &Request<'_>,
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) -> Answer;

    /// Answers a request with its whole content, without framing.
    ///
    /// It is called only after [`Answer::NeedBody`], so a service that never returns that need not implement
    /// it. Returning `NeedBody` again is a mistake and closes the connection.
    fn answer_body(
        &self,
        request: &Request<'_>,
        body: &[u8],
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) -> Answer {
        let _ = (request, body, connection, response);
        unreachable!("a service that returns NeedBody implements answer_body")
    }

    /// Writes a short response to a refused request, after which the connection closes. `request` is for a
    /// log. By default, the response is the reason in plain text.
    fn refuse(
        &self,
        refusal: Refusal,
        request: RequestSummary<'_>,
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) {
        let _ = connection;
        response.refusal(refusal, !request.is_head());
    }

    /// Counts frames of an HTTP/2 connection that end streams or the connection. By default, it ignores them.
    fn count_http2(&self, counts: Http2Counts) {
        let _ = counts;
    }
}

/// The frames since the last report of an HTTP/2 connection that end streams or the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Http2Counts {
    /// RST_STREAM frames of the client.
    pub client_resets: u32,
    /// RST_STREAM frames of the server with an error; NO_ERROR follows a complete response.
    pub server_resets: u32,
    /// The code of a GOAWAY that states the last stream.
    pub goaway: Option<GoAwayClass>,
}

/// A class of the error codes of GOAWAY (RFC 9113 §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoAwayClass {
    /// NO_ERROR: the connection is idle, has had all its requests, or the server drains.
    NoError,
    /// ENHANCE_YOUR_CALM: the client caused more work than it paid for.
    EnhanceYourCalm,
    /// An error of the protocol.
    Error,
}

impl GoAwayClass {
    pub(crate) fn of(code: ErrorCode) -> GoAwayClass {
        match code {
            ErrorCode::NO_ERROR => GoAwayClass::NoError,
            ErrorCode::ENHANCE_YOUR_CALM => GoAwayClass::EnhanceYourCalm,
            _ => GoAwayClass::Error,
        }
    }
}

/// The result of answering a request.
pub enum Answer {
    /// The response is written.
    Done,
    /// The response is written, and the connection ends after it.
    Close,
    /// Nothing is written, because the response needs the request's content of at most `max` bytes, but not
    /// more than [`crate::Limits::max_body`]. Longer content is refused. A client that waits for it receives
    /// `100 Continue`.
    NeedBody {
        /// The most bytes of content.
        max: u64,
    },
    /// The future returns the response. Earlier responses are flushed before it is awaited. It is dropped if
    /// the client is lost, or after [`crate::Limits::later_timeout`]. A response without a head is an error: it
    /// ends the connection.
    Later(DeferredResponse),
}

// Several layers return it for every request, in registers.
const _: () = assert!(size_of::<Answer>() <= 16);

impl Answer {
    /// Returns [`Answer::Later`] with this future.
    pub fn later(future: impl Future<Output = Response> + Send + 'static) -> Answer {
        Answer::Later(DeferredResponse { future: Box::new(Box::pin(future)), has_begun: false })
    }

    /// Returns [`Answer::Later`] with this future, whose work has begun before its first poll.
    pub fn in_progress(future: impl Future<Output = Response> + Send + 'static) -> Answer {
        Answer::Later(DeferredResponse { future: Box::new(Box::pin(future)), has_begun: true })
    }
}

/// A future response, in a single pointer to keep [`Answer`] small.
pub struct DeferredResponse {
    future: Box<Pin<Box<dyn Future<Output = Response> + Send>>>,
    has_begun: bool,
}

impl DeferredResponse {
    /// Whether its work has begun, so that it may continue after the future is dropped.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }
}

impl Future for DeferredResponse {
    type Output = Response;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response> {
        self.has_begun = true;
        Pin::new(&mut *self.future).poll(cx)
    }
}
