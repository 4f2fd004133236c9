//! The loop of a connection: frames in, responses out, and the waits between them.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use tenfold_wire::frame::{ErrorCode, FrameHeader, PREFACE, Setting, write};
use tenfold_wire::hpack::{Block, FieldList, ListLimits};

use super::rest::{MOST_FRAME, Rest, Stage};
use super::stream::{Abandoned, Server, Stream, StreamResponse, now};
use crate::clock::Instant;
use crate::io::{Finish, Flushed, Io, IoError, Patience, Received};
use crate::limits::Limits;
use crate::out::Out;
use crate::serve::session::{Next, Pace, finish};
use crate::service::{GoAwayClass, Http2Counts, Service};

/// The turns without a wait after which a driver that does not block tries to receive. A try costs a call.
const TURNS_TO_TRY: u8 = 4;

/// The requests that a turn answers.
pub(super) const REQUESTS_AT_ONCE: usize = 32;

/// The most received bytes that the connection holds: a frame, and the beginning of the next.
const ROOM: usize = FrameHeader::LENGTH + MOST_FRAME as usize;

/// The most bytes of fields that a thread keeps for the next connection.
const MOST_SCRATCH: usize = 64 * 1024;

thread_local! {
    /// The memory of the last connection with work in hand, for the next.
    static SCRATCH: Cell<Option<Box<Http2Connection>>> = const { Cell::new(None) };
}

/// A connection with work in hand.
pub(super) struct Http2Connection {
    pub(super) rest: Rest,
    /// Open streams, in the order of their requests.
    pub(super) streams: Vec<Stream>,
    /// The work of streams that ended before it was done.
    pub(super) abandoned: Vec<Abandoned>,
    /// A field block whose end is not received.
    pub(super) block: Option<OpenBlock>,
    pub(super) list: FieldList,
    pub(super) head: Block,
    pub(super) cookie: Vec<u8>,
    /// Memory for the body of the next response.
    pub(super) body: Out,
    /// The frames that are not reported to the service.
    pub(super) counts: Http2Counts,
    /// The number of turns in which a stream has sent.
    pub(super) turns: u64,
    /// The turns since the last try to receive.
    untried: u8,
    /// Requests that may still be answered in this turn.
    pub(super) requests_left: usize,
    /// Whether a response is complete since the last flush: the idle time begins after its last byte.
    pub(super) answered: bool,
}

/// The beginning of a field block.
pub(super) struct OpenBlock {
    pub(super) stream: u32,
    pub(super) end_stream: bool,
    pub(super) weight: Option<u16>,
    pub(super) depends_on_itself: bool,
    pub(super) fragment: Vec<u8>,
    pub(super) by: Instant,
}

/// The connection ends: with GOAWAY and this code, or immediately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fatal {
    GoAway(ErrorCode),
    Lost,
}

/// The event that ended a wait.
enum Woken {
    Progress,
    /// No bytes have arrived, and the connection may be parked.
    Idle,
    /// The peer has ended its output.
    End,
    TimedOut,
}

/// Serves an HTTP/2 connection until no stream is open and no received bytes are left. Returns the driver's next
/// step, and the state of a parked connection.
pub(super) async fn serve<I: Io>(
    io: &mut I,
    service: &dyn Service,
    limits: &Limits,
    rest: Option<Rest>,
) -> (Next, Option<Rest>) {
    let begun = rest.is_some();
    let mut connection = Http2Connection::new(rest.unwrap_or_else(|| Rest::new(now())));
    if !begun {
        let streams = u32::try_from(limits.max_streams).unwrap_or(u32::MAX);
        let settings =
            [Setting::MaxConcurrentStreams(streams), Setting::MaxHeaderListSize(list_size(limits))];
        io.share_output();
        io.split().1.stage_by(|bytes| write::settings(&settings, bytes));
    }
    let outcome = connection.run(io, service, limits).await;
    if let Err(Fatal::GoAway(code)) = outcome {
        connection.counts.goaway = Some(GoAwayClass::of(code));
    }
    connection.report(service);
    let rest = connection.finish();
    match outcome {
        Ok(Next::Park(by)) => (Next::Park(by), Some(rest)),
        Ok(next) => (next, None),
        Err(Fatal::Lost) => (Next::Close, None),
        Err(Fatal::GoAway(code)) => {
            let last = rest.last_goaway();
            io.split().1.stage_by(|bytes| write::goaway(last, code, b"", bytes));
            io.end_output();
            if flush(io, limits).await.is_err() {
                return (Next::Close, None);
            }
            (finish(io, limits, Finish::Linger).await, None)
        }
    }
}

