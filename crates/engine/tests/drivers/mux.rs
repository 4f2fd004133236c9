//! A protocol that needs both directions concurrently: several requests are in flight on one connection, their answers
//! come in pieces and out of order, and a window limits the server. A blocking driver alternates between both directions.
//!
//! A frame is its kind, the number of its stream, the length of its payload in two bytes, and the payload.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tenfold_engine::Protocol;
use tenfold_engine::offload::OffloadResult;
use tenfold_http::{Finish, Flushed, Instant, Io, IoError, Next, Out, Patience, Received, clock};
use tenfold_sys::shared::SharedRows;

/// From the client: a request for an answer of a number of bytes (4) after a number of milliseconds (2).
pub(crate) const ASK: u8 = 0;
/// From the client: a number of bytes (4) by which the window grows.
pub(crate) const GRANT: u8 = 1;
/// From the client: bytes that the server counts.
pub(crate) const NOISE: u8 = 2;
/// From the client: a request for the number of received bytes of noise. The server's answer has that number (4).
pub(crate) const COUNT: u8 = 3;
/// From the server: a piece of an answer.
pub(crate) const PIECE: u8 = 4;
/// From the server: the answer is complete.
pub(crate) const END: u8 = 5;
/// From the server: the client was silent for too long. Requested answers still follow.
pub(crate) const SILENCE: u8 = 6;
/// From the client: a request for two tries to receive, the second after [`TRIAL_PAUSE`]. From the server: their results.
pub(crate) const TRIAL: u8 = 7;
/// From the client, and back from the server: no request, so it does not prolong the time for which a connection is idle.
pub(crate) const PING: u8 = 8;
/// From the server: the last frame of an idle connection that the engine closes.
pub(crate) const FAREWELL: u8 = 9;
/// From the client: a request for the number of connections whose state was released. From the server: that number (8).
pub(crate) const RELEASED: u8 = 10;

/// The result of a try to receive.
pub(crate) const NOTHING: u8 = 0;
pub(crate) const BYTES: u8 = 1;
pub(crate) const ENDED: u8 = 2;

/// Milliseconds.
const TRIAL_PAUSE: u16 = 100;
/// The most receives in a row before the server sends.
const RECEIVES: usize = 256;

/// Bytes of answers that the client takes before its first grant.
pub(crate) const WINDOW: u32 = 16 * 1024;
/// Bytes of the largest frame.
const ROOM: usize = 4096;
const PIECE_BYTES: u32 = 1000;
/// The number of staged bytes at which the server adds no more.
const STAGED: u64 = 16 * 1024;
/// The length of each wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn frame(kind: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).expect("frames here are small").to_be_bytes();
    [&[kind, stream], &length[..], payload].concat()
}

pub(crate) fn ask(stream: u8, bytes: u32, milliseconds: u16) -> Vec<u8> {
    frame(ASK, stream, &[&bytes.to_be_bytes()[..], &milliseconds.to_be_bytes()].concat())
}

pub(crate) fn grant(bytes: u32) -> Vec<u8> {
    frame(GRANT, 0, &bytes.to_be_bytes())
}

/// Returns the byte at offset `at` of the answer of `stream`.
fn byte(stream: u8, at: u32) -> u8 {
    (at % 251) as u8 ^ stream.wrapping_mul(31)
}

/// The answers that a client has received so far.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Answers {
    /// Bytes of each stream.
    pub(crate) bytes: BTreeMap<u8, u32>,
    /// Streams in the order in which their answers were complete.
    pub(crate) ended: Vec<u8>,
    /// Streams in the order in which their pieces came.
    pub(crate) pieces: Vec<u8>,
    pub(crate) noise: Option<u32>,
    pub(crate) silences: usize,
    pub(crate) tries: Vec<u8>,
}

impl Answers {
    pub(crate) fn hear(&mut self, kind: u8, stream: u8, payload: &[u8]) {
        match kind {
            PIECE => {
                let at = self.bytes.entry(stream).or_default();
                let expected: Vec<_> = (*at..).map(|at| byte(stream, at)).take(payload.len()).collect();
                assert_eq!(payload, expected, "stream {stream} at {at}");
                *at += payload.len() as u32;
                self.pieces.push(stream);
            }
            END => self.ended.push(stream),
            COUNT => self.noise = Some(u32::from_be_bytes(payload.try_into().expect("four bytes"))),
            SILENCE => self.silences += 1,
            TRIAL => self.tries.extend(payload),
            other => panic!("a server sends no frame {other}"),
        }
    }

    /// Bytes of all streams.
    pub(crate) fn all(&self) -> u32 {
        self.bytes.values().sum()
    }
}

#[derive(Clone)]
pub(crate) struct Mux {
    /// The time after the last request in which an idle connection is closed.
    pub(crate) idle: Duration,
    /// The number of released states, which all processes of the server share.
    pub(crate) released: Arc<SharedRows>,
    /// Returns a future that is ready after a number of milliseconds.
    pub(crate) later: Arc<dyn Fn(u16) -> OffloadResult<()> + Send + Sync>,
}

