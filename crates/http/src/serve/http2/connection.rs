//! The loop of a connection: frames in, responses out, and the waits between them.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use arrayvec::ArrayVec;
use tenfold_wire::frame::{ErrorCode, FrameHeader, MOST_31_BITS, PREFACE, Setting, write};
use tenfold_wire::hpack::{self, Block, Decoder, FieldList, ListLimits};

use super::stream::{Abandoned, Stream, StreamResponse, now};
use crate::clock::Instant;
use crate::io::{Finish, Flushed, Io, IoError, Patience, Received};
use crate::limits::Limits;
use crate::mux::account::Account;
use crate::mux::schedule::{self, Ready};
use crate::out::Out;
use crate::serve::session::{Next, Pace, finish};
use crate::service::{GoAwayClass, Http2Counts, Service};

/// The window of a connection and of a stream at its start (§6.9.2).
pub(super) const INITIAL_WINDOW: i64 = 65_535;

/// The bytes of output that a turn fills with DATA: four whole frames.
const QUANTUM: u64 = 64 * 1024;

/// The turns without a wait after which a driver that does not block tries to receive. A try costs a call.
const TURNS_TO_TRY: u8 = 4;

/// The requests that a turn answers.
pub(super) const REQUESTS_AT_ONCE: usize = 32;

/// The bytes of waiting requests and copied bodies that all streams of a connection hold together, besides
/// [`STREAM_MEMORY`] of each.
const MOST_HELD: usize = 64 * 1024;

/// The bytes of a stream that count with the stream itself.
const STREAM_MEMORY: usize = 1024;

/// The longest frame that we accept: the initial SETTINGS_MAX_FRAME_SIZE (§6.5.2).
pub(super) const MOST_FRAME: u32 = 16_384;

/// The most content of a frame that we send: with its header it fills one TLS record.
const MOST_DATA: u64 = 16_384 - FrameHeader::LENGTH as u64;

/// The most received bytes that the connection holds: a frame, and the beginning of the next.
const ROOM: usize = FrameHeader::LENGTH + MOST_FRAME as usize;

/// The content of the PING after the announcement of the end.
pub(super) const FAREWELL: [u8; 8] = *b"farewell";

/// The longest wait for the answer to this PING.
const FAREWELL_TIME: Duration = Duration::from_secs(1);

/// The state of a connection without streams.
#[derive(Debug)]
pub(crate) struct Rest {
    pub(super) decoder: Decoder,
    pub(super) encoder: hpack::Encoder,
    /// The peer's SETTINGS_INITIAL_WINDOW_SIZE and SETTINGS_MAX_FRAME_SIZE.
    pub(super) peer_window: i64,
    pub(super) peer_frame: u32,
    pub(super) send_window: i64,
    pub(super) receive_window: i64,
    /// Received bytes that no WINDOW_UPDATE has returned.
    pub(super) due: u32,
    /// The last stream of the peer.
    pub(super) last_stream: u32,
    pub(super) requests: u32,
    pub(super) account: Account,
    pub(super) stage: Stage,
    /// Whether weights of RFC 7540 mean priorities.
    pub(super) weights: bool,
    /// The time of the last request or the end of its response, or of the begin.
    pub(super) last_use: Instant,
}

/// The stage of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The client's preface is not complete.
    Preface,
    /// The first frame must be SETTINGS (§3.4).
    FirstSettings,
    Open,
    /// A GOAWAY with 2^31-1 was sent, and a PING after it. The answer, or this time, fixes the last stream.
    Announced(Instant),
    /// A GOAWAY with the last stream was sent: new streams are ignored.
    Leaving,
}

