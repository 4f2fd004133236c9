//! A connection: requests go out, answers come in, and each answer is judged and timed.
//!
//! The one state machine for every shape of load. It makes no decision about when to ask; it sends what it was
//! given ([`ClientConnection::begin`]) and says when it can go on. Where it has a socket, that is non-blocking and
//! edge-triggered: a send is tried at once, and a receive that did not fill its buffer has emptied the socket. Where
//! it has none, somebody else sends what is [`ClientConnection::waiting`], and says what has [`ClientConnection::arrived`].

pub(crate) mod judge;
mod receive;
mod send;

use std::collections::VecDeque;
use std::io;

use tenfold_sys::socket::Socket;

use crate::connection::judge::ExchangeError;
use crate::measure::recorder::Recorder;
use crate::message::request::EncodedRequest;
use crate::message::response::{HeadCache, RequestTraits, ResponseParser};
use crate::plan::expect::Expect;

/// What the connections of a worker share.
pub(crate) struct WorkerContext<'a> {
    pub(crate) encoded: &'a [EncodedRequest],
    pub(crate) traits: RequestTraits,
    pub(crate) expect: &'a Expect,
    pub(crate) known: Vec<HeadCache>,
    pub(crate) buffer: Box<[u8]>,
    pub(crate) gathered: Vec<u8>,
    pub(crate) recorder: Recorder,
    /// Requests that were begun on measured connections and have not ended.
    pub(crate) pending: u64,
}

/// A request between its begin and its end.
#[derive(Clone, Copy, Debug)]
struct PendingRequest {
    due: u64,
    /// When its first byte was sent; 0 until then.
    sent: u64,
    /// When the first byte of its answer came; 0 until then.
    first: u64,
    target: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    #[default]
    Closed,
    /// Since when.
    Connecting(u64),
    Open,
}

/// How far a send or a receive came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IoProgress {
    /// All that there was.
    All,
    /// The kernel will say when it goes on.
    Blocked,
    /// As much as was allowed.
    Limited,
    /// The connection cannot be used any more, in good order.
    Over,
}

/// A place for one connection after the other.
#[derive(Debug, Default)]
pub(crate) struct ClientConnection {
    /// None where it is closed, or where a ring has it.
    socket: Option<Socket>,
    pub(crate) state: ConnectionState,
    parser: ResponseParser,
    requests: VecDeque<PendingRequest>,
    /// Flights whose request has been written whole; those behind wait.
    written: usize,
    /// Bytes of the next one that have been written.
    offset: usize,
    /// Requests begun since it was opened.
    pub(crate) begun: u64,
    /// Whether it may go on after the answers so far.
    persistent: bool,
    /// Answers that were right, in all its lives.
    pub(crate) answers: u64,
    /// Answers of any kind, in all its lives.
    pub(crate) responses: u64,
    /// Whether its latencies count.
    measured: bool,
    /// TCP can throw away what need not be looked at.
    skips: bool,
}

impl ClientConnection {
    /// One that is closed, and whose latencies count or not.
    pub(crate) fn new(measured: bool) -> ClientConnection {
        ClientConnection { measured, ..ClientConnection::default() }
    }

    /// Whether its latencies count.
    pub(crate) fn is_measured(&self) -> bool {
        self.measured
    }

    /// A new socket, not known to be connected; none where another keeps it, and sends and receives for it.
    pub(crate) fn connect(&mut self, socket: Option<Socket>, is_tcp: bool, now: u64) {
        self.socket = socket;
        self.skips = is_tcp;
        self.persistent = true;
        self.state = ConnectionState::Connecting(now);
        self.parser = ResponseParser::default();
    }

    pub(crate) fn number(&self) -> Option<i32> {
        self.socket.as_ref().map(Socket::number)
    }

    /// Why it did not connect, where it did not.
    pub(crate) fn connect_error(&self) -> io::Result<()> {
        self.socket.as_ref().map_or(Ok(()), Socket::take_error)
    }

    /// Has a request to make that was due at `due`.
    #[inline]
    pub(crate) fn begin(&mut self, due: u64, target: u32, context: &mut WorkerContext<'_>) {
        self.begun += 1;
        context.pending += u64::from(self.measured);
        self.requests.push_back(PendingRequest { due, sent: 0, first: 0, target });
    }

    /// Requests that were begun and have not ended.
    #[inline]
    pub(crate) fn in_flight(&self) -> usize {
        self.requests.len()
    }

    /// Whether a request is left to be sent.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        self.written < self.requests.len()
    }

    /// Since when the oldest request that was sent has waited.
    pub(crate) fn waiting_since(&self) -> Option<u64> {
        self.requests.front().map(|request| request.sent).filter(|sent| *sent > 0)
    }

    /// Whether it can make more requests.
    pub(crate) fn is_persistent(&self) -> bool {
        self.persistent
    }

    /// Closes it. With a error, the requests that were sent have failed; without, those that were sent and will
    /// not be answered on this connection wait to be sent on the next (RFC 9112 §9.3.2).
    pub(crate) fn close(&mut self, context: &mut WorkerContext<'_>, now: u64, error: Option<&ExchangeError>) {
        if self.state == ConnectionState::Closed {
            return;
        }
        self.socket = None;
        context.recorder.closed();
        let sent = self.requests.iter().filter(|request| request.sent > 0).count();
        if self.measured {
            context.recorder.ended(now, sent as u64);
        }
        match error {
            Some(error) => {
                // What could not even be sent has failed with a connection that was never made.
                let lost = if matches!(self.state, ConnectionState::Connecting(_)) {
                    self.requests.len()
                } else {
                    sent
                };
                self.fail(lost, context, now, error);
            }
            None => self.requests.iter_mut().for_each(|request| (request.sent, request.first) = (0, 0)),
        }
        (self.written, self.offset) = (0, 0);
        self.begun = self.requests.len() as u64;
        self.state = ConnectionState::Closed;
        self.parser = ResponseParser::default();
    }

    /// The first `count` requests have failed.
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

    /// Writes down what has no answer at the end of the run.
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