/// Returns the largest list of fields, as RFC 9113 §6.5.2 counts it.
pub(super) fn list_size(limits: &Limits) -> u32 {
    u32::try_from(limits.max_head).unwrap_or(u32::MAX)
}

async fn flush<I: Io>(io: &mut I, limits: &Limits) -> Result<(), IoError> {
    crate::serve::session::flush(io, limits).await
}

impl Http2Connection {
    fn new(rest: Rest) -> Box<Http2Connection> {
        if let Some(mut connection) = SCRATCH.take() {
            connection.rest = rest;
            return connection;
        }
        Box::new(Http2Connection {
            rest,
            streams: Vec::new(),
            abandoned: Vec::new(),
            block: None,
            list: FieldList::new(ListLimits { size: 0, fields: 0 }),
            head: Block::new(),
            cookie: Vec::new(),
            body: Out::new(),
            counts: Http2Counts::default(),
            turns: 0,
            untried: 0,
            requests_left: 0,
            answered: false,
        })
    }

    /// Keeps the memory for the next connection, and returns the rest.
    fn finish(mut self: Box<Http2Connection>) -> Rest {
        let rest = std::mem::replace(&mut self.rest, Rest::new(now()));
        (self.block, self.turns, self.untried, self.answered) = (None, 0, 0, false);
        self.streams.clear();
        self.abandoned.clear();
        let fields = self.list.heap_bytes().max(self.cookie.capacity());
        if fields <= MOST_SCRATCH && self.body.is_empty() {
            SCRATCH.set(Some(self));
        }
        rest
    }

    async fn run<I: Io>(
        &mut self,
        io: &mut I,
        service: &dyn Service,
        limits: &Limits,
    ) -> Result<Next, Fatal> {
        let mut pace = None;
        loop {
            self.report(service);
            self.requests_left = REQUESTS_AT_ONCE;
            // In front of the responses of this turn: a client that reads them first makes requests that it may not send.
            if self.rest.stage == Stage::Open && io.draining() {
                self.announce_end(io.split().1);
            }
            let more = self.receive_frames(io, service, limits)?;
            self.leave(io, limits);
            // More DATA follows only a complete flush, so that few bytes are in front of a late urgent stream.
            if pace.is_none() {
                self.fill(io, limits);
            }
            self.streams.iter_mut().for_each(Stream::count_waiting);
            if self.has_left() && pace.is_none() && io.split().1.is_empty() {
                return Ok(finish(io, limits, Finish::Linger).await);
            }
            // A layer empties the output before the driver has sent it, so only the end of a flush ends a pace.
            if pace.is_none() && !io.split().1.is_empty() {
                pace = Some(Pace::begin(limits.send_timeout, limits.min_rate, None));
            }
            let woken = poll_fn(|cx| self.poll(cx, io, limits, more, &mut pace)).await?;
            match woken {
                // A driver that does not wait for room checks no deadline.
                Woken::Progress if self.work_deadline() <= now() => self.expire(io, service, limits)?,
                Woken::Progress => {}
                Woken::Idle => return Ok(Next::Park(self.deadline(limits, false, true))),
                Woken::End => return Ok(finish(io, limits, Finish::Close).await),
                Woken::TimedOut => self.expire(io, service, limits)?,
            }
        }
    }

    /// Reports the frames since the last report.
    fn report(&mut self, service: &dyn Service) {
        if self.counts != Http2Counts::default() {
            service.count_http2(std::mem::take(&mut self.counts));
        }
    }

