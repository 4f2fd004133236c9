//! The state machine of a client connection: it sends requests, and checks and times responses.
//!
//! One state machine serves every load. It does not decide when to send; it sends the requests of
//! [`ClientConnection::begin`] and reports its progress. Its socket, if it has one, is non-blocking and
//! edge-triggered: a send is tried immediately, and a short receive has emptied the socket. Without a socket, an I/O
//! backend sends the bytes of [`ClientConnection::waiting`] and passes received bytes to
//! [`ClientConnection::arrived`].

pub(crate) mod judge;
mod receive;
mod send;
mod session;
mod tls;

use std::collections::VecDeque;
use std::io;

use tenfold_sys::socket::Socket;

use crate::connection::judge::ExchangeError;
use crate::connection::session::TlsSession;
use crate::measure::recorder::Recorder;
use crate::message::request::EncodedRequest;
use crate::message::response::{HeadCache, RequestTraits, ResponseParser};
use crate::plan::expect::Expect;

/// State shared by the connections of a worker.
pub(crate) struct WorkerContext<'a> {
    pub(crate) encoded: &'a [EncodedRequest],
    pub(crate) traits: RequestTraits,
    pub(crate) expect: &'a Expect,
    pub(crate) known: Vec<HeadCache>,
    pub(crate) buffer: Box<[u8]>,
    pub(crate) gathered: Vec<u8>,
    pub(crate) recorder: Recorder,
    /// Unfinished requests on measured connections.
    pub(crate) pending: u64,
}

/// A request without a complete response.
#[derive(Clone, Copy, Debug)]
struct PendingRequest {
    due: u64,
    /// The time when its first byte was sent; 0 before.
    sent: u64,
    /// The time when the first byte of its response arrived; 0 before.
    first: u64,
    target: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    #[default]
    Closed,
    /// Since this time.
    Connecting(u64),
    /// The TLS handshake began at this time.
    Handshaking(u64),
    Open,
}

/// The result of a send or a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IoProgress {
    /// Everything was transferred.
    All,
    /// The kernel reports when to continue.
    Blocked,
    /// The limit of the call was reached.
    Limited,
    /// The connection ended normally.
    Over,
}

/// A client connection. After a close it can connect again.
#[derive(Debug, Default)]
pub(crate) struct ClientConnection {
    /// `None` if the connection is closed, or if a ring owns the socket.
    socket: Option<Socket>,
    /// `None` without TLS, and before the handshake.
    tls: Option<Box<TlsSession>>,
    pub(crate) state: ConnectionState,
    parser: ResponseParser,
    requests: VecDeque<PendingRequest>,
    /// Requests that are completely written; the next ones are waiting.
    written: usize,
    /// Bytes written of the next request.
    offset: usize,
    /// Requests begun since the connection was opened.
    pub(crate) begun: u64,
    /// Whether the connection persists after the responses so far.
    persistent: bool,
    /// Correct responses since creation.
    pub(crate) answers: u64,
    /// Responses of any kind since creation.
    pub(crate) responses: u64,
    /// Whether its latencies count.
    measured: bool,
    /// Whether the kernel may discard bodies, which only TCP supports.
    skips: bool,
}

impl ClientConnection {
    /// A closed connection.
    pub(crate) fn new(measured: bool) -> ClientConnection {
        ClientConnection { measured, ..ClientConnection::default() }
    }

    /// Whether its latencies count.
    pub(crate) fn is_measured(&self) -> bool {
        self.measured
    }

    /// Begins a connect. `socket` is `None` if a ring owns it. `skips` allows the kernel to discard bodies.
    pub(crate) fn connect(&mut self, socket: Option<Socket>, skips: bool, now: u64) {
        self.socket = socket;
        self.skips = skips;
        self.persistent = true;
        self.state = ConnectionState::Connecting(now);
        self.parser = ResponseParser::default();
    }

    pub(crate) fn number(&self) -> Option<i32> {
        self.socket.as_ref().map(Socket::number)
    }

    /// The error of the connect, if it failed.
    pub(crate) fn connect_error(&self) -> io::Result<()> {
        self.socket.as_ref().map_or(Ok(()), Socket::take_error)
    }

    /// Queues a request that was due at `due`.
    #[inline]
    pub(crate) fn begin(&mut self, due: u64, target: u32, context: &mut WorkerContext<'_>) {
        self.begun += 1;
        context.pending += u64::from(self.measured);
        self.requests.push_back(PendingRequest { due, sent: 0, first: 0, target });
    }

    /// The number of unfinished requests.
    #[inline]
    pub(crate) fn in_flight(&self) -> usize {
        self.requests.len()
    }

    /// Whether a queued request is not completely written.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        self.written < self.requests.len()
    }

    /// The time when the oldest request in flight was sent.
    pub(crate) fn waiting_since(&self) -> Option<u64> {
        self.requests.front().map(|request| request.sent).filter(|sent| *sent > 0)
    }

    /// Whether the connection can make more requests.
    pub(crate) fn is_persistent(&self) -> bool {
        self.persistent
    }

    /// Closes the connection. An error fails the sent requests; otherwise they are repeated on the next connection (RFC
    /// 9112 §9.3.2).
    pub(crate) fn close(&mut self, context: &mut WorkerContext<'_>, now: u64, error: Option<&ExchangeError>) {
        if self.state == ConnectionState::Closed {
            return;
        }
        self.end_tls(error.is_none());
        self.socket = None;
        context.recorder.closed();
        let sent = self.requests.iter().filter(|request| request.sent > 0).count();
        if self.measured {
            context.recorder.ended(now, sent as u64);
        }
        match error {
            Some(error) => {
                // If the connect or the handshake failed, unsent requests have failed with it.
                let lost = if self.state == ConnectionState::Open { sent } else { self.requests.len() };
                self.fail(lost, context, now, error);
            }
            None => self.requests.iter_mut().for_each(|request| (request.sent, request.first) = (0, 0)),
        }
        (self.written, self.offset) = (0, 0);
        self.begun = self.requests.len() as u64;
        self.state = ConnectionState::Closed;
        self.parser = ResponseParser::default();
    }

    /// Records the failure of the first `count` requests.
    pub(crate) fn fail(
        &mut self,
        count: usize,
        context: &mut WorkerContext<'_>,
        now: u64,
        error: &ExchangeError,
    ) {
        let lost = self.requests.drain(..count);
        if self.measured && count > 0 {
            context.pending -= count as u64;
            let waited =
                lost.map(|request| if request.sent > 0 { now.saturating_sub(request.sent) } else { 0 });
            context.recorder.record.lost_time += waited.sum::<u64>();
            context.recorder.record.fail(error.kind, count as u64, || error.message.clone());
        }
    }

    /// Records the unfinished requests at the end of the run.
    pub(crate) fn abandon(&mut self, context: &mut WorkerContext<'_>, now: u64) {
        let record = &mut context.recorder.record;
        for request in &self.requests {
            record.unfinished += 1;
            record.longest_wait = record.longest_wait.max(now.saturating_sub(request.due));
            if request.sent > 0 {
                record.lost_time += now.saturating_sub(request.sent);
            }
        }
    }
}
