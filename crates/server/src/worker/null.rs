//! `serve --null`: one fixed response to anything that ends with an empty line. It measures only the engine.

use std::future::{Future, poll_fn};
use std::sync::Arc;

use tenfold_engine::Protocol;
use tenfold_http::{Finish, Instant, Io, Limits, Next, Patience, Received, clock};

use super::shared::{WorkerShared, worker_hooks};

/// The response of `serve --null`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NullResponse {
    /// Bytes of its body.
    pub(crate) body: usize,
    /// Whether the connection ends after it.
    pub(crate) close: bool,
}

/// Answers each end of a request, and parses nothing else.
#[derive(Clone)]
pub(crate) struct NullProtocol {
    response: Arc<[u8]>,
    close: bool,
    limits: Limits,
    worker: Arc<WorkerShared>,
}

impl NullProtocol {
    /// Answers with `response`.
    pub(crate) fn new(response: NullResponse, limits: Limits, worker: Arc<WorkerShared>) -> NullProtocol {
        let NullResponse { body, close } = response;
        let connection = if close { "Connection: close\r\n" } else { "" };
        let mut response =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {body}\r\n{connection}\r\n").into_bytes();
        response.resize(response.len() + body, b'x');
        NullProtocol { response: response.into(), close, limits, worker }
    }

    /// Answers the complete requests of the input, as many as the output can take. Returns whether there were any, and
    /// whether some are left.
    fn answer<I: Io>(&self, io: &mut I) -> (bool, bool) {
        let (input, out) = io.split();
        let (mut consumed, mut left) = (0, false);
        for end in memchr::memmem::find_iter(input, b"\r\n\r\n") {
            if out.full() || (self.close && consumed > 0) {
                left = true;
                break;
            }
            out.stage(&self.response);
            consumed = end + 4;
        }
        // Without an end, the input is discarded, except bytes that may begin an end.
        let kept = if input.len() - consumed >= self.limits.max_head { 3 } else { input.len() - consumed };
        let answered = consumed > 0;
        let whole = input.len();
        io.consume(if left { consumed } else { whole - kept });
        (answered, left)
    }

    async fn serve_all<I: Io>(&self, io: &mut I) -> Next {
        loop {
            let (answered, left) = self.answer(io);
            if answered {
                let by = clock::now() + self.limits.send_timeout;
                if poll_fn(|cx| io.poll_flush(cx, by)).await.is_err() {
                    return Next::Close;
                }
                if self.close {
                    poll_fn(|cx| io.poll_finish(cx, Finish::Close, by)).await;
                    return Next::Close;
                }
            }
            if left {
                continue;
            }
            let by = clock::now() + self.limits.idle_timeout;
            if io.split().0.is_empty() && answered {
                return if io.closes_idle() { Next::Close } else { Next::Park(by) };
            }
            match poll_fn(|cx| io.poll_receive(cx, self.limits.max_head, Patience::Park, by)).await {
                Ok(Received::Bytes | Received::Full) => {}
                Ok(Received::Idle) => return Next::Park(by),
                Ok(Received::End) | Err(_) => return Next::Close,
            }
        }
    }
}

impl Protocol for NullProtocol {
    type State = ();

    fn first_bytes_by(&self) -> Instant {
        clock::now() + self.limits.head_timeout
    }

    fn next_request_by(&self) -> Instant {
        clock::now() + self.limits.idle_timeout
    }

    fn serve<I: Io>(&self, io: &mut I, _: &mut ()) -> impl Future<Output = Next> {
        self.serve_all(io)
    }

    fn serve_anywhere<I: Io + Send>(&self, io: &mut I, _: &mut ()) -> impl Future<Output = Next> + Send {
        self.serve_all(io)
    }

    worker_hooks!(worker);
}