    /// Polls all waits. Ready if any of them ends. `more`: received bytes can be processed without a wait.
    fn poll<I: Io>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut I,
        limits: &Limits,
        more: bool,
        pace: &mut Option<Pace>,
    ) -> Poll<Result<Woken, Fatal>> {
        let mut ready = more;
        if let Some(waiting) = pace {
            // A blocking driver sends a slice, so that frames are received between two slices.
            let sent = match io.blocks() {
                true => io.poll_send(cx, waiting.by()),
                false => io.poll_flush(cx, waiting.by()).map_ok(|()| Flushed::All),
            };
            let sent = match sent {
                // A driver that owns bytes in flight takes no more DATA, which would be in front of a late urgent stream.
                Poll::Ready(Ok(Flushed::All)) if self.can_fill() => {
                    io.poll_submitted(cx, waiting.by()).map_ok(|()| Flushed::All)
                }
                other => other,
            };
            match sent {
                Poll::Pending => {}
                Poll::Ready(Ok(Flushed::All)) => {
                    *pace = None;
                    if std::mem::take(&mut self.answered) {
                        self.rest.last_use = now();
                    }
                    // Frames in hand may have waited for room in the output.
                    ready |= !io.split().0.is_empty();
                    ready |= self.has_left();
                }
                Poll::Ready(Ok(Flushed::Part)) => ready = true,
                Poll::Ready(Err(IoError::TimedOut)) => {
                    if waiting.renew(io.delivered()).is_err() {
                        return Poll::Ready(Err(Fatal::Lost));
                    }
                    ready = true;
                }
                Poll::Ready(Err(_)) => return Poll::Ready(Err(Fatal::Lost)),
            }
        }
        let answered = self.poll_deferred(cx, io);
        ready |= answered;
        let fills = pace.is_none() && self.can_fill() && io.split().1.is_empty();
        // Between two parts of long bodies, frames of the client are received. A shorter turn goes on immediately, unless
        // it took the time of deferred work.
        if ready && !fills && !(io.blocks() && (pace.is_some() || answered)) {
            return Poll::Ready(Ok(Woken::Progress));
        }
        ready |= fills;
        if fills && !io.blocks() && self.untried < TURNS_TO_TRY {
            self.untried += 1;
            return Poll::Ready(Ok(Woken::Progress));
        }
        self.untried = 0;
        let waits_for_response = !self.abandoned.is_empty()
            || self.streams.iter().any(|stream| matches!(stream.response, StreamResponse::Later(..)));
        let idle = self.places() == 0
            && self.block.is_none()
            && !matches!(self.rest.stage, Stage::Announced(_))
            && pace.is_none()
            && io.split().0.is_empty();
        let patience = match () {
            () if ready => Patience::Try,
            () if idle => Patience::Park,
            // A blocking driver has one wait at a time.
            () if io.blocks() && waits_for_response => Patience::Try,
            () => Patience::Wait,
        };
        let by = self.deadline(limits, pace.is_some(), io.split().0.is_empty());
        match io.poll_receive(cx, ROOM, patience, by) {
            Poll::Ready(Ok(Received::Bytes)) => ready = true,
            Poll::Ready(Ok(Received::Idle)) if patience == Patience::Park => {
                return Poll::Ready(Ok(Woken::Idle));
            }
            // A try ignores its deadline.
            Poll::Ready(Ok(Received::Idle)) if !ready && by <= now() => {
                return Poll::Ready(Ok(Woken::TimedOut));
            }
            Poll::Ready(Ok(Received::End)) if !ready && pace.is_none() && !waits_for_response => {
                return Poll::Ready(Ok(Woken::End));
            }
            // A request waits in the received bytes until other requests are answered, or a client that has ended its
            // output waits for its responses.
            Poll::Ready(Ok(Received::Full | Received::End)) if !ready => match io.poll_lost(cx, by) {
                Poll::Ready(IoError::TimedOut) => return Poll::Ready(Ok(Woken::TimedOut)),
                Poll::Ready(_) => return Poll::Ready(Err(Fatal::Lost)),
                Poll::Pending => {}
            },
            Poll::Ready(Ok(Received::Idle | Received::Full | Received::End)) | Poll::Pending => {}
            Poll::Ready(Err(IoError::TimedOut)) => return Poll::Ready(Ok(Woken::TimedOut)),
            Poll::Ready(Err(_)) => return Poll::Ready(Err(Fatal::Lost)),
        }
        if ready { Poll::Ready(Ok(Woken::Progress)) } else { Poll::Pending }
    }

    /// Polls deferred responses, and writes those that are ready. Returns whether there was one.
    fn poll_deferred<I: Io>(&mut self, cx: &mut Context<'_>, io: &mut I) -> bool {
        let mut ready = false;
        let mut index = 0;
        while index < self.streams.len() {
            let count = self.streams.len();
            if let StreamResponse::Later(deferred, _) = &mut self.streams[index].response
                && let Poll::Ready(response) = Pin::new(deferred).poll(cx)
            {
                ready = true;
                match self.drops_deferred() {
                    true => self.drop_stream(index, ErrorCode::ENHANCE_YOUR_CALM, io.split().1),
                    false => self.write_value(index, response, io.split().1),
                }
                // A blocking engine works during the poll: this response is sent before the next work.
                if io.blocks() {
                    break;
                }
            }
            // The next stream has the index of a removed stream.
            index += usize::from(self.streams.len() == count);
        }
        if ready {
            self.remove_finished(io.split().1);
        }
        let before = self.abandoned.len();
        self.abandoned.retain_mut(|work| Pin::new(&mut work.deferred).poll(cx).is_pending());
        ready || self.abandoned.len() < before
    }

    /// Returns the earliest deadline of a stream, of work that its stream has left, or of an open field block.
    fn work_deadline(&self) -> Instant {
        let streams = self.streams.iter().map(Stream::deadline);
        let abandoned = self.abandoned.iter().map(|work| work.by);
        let block = self.block.iter().map(|block| block.by);
        streams.chain(abandoned).chain(block).min().unwrap_or(Instant::NEVER)
    }

    /// Whether the last stream of a connection that leaves is complete.
    fn has_left(&self) -> bool {
        matches!(self.rest.stage, Stage::Leaving(_)) && self.streams.is_empty()
    }

    /// Returns the earliest deadline. A flush has its own.
    fn deadline(&self, limits: &Limits, flushes: bool, no_input: bool) -> Instant {
        let idle = match self.places() == 0 && !flushes {
            true if self.rest.requests == 0 => self.rest.last_use + limits.head_timeout,
            true if no_input => self.rest.last_use + limits.idle_timeout,
            // Drops of a frame do not prolong the idle time for ever.
            true => (now() + limits.head_timeout)
                .min(self.rest.last_use + limits.idle_timeout + limits.head_timeout),
            false => Instant::NEVER,
        };
        let announced = match self.rest.stage {
            Stage::Announced(by) => by,
            _ => Instant::NEVER,
        };
        self.work_deadline().min(idle).min(announced)
    }

    /// Processes a deadline that has passed.
    fn expire<I: Io>(&mut self, io: &mut I, service: &dyn Service, limits: &Limits) -> Result<(), Fatal> {
        let connection = &io.connection().clone();
        let server = Server { service, limits, connection };
        let time = now();
        if self.block.as_ref().is_some_and(|block| block.by <= time) {
            return Err(Fatal::GoAway(ErrorCode::ENHANCE_YOUR_CALM));
        }
        let before = self.abandoned.len();
        self.abandoned.retain(|work| work.by > time);
        let mut expired = self.abandoned.len() < before;
        let mut index = 0;
        while index < self.streams.len() {
            if self.streams[index].deadline() > time {
                index += 1;
                continue;
            }
            expired = true;
            index += usize::from(self.expire_stream(index, io.split().1, server));
        }
        self.remove_finished(io.split().1);
        match expired || !self.streams.is_empty() || matches!(self.rest.stage, Stage::Announced(_)) {
            true => Ok(()),
            // The connection is idle, or its next frame did not arrive in time.
            false => Err(Fatal::GoAway(ErrorCode::NO_ERROR)),
        }
    }

    /// Whether the preface is complete; it is consumed. Fails if the bytes are not the preface.
    pub(super) fn read_preface<I: Io>(&mut self, io: &mut I) -> Result<bool, Fatal> {
        let input = &*io.split().0;
        let length = input.len().min(PREFACE.len());
        if input[..length] != PREFACE[..length] {
            return Err(Fatal::GoAway(ErrorCode::PROTOCOL_ERROR));
        }
        if length < PREFACE.len() {
            return Ok(false);
        }
        io.consume(PREFACE.len());
        self.rest.stage = Stage::FirstSettings;
        Ok(true)
    }
}
