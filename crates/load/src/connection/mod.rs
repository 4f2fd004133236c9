//! The state machine of a client connection: it sends requests, and checks and times responses.
//!
//! One state machine serves every load. It does not decide when to send; it sends the requests of
//! [`ClientConnection::begin`] and reports its progress. Its socket, if it has one, is non-blocking and
//! edge-triggered: a send is tried immediately, and a short receive has emptied the socket. Without a socket, an I/O
//! backend sends the bytes of [`ClientConnection::waiting`] and passes received bytes to
//! [`ClientConnection::arrived`].

mod http2;
pub(crate) mod judge;
mod pending;
mod receive;
mod send;
mod session;
mod tls;

use std::collections::VecDeque;
use std::io;

use tenfold_sys::socket::Socket;
use tenfold_wire::hpack::FieldList;

use crate::connection::http2::Http2Session;
use crate::connection::judge::ExchangeError;
use crate::connection::pending::PendingRequest;
use crate::connection::session::TlsSession;
use crate::measure::record::ErrorKind;
use crate::measure::recorder::Recorder;
use crate::message::http2::RequestsToSend;
use crate::message::request::EncodedRequest;
use crate::message::response::{HeadCache, RequestTraits, ResponseParser};
use crate::plan::expect::Expect;
use crate::plan::{LoadPlan, RequestVersion};
use crate::tls::H2;

/// State shared by the connections of a worker.
pub(crate) struct WorkerContext<'a> {
    pub(crate) encoded: &'a [EncodedRequest],
    /// Requests of HTTP/2, instead of `encoded`.
    pub(crate) http2: RequestsToSend<'a>,
    /// The fields of a response of HTTP/2, while they are checked.
    pub(crate) fields: FieldList,
    pub(crate) traits: RequestTraits,
    pub(crate) expect: &'a Expect,
    pub(crate) known: Vec<HeadCache>,
    pub(crate) buffer: Box<[u8]>,
    pub(crate) gathered: Vec<u8>,
    pub(crate) recorder: Recorder,
    /// Unfinished requests on measured connections.
    pub(crate) pending: u64,
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
    /// `None` with HTTP/1, and if the connection is closed.
    http2: Option<Box<Http2Session>>,
    pub(crate) state: ConnectionState,
    parser: ResponseParser,
    /// Requests in order. With HTTP/2, only requests without a stream.
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
    pub(crate) fn connect(&mut self, socket: Option<Socket>, version: RequestVersion, skips: bool, now: u64) {
        self.socket = socket;
        self.http2 = (version == RequestVersion::Http2).then(Box::default);
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
        self.requests.len() + self.http2.as_ref().map_or(0, |http2| http2.streams())
    }

    /// The most requests in flight: those of the plan, unless the server allows fewer streams.
    #[inline]
    pub(crate) fn most_at_once(&self, plan: &LoadPlan) -> usize {
        let wanted = plan.per_connection_at_once() as usize;
        match &self.http2 {
            None => wanted,
            Some(http2) if self.persistent => http2.most_streams().min(wanted),
            Some(_) => 0,
        }
    }

    /// Whether bytes are ready to be sent: of a queued request, or other frames of HTTP/2.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        match &self.http2 {
            None => self.written < self.requests.len(),
            Some(http2) => {
                http2.has_output() || (self.may_open() && http2.has_place() && !self.requests.is_empty())
            }
        }
    }

    /// Whether a stream may begin, if the server allows another one.
    fn may_open(&self) -> bool {
        self.persistent && self.state == ConnectionState::Open
    }

    /// The time when the oldest request in flight was sent.
    pub(crate) fn waiting_since(&self) -> Option<u64> {
        let oldest = match &self.http2 {
            None => self.requests.front(),
            Some(http2) => http2.oldest(),
        };
        oldest.map(|request| request.sent).filter(|sent| *sent > 0)
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
        self.end_http2(context, now, error.is_none());
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

    /// Checks the protocol that the TLS handshake chose (RFC 7301). A server without ALPN uses HTTP/1.
    pub(crate) fn check_protocol(&self) -> Result<(), ExchangeError> {
        let chosen = self.tls.as_ref().and_then(|tls| tls.protocol());
        if self.http2.is_none() || self.tls.is_none() || chosen == Some(H2) {
            return Ok(());
        }
        let why = "the server does not choose h2 by ALPN; use --http 1.1, or enable HTTP/2 in the server";
        Err(ExchangeError::new(ErrorKind::NoHttp2, why))
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
        let streams = self.http2.iter().flat_map(|http2| http2.requests());
        for request in self.requests.iter().chain(streams) {
            record.unfinished += 1;
            record.longest_wait = record.longest_wait.max(now.saturating_sub(request.due));
            if request.sent > 0 {
                record.lost_time += now.saturating_sub(request.sent);
            }
        }
    }
}