/// The state of an idle connection.
#[derive(Debug)]
pub(crate) struct Memory {
    window: u32,
    noise: u32,
    /// Whether a request was answered.
    answered: bool,
    /// The deadline of the idle connection; `NEVER` before its first activation.
    idle_by: Instant,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory { window: WINDOW, noise: 0, answered: false, idle_by: Instant::NEVER }
    }
}

struct Stream {
    number: u8,
    at: u32,
    end: u32,
    /// The wait before the answer.
    later: Option<OffloadResult<()>>,
}

/// An activation.
struct Serving<'a> {
    mux: &'a Mux,
    memory: &'a mut Memory,
    streams: Vec<Stream>,
    /// Nothing more is received.
    over: bool,
    receive_by: Instant,
    /// Whether there is output that was not flushed.
    sending: bool,
    send_by: Instant,
    /// Bytes delivered when the wait for room began.
    delivered: u64,
    /// The result of the first try of a trial, and the pause after it.
    trial: Option<(Option<u8>, OffloadResult<()>)>,
}

impl Protocol for Mux {
    type State = Memory;

    fn serve<I: Io>(&self, io: &mut I, memory: &mut Memory) -> impl Future<Output = Next> {
        self.multiplex(io, memory)
    }

    fn serve_anywhere<I: Io + Send>(
        &self,
        io: &mut I,
        memory: &mut Memory,
    ) -> impl Future<Output = Next> + Send {
        self.multiplex(io, memory)
    }

    fn first_bytes_by(&self) -> Instant {
        clock::now() + PATIENCE
    }

    fn next_request_by(&self) -> Instant {
        clock::now() + self.idle
    }

    fn has_answered(memory: &Memory) -> bool {
        memory.answered
    }

    fn farewell(&self, memory: &mut Memory, out: &mut Out) {
        if memory.answered {
            out.stage(&frame(FAREWELL, 0, b""));
        }
    }

