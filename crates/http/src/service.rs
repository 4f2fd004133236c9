//! The trait that a site implements: what a server does with a request.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::message::connection::Connection;
use crate::message::refusal::Refusal;
use crate::message::request::{Request, RequestSummary};
use crate::response::writer::ResponseWriter;

/// Answers requests. One value serves all connections of a worker, and often of several.
pub trait Service: Send + Sync {
    /// Writes the whole response to `request`, now or later.
    ///
    /// It is called on the thread that drives the connection and must not wait: what has to (a database, a hash, a
    /// disk) is returned as [`Answer::Later`].
    fn answer(
        &self,
        request: &Request<'_>,
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) -> Answer;

    /// Answers a request for whose content [`Service::answer`] asked, now that it is here, all of it, without its
    /// framing.
    ///
    /// It is called after [`Answer::NeedBody`] and at no other time, so a service that never asks has none.
    /// Asking again is a mistake: it closes the connection.
    fn answer_body(
        &self,
        request: &Request<'_>,
        body: &[u8],
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) -> Answer {
        let _ = (request, body, connection, response);
        unreachable!("a service that asks for bodies answers them")
    }

    /// Writes a short response to a refused request, after which the connection closes. `request` is for a log. By
    /// default, the response is the reason as plain text.
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
}

/// The result of answering a request.
pub enum Answer {
    /// The response is written.
    Done,
    /// The response is written, and the connection ends after it, whatever the request asked for.
    Close,
    /// Nothing is written: the response needs the request's content, of at most `max` bytes, and never more than
    /// [`crate::Limits::max_body`]. A client that waits for it gets `100 Continue`; longer content is refused.
    NeedBody {
        /// The most bytes of content.
        max: u64,
    },
    /// The response is written when this future is done. Earlier responses are flushed before it is awaited. It is
    /// dropped if the client goes away, or after [`crate::Limits::later_timeout`].
    Later(DeferredResponse),
}

// It is handed through several layers for every request: in registers.
const _: () = assert!(size_of::<Answer>() <= 16);

impl Answer {
    /// [`Answer::Later`] with this future.
    pub fn later(future: impl Future<Output = Reply> + Send + 'static) -> Answer {
        Answer::Later(DeferredResponse(Box::new(Box::pin(future))))
    }
}

/// A future response. It is one pointer, so that an [`Answer`] is small.
pub struct DeferredResponse(Box<Pin<Box<dyn Future<Output = Reply> + Send>>>);

impl Future for DeferredResponse {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Reply> {
        Pin::new(&mut *self.0).poll(cx)
    }
}

/// Writes a deferred response; runs on the connection's own thread.
pub type Reply = Box<dyn FnOnce(&mut ResponseWriter<'_>) -> Answer + Send>;
