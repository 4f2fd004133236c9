//! Requests of a connection on their way into streams, and the ends of streams and of the connection.

use tenfold_wire::frame::{ErrorCode, MOST_31_BITS, write};

use super::super::{ClientConnection, ConnectionState, WorkerContext};
use super::ClientStream;
use crate::connection::judge::ExchangeError;

impl ClientConnection {
    /// Appends frames of queued requests to the output of HTTP/2.
    #[inline]
    pub(in crate::connection) fn prepare(&mut self, context: &mut WorkerContext<'_>, now: u64) {
        let may_open = self.may_open();
        let Some(http2) = &mut self.http2 else { return };
        let begun = http2.fill(&mut self.requests, may_open, context.http2, now);
        // No stream can follow the last id (RFC 9113 §5.1.1).
        self.persistent &= http2.next_stream <= MOST_31_BITS;
        if self.measured && begun > 0 {
            context.recorder.sent(now, begun);
        }
    }

    /// Fails the requests without a response since `timeout`, and cancels their streams. Returns false if nothing else
    /// is in flight on the connection, so that it must be closed.
    pub(crate) fn cancel_late(
        &mut self,
        context: &mut WorkerContext<'_>,
        now: u64,
        timeout: u64,
        error: &ExchangeError,
    ) -> bool {
        let Some(mut http2) = self.http2.take() else { return false };
        let is_late = |stream: &ClientStream| now.saturating_sub(stream.request.sent) >= timeout;
        let continues = self.state == ConnectionState::Open && !http2.streams.iter().all(is_late);
        while continues && http2.streams.front().is_some_and(is_late) {
            if let Some(stream) = http2.remove(0) {
                if stream.unsent == 0 {
                    write::reset_stream(stream.id, ErrorCode::CANCEL, &mut http2.output);
                }
                self.fail_stream(&stream, context, now, error);
            }
        }
        self.http2 = Some(http2);
        continues
    }

    /// Records the failure of a stream's request.
    pub(super) fn fail_stream(
        &mut self,
        stream: &ClientStream,
        context: &mut WorkerContext<'_>,
        now: u64,
        error: &ExchangeError,
    ) {
        self.requests.push_front(stream.request);
        if self.measured {
            context.recorder.ended(now, 1);
        }
        self.fail(1, context, now, error);
    }

    /// Ends HTTP/2 on the connection, with GOAWAY if `orderly`. Requests in flight return to the queue.
    pub(in crate::connection) fn end_http2(
        &mut self,
        context: &mut WorkerContext<'_>,
        now: u64,
        orderly: bool,
    ) {
        if let Some(http2) = &mut self.http2
            && orderly
            && std::mem::take(&mut self.persistent)
            && self.state == ConnectionState::Open
        {
            write::goaway(0, ErrorCode::NO_ERROR, b"", &mut http2.output);
            // The connection is closed in any case.
            let _ = self.flush(context, now, usize::MAX);
        }
        if let Some(mut http2) = self.http2.take() {
            http2.streams.drain(..).rev().for_each(|stream| self.requests.push_front(stream.request));
        }
    }
}