impl Rest {
    fn new(now: Instant) -> Rest {
        Rest {
            decoder: Decoder::new(),
            encoder: hpack::Encoder::new(),
            peer_window: INITIAL_WINDOW,
            peer_frame: MOST_FRAME,
            send_window: INITIAL_WINDOW,
            receive_window: INITIAL_WINDOW,
            due: 0,
            last_stream: 0,
            requests: 0,
            account: Account::new(now),
            stage: Stage::Preface,
            weights: true,
            last_use: now,
        }
    }
}

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
    /// The values of PRIORITY_UPDATE frames that came before their streams.
    pub(super) early: Vec<(u32, Vec<u8>)>,
    /// The streams that we reset last, whose further frames are ignored.
    pub(super) reset: ArrayVec<u32, 16>,
    /// The frames that are not reported to the service.
    pub(super) counts: Http2Counts,
    /// The number of turns in which a stream has sent.
    turns: u64,
    /// The turns since the last try to receive.
    untried: u8,
    /// Requests that may still be answered in this turn.
    pub(super) requests_left: usize,
    /// Whether a response is complete since the last flush: the idle time begins after its last byte.
    answered: bool,
}

/// The beginning of a field block.
pub(super) struct OpenBlock {
    pub(super) stream: u32,
    pub(super) end_stream: bool,
    pub(super) weight: Option<u16>,
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
            let last = rest.last_stream;
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
            early: Vec::new(),
            reset: ArrayVec::new(),
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
        self.early.clear();
        self.reset.clear();
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
            self.fill(io, limits);
            if self.rest.stage == Stage::Leaving && self.streams.is_empty() && io.split().1.is_empty() {
                return Ok(finish(io, limits, Finish::Linger).await);
            }
            // A layer empties the output before the driver has sent it, so only the end of a flush ends a pace.
            if pace.is_none() && !io.split().1.is_empty() {
                pace = Some(Pace::begin(limits.send_timeout, limits.min_rate, None));
            }
            let woken = poll_fn(|cx| self.poll(cx, io, limits, more, &mut pace)).await?;
            match woken {
                Woken::Progress => {}
                Woken::Idle => return Ok(Next::Park(self.rest.last_use + limits.idle_timeout)),
                Woken::End => return Ok(finish(io, limits, Finish::Close).await),
                Woken::TimedOut => self.expire(io, service)?,
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
            match sent {
                Poll::Pending => {}
                Poll::Ready(Ok(Flushed::All)) => {
                    *pace = None;
                    if std::mem::take(&mut self.answered) {
                        self.rest.last_use = now();
                    }
                    // Frames in hand may have waited for room in the output.
                    ready |= !io.split().0.is_empty();
                    ready |= self.rest.stage == Stage::Leaving && self.streams.is_empty();
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
        ready |= self.poll_deferred(cx, io);
        let fills = self.can_fill() && io.split().1.is_empty();
        // Between two parts of long bodies, frames of the client are received. A shorter turn goes on at once.
        if ready && !fills && !(io.blocks() && pace.is_some()) {
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
            && self.early.is_empty()
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
            // A request waits in the received bytes until other requests are answered.
            Poll::Ready(Ok(Received::Full)) if !ready => match io.poll_lost(cx, by) {
                Poll::Ready(IoError::TimedOut) => return Poll::Ready(Ok(Woken::TimedOut)),
                Poll::Ready(_) => return Poll::Ready(Err(Fatal::Lost)),
                Poll::Pending => {}
            },
            Poll::Ready(Ok(Received::Idle | Received::Full)) | Poll::Pending => {}
            Poll::Ready(Ok(Received::End)) if !ready => {
                // A client that ends its output still receives its responses.
                return match self.streams.is_empty() && io.split().1.is_empty() {
                    true => Poll::Ready(Ok(Woken::End)),
                    false if waits_for_response || pace.is_some() => Poll::Pending,
                    false => Poll::Ready(Ok(Woken::End)),
                };
            }
            Poll::Ready(Ok(Received::End)) => {}
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
            if let StreamResponse::Later(deferred, _) = &mut self.streams[index].response
                && let Poll::Ready(response) = Pin::new(deferred).poll(cx)
            {
                ready = true;
                self.write_value(index, response, io.split().1);
            }
            index += 1;
        }
        if ready {
            self.remove_finished(io.split().1);
        }
        let before = self.abandoned.len();
        self.abandoned.retain_mut(|work| Pin::new(&mut work.deferred).poll(cx).is_pending());
        ready || self.abandoned.len() < before
    }

    /// Returns the earliest deadline. A flush has its own.
    fn deadline(&self, limits: &Limits, flushes: bool, no_input: bool) -> Instant {
        let streams = self.streams.iter().map(Stream::deadline);
        let abandoned = self.abandoned.iter().map(|work| work.by);
        let streams = streams.chain(abandoned).min().unwrap_or(Instant::NEVER);
        let block = self.block.as_ref().map_or(Instant::NEVER, |block| block.by);
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
        streams.min(block).min(idle).min(announced)
    }

    /// The places of [`Limits::max_streams`] that are taken.
    pub(super) fn places(&self) -> usize {
        self.streams.len() + self.abandoned.len()
    }

    /// Whether new requests wait, because the streams hold [`MOST_HELD`] until their work is done or their bodies are
    /// sent. Neither needs a frame of the client.
    pub(super) fn defers_requests(&self) -> bool {
        self.held(false).0 > MOST_HELD
    }

    /// Whether a new request is refused, because the streams hold [`MOST_HELD`] until the client sends content or widens
    /// a window. A single body of any size does not count.
    pub(super) fn refuses_requests(&self) -> bool {
        let (all, largest) = self.held(true);
        all - largest > MOST_HELD
    }

    /// The bytes that streams hold, and the most bytes of a single stream: of all streams, or of streams that do not
    /// wait for the client.
    fn held(&self, is_all: bool) -> (usize, usize) {
        let window = self.rest.send_window;
        let waits = |stream: &&Stream| is_all || !stream.waits_for_client(window);
        let streams = self.streams.iter().filter(waits).map(Stream::held);
        let held = streams.chain(self.abandoned.iter().map(|work| work.request));
        held.fold((0, 0), |(all, largest), held| {
            let held = held.saturating_sub(STREAM_MEMORY);
            (all + held, largest.max(held))
        })
    }

    /// Removes a stream that either side has reset, and returns the price of the reset. Work that has begun keeps its
    /// place until it is done.
    pub(super) fn abandon(&mut self, index: usize) -> u32 {
        let stream = self.streams.remove(index);
        match stream.response {
            StreamResponse::Later(deferred, by) if deferred.has_begun() => {
                let Stream { request, kept_content, .. } = stream;
                self.abandoned.push(Abandoned { deferred, by, request, kept_content });
                Account::ABANDONED
            }
            StreamResponse::Later(..) => Account::ABANDONED,
            _ => Account::RESET,
        }
    }

    /// Whether a stream can send.
    fn can_fill(&self) -> bool {
        self.rest.send_window > 0 && self.streams.iter().any(Stream::can_send)
    }

    /// Fills the output with DATA by the priorities of the streams.
    fn fill<I: Io>(&mut self, io: &mut I, limits: &Limits) {
        // The stream whose file was checked: a file that has become shorter resets its stream.
        let mut checked = None;
        while self.rest.send_window > 0 {
            let ready = self.streams.iter().map(|stream| {
                stream.can_send().then_some(Ready { priority: stream.priority, last_turn: stream.last_turn })
            });
            let Some(index) = schedule::next(ready) else { break };
            let stream = &mut self.streams[index];
            if checked != Some(stream.id)
                && let Some((file, range)) = stream.body.next_file()
                && !io.holds(file, range.end.min(range.start + QUANTUM))
            {
                let id = stream.id;
                self.streams.remove(index);
                self.reset_stream(id, ErrorCode::INTERNAL_ERROR, io.split().1);
                continue;
            }
            checked = Some(stream.id);
            let out = io.split().1;
            let windows = stream.send_window.min(self.rest.send_window).unsigned_abs();
            let length = stream.body.len();
            let count = length.min(windows).min(MOST_DATA).min(u64::from(self.rest.peer_frame));
            let is_last = count == length;
            let filled = out.len() + FrameHeader::LENGTH as u64 + count;
            if filled > QUANTUM && !out.is_empty() {
                break;
            }
            self.turns += 1;
            stream.last_turn = self.turns;
            out.stage_by(|bytes| write::data_header(stream.id, count as u32, is_last, bytes));
            stream.body.take_front(count, out);
            stream.send_window -= count.cast_signed();
            self.rest.send_window -= count.cast_signed();
            for (at, stream) in self.streams.iter_mut().enumerate() {
                if at == index || stream.send_window > 0 {
                    stream.progress += count;
                }
            }
            if is_last {
                self.finish_stream(index, out);
            }
        }
        let window = self.rest.send_window;
        self.streams.iter_mut().for_each(|stream| stream.note_stall(limits, window));
    }

    /// Removes a stream whose response is complete in the output. A client that still sends content is told to stop
    /// (§8.1).
    pub(super) fn finish_stream(&mut self, index: usize, out: &mut Out) {
        let mut stream = self.streams.remove(index);
        // Observers after the last byte.
        stream.body.take_front(0, out);
        if stream.content.open {
            self.reset_stream(stream.id, ErrorCode::NO_ERROR, out);
        }
        self.end_response();
    }

    /// Records that a response is complete in the output.
    pub(super) fn end_response(&mut self) {
        self.rest.account.pay();
        self.answered = true;
    }

    /// Sends RST_STREAM. The client may send frames before it receives it.
    pub(super) fn reset_stream(&mut self, id: u32, code: ErrorCode, out: &mut Out) {
        out.stage_by(|bytes| write::reset_stream(id, code, bytes));
        self.counts.server_resets += u32::from(code != ErrorCode::NO_ERROR);
        if self.reset.is_full() {
            self.reset.remove(0);
        }
        self.reset.push(id);
    }

    /// Whether we reset this stream lately.
    pub(super) fn was_reset(&self, id: u32) -> bool {
        self.reset.contains(&id)
    }

    /// Removes the streams whose responses are complete.
    pub(super) fn remove_finished(&mut self, out: &mut Out) {
        let mut index = 0;
        while index < self.streams.len() {
            let stream = &self.streams[index];
            match matches!(stream.response, StreamResponse::Sending) && !stream.body.has_bytes() {
                true => self.finish_stream(index, out),
                false => index += 1,
            }
        }
    }

    /// Announces the end of a connection that has had all its requests, and fixes the last stream in time.
    fn leave<I: Io>(&mut self, io: &mut I, limits: &Limits) {
        let last = limits.requests_per_connection.is_some_and(|most| self.rest.requests >= most);
        match self.rest.stage {
            Stage::Open if last => self.announce_end(io.split().1),
            Stage::Announced(by) if by <= now() => self.fix_last_stream(io.split().1),
            _ => {}
        }
    }

    /// Announces that the connection ends. The client stops making requests, and its answer to the PING follows all of
    /// them (§6.8).
    fn announce_end(&mut self, out: &mut Out) {
        self.rest.stage = Stage::Announced(now() + FAREWELL_TIME);
        out.stage_by(|bytes| {
            write::goaway(MOST_31_BITS, ErrorCode::NO_ERROR, b"", bytes);
            write::ping(FAREWELL, false, bytes);
        });
    }

    /// Sends the GOAWAY after which the client's new streams are ignored (§6.8).
    pub(super) fn fix_last_stream(&mut self, out: &mut Out) {
        let last_stream = self.rest.last_stream;
        out.stage_by(|bytes| write::goaway(last_stream, ErrorCode::NO_ERROR, b"", bytes));
        self.counts.goaway = Some(GoAwayClass::NoError);
        self.rest.stage = Stage::Leaving;
    }

    /// Processes a deadline that has passed.
    fn expire<I: Io>(&mut self, io: &mut I, service: &dyn Service) -> Result<(), Fatal> {
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
            index += usize::from(self.expire_stream(index, io, service));
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