    fn release(&self, memory: Memory) {
        if memory.idle_by != Instant::NEVER {
            self.released.row(0)[0].fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Mux {
    pub(crate) async fn multiplex<I: Io>(&self, io: &mut I, memory: &mut Memory) -> Next {
        let by = clock::now() + PATIENCE;
        if memory.idle_by == Instant::NEVER {
            memory.idle_by = by;
        }
        let (mux, streams) = (self, Vec::new());
        let mut serving = Serving {
            mux,
            memory,
            streams,
            over: false,
            receive_by: by,
            sending: false,
            send_by: by,
            delivered: 0,
            trial: None,
        };
        let next = poll_fn(|cx| serving.poll(io, cx)).await;
        if next == Next::Close && io.split().1.is_empty() {
            poll_fn(|cx| io.poll_finish(cx, Finish::Close, clock::now() + PATIENCE)).await;
        }
        next
    }
}

impl Serving<'_> {
    /// Receives and sends until neither can continue, and then waits for bytes, for room and for answers.
    fn poll<I: Io>(&mut self, io: &mut I, cx: &mut Context<'_>) -> Poll<Next> {
        loop {
            if ready!(self.poll_trial(io, cx)).is_none() {
                return Poll::Ready(Next::Close);
            }
            let out = io.split().1;
            self.stage(out, cx);
            if !out.is_empty() && !std::mem::replace(&mut self.sending, true) {
                self.send_by = clock::now() + PATIENCE;
                self.delivered = io.delivered();
            }
            let mut moved = false;
            // A slice without room lasts, so bytes that have arrived are received before it.
            let mut left = if io.blocks() { RECEIVES } else { 1 };
            while left > 0 && !self.over && self.trial.is_none() {
                left -= 1;
                match self.receive(io, moved, cx) {
                    Poll::Ready(Some(next)) => return Poll::Ready(next),
                    Poll::Ready(None) => moved = true,
                    Poll::Pending => break,
                }
            }
            if self.sending {
                match self.flush(io, cx) {
                    Poll::Ready(Ok(())) => moved = true,
                    Poll::Ready(Err(_)) => return Poll::Ready(Next::Close),
                    Poll::Pending => {}
                }
            } else if self.over && self.streams.is_empty() && io.split().1.is_empty() {
                return Poll::Ready(Next::Close);
            }
            if !moved {
                return Poll::Pending;
            }
        }
    }

    /// Tries to receive, waits, and tries again. `None`: an invalid frame has come.
    fn poll_trial<I: Io>(&mut self, io: &mut I, cx: &mut Context<'_>) -> Poll<Option<()>> {
        let Some((first, pause)) = &mut self.trial else { return Poll::Ready(Some(())) };
        let first = *first.get_or_insert_with(|| attempt(io, cx));
        ready!(std::pin::Pin::new(pause).poll(cx));
        let second = attempt(io, cx);
        self.trial = None;
        let (bytes, out) = io.split();
        out.stage(&frame(TRIAL, 0, &[first, second]));
        let taken = self.take(bytes, out);
        Poll::Ready(taken.map(|count| io.consume(count)))
    }

    /// Sends a slice, until the peer accepts nothing before the deadline.
    fn flush<I: Io>(&mut self, io: &mut I, cx: &mut Context<'_>) -> Poll<Result<(), IoError>> {
        loop {
            match ready!(io.poll_send(cx, self.send_by)) {
                Ok(sent) => {
                    self.sending = sent == Flushed::Part;
                    return Poll::Ready(Ok(()));
                }
                Err(IoError::TimedOut) if io.delivered() > self.delivered => {
                    self.send_by = clock::now() + PATIENCE;
                    self.delivered = io.delivered();
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Receives and processes frames. `again`: after others, before anything is sent.
    fn receive<I: Io>(&mut self, io: &mut I, again: bool, cx: &mut Context<'_>) -> Poll<Option<Next>> {
        let idle = self.streams.is_empty() && !self.sending;
        let patience = match (self.sending || again) && io.blocks() {
            true => Patience::Try,
            false if idle => Patience::Park,
            false => Patience::Wait,
        };
        let by = if patience == Patience::Park { self.memory.idle_by } else { self.receive_by };
        let received = match io.poll_receive(cx, ROOM, patience, by) {
            Poll::Ready(received) => received,
            Poll::Pending => return Poll::Pending,
        };
        if patience == Patience::Try && received == Ok(Received::Idle) {
            return Poll::Pending;
        }
        self.receive_by = clock::now() + PATIENCE;
        match received {
            Ok(Received::Idle) => return Poll::Ready(Some(Next::Park(by))),
            // The engine closes the connection.
            Err(IoError::TimedOut) if patience == Patience::Park => return Poll::Ready(Some(Next::Park(by))),
            Ok(Received::Bytes | Received::Full) => {
                let (bytes, out) = io.split();
                let Some(count) = self.take(bytes, out) else { return Poll::Ready(Some(Next::Close)) };
                io.consume(count);
            }
            Ok(Received::End) => self.over = true,
            Err(IoError::TimedOut) => io.split().1.stage(&frame(SILENCE, 0, b"")),
            Err(_) => return Poll::Ready(Some(Next::Close)),
        }
        Poll::Ready(None)
    }

    /// Processes complete frames. Returns the number of their bytes, or `None` for an invalid frame.
    fn take(&mut self, bytes: &[u8], out: &mut Out) -> Option<usize> {
        let mut rest = bytes;
        while let [kind, stream, high, low, behind @ ..] = rest {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            let Some((payload, next)) = behind.split_at_checked(length) else { break };
            match (*kind, payload) {
                (ASK, &[a, b, c, d, e, f]) => self.streams.push(Stream {
                    number: *stream,
                    at: 0,
                    end: u32::from_be_bytes([a, b, c, d]),
                    later: Some((self.mux.later)(u16::from_be_bytes([e, f]))),
                }),
                (GRANT, &[a, b, c, d]) => self.memory.window += u32::from_be_bytes([a, b, c, d]),
                (NOISE, noise) => self.memory.noise += noise.len() as u32,
                (PING, []) => out.stage(&frame(PING, 0, b"")),
                (RELEASED, []) => {
                    let count = self.mux.released.row(0)[0].load(Ordering::Relaxed);
                    out.stage(&frame(RELEASED, 0, &count.to_be_bytes()));
                }
                (TRIAL, []) => self.trial = Some((None, (self.mux.later)(TRIAL_PAUSE))),
                (COUNT, []) => out.stage(&frame(COUNT, 0, &self.memory.noise.to_be_bytes())),
                _ => return None,
            }
            rest = next;
        }
        Some(bytes.len() - rest.len())
    }

    /// Stages a piece of each answer in turn, up to the window.
    fn stage(&mut self, out: &mut Out, cx: &mut Context<'_>) {
        let mut more = true;
        while std::mem::take(&mut more) {
            self.streams.retain_mut(|stream| {
                if let Some(later) = &mut stream.later {
                    match std::pin::Pin::new(later).poll(cx) {
                        Poll::Ready(_) => stream.later = None,
                        Poll::Pending => return true,
                    }
                }
                let count = PIECE_BYTES.min(stream.end - stream.at).min(self.memory.window);
                if count > 0 && out.len() < STAGED {
                    let piece: Vec<_> =
                        (stream.at..stream.at + count).map(|at| byte(stream.number, at)).collect();
                    out.stage(&frame(PIECE, stream.number, &piece));
                    stream.at += count;
                    self.memory.window -= count;
                    more = true;
                }
                if stream.at == stream.end {
                    out.stage(&frame(END, stream.number, b""));
                    self.memory.answered = true;
                    self.memory.idle_by = clock::now() + self.mux.idle;
                }
                stream.at < stream.end
            });
        }
    }
}

/// Tries to receive.
fn attempt<I: Io>(io: &mut I, cx: &mut Context<'_>) -> u8 {
    match io.poll_receive(cx, ROOM, Patience::Try, Instant(0)) {
        Poll::Ready(Ok(Received::Idle)) => NOTHING,
        Poll::Ready(Ok(Received::Bytes | Received::Full)) => BYTES,
        Poll::Ready(Ok(Received::End)) => ENDED,
        other => panic!("a try returns {other:?}"),
    }
}
