//! A connection: requests go out, answers come in, and each answer is judged and timed.
//!
//! The one state machine for every shape of load. It makes no decision about when to ask; it sends what it was
//! given ([`Connection::begin`]) and says when it can go on. Sockets are non-blocking and edge-triggered: a
//! send is tried at once, and a receive that did not fill its buffer has emptied the socket.

use std::collections::VecDeque;
use std::io;

use tenfold_sys::clock;
use tenfold_sys::socket::Socket;

use crate::expect::Expect;
use crate::fault::{Fault, fault_of, shown};
use crate::record::ErrorKind;
use crate::recorder::Recorder;
use crate::request::Image;
use crate::response::{Asked, Known, Reader, Response};

/// A body that is longer than this is thrown away in the kernel, where nothing has to be looked at.
const SKIP: u64 = 64 << 10;
/// Bytes thrown away at once.
const MOST_SKIPPED: u64 = 4 << 20;

/// What the connections of a worker share.
pub(crate) struct Shared<'a> {
    pub(crate) images: &'a [Image],
    pub(crate) asked: Asked,
    pub(crate) expect: &'a Expect,
    pub(crate) known: Vec<Known>,
    pub(crate) buffer: Box<[u8]>,
    pub(crate) gathered: Vec<u8>,
    pub(crate) recorder: Recorder,
    /// Requests that were begun on measured connections and have not ended.
    pub(crate) pending: u64,
}

/// A request between its begin and its end.
#[derive(Clone, Copy, Debug)]
struct Flight {
    due: u64,
    /// When its first byte was sent; 0 until then.
    sent: u64,
    /// When the first byte of its answer came; 0 until then.
    first: u64,
    target: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Closed,
    /// Since when.
    Connecting(u64),
    Open,
}

/// How far a send or a receive came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All that there was.
    All,
    /// The kernel will say when it goes on.
    Blocked,
    /// As much as was allowed.
    Limited,
    /// The connection can not be used any more, in good order.
    Over,
}

/// A place for one connection after the other.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    socket: Option<Socket>,
    pub(crate) state: State,
    reader: Reader,
    flights: VecDeque<Flight>,
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

impl Connection {
    /// One that is closed, and whose latencies count or not.
    pub(crate) fn new(measured: bool) -> Connection {
        Connection { measured, ..Connection::default() }
    }

    /// Whether its latencies count.
    pub(crate) fn is_measured(&self) -> bool {
        self.measured
    }

    /// A new socket, not known to be connected.
    pub(crate) fn connect(&mut self, socket: Socket, is_tcp: bool, now: u64) {
        self.socket = Some(socket);
        self.skips = is_tcp;
        self.persistent = true;
        self.state = State::Connecting(now);
        self.reader = Reader::default();
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
    pub(crate) fn begin(&mut self, due: u64, target: u32, shared: &mut Shared<'_>) {
        self.begun += 1;
        shared.pending += u64::from(self.measured);
        self.flights.push_back(Flight { due, sent: 0, first: 0, target });
    }

    /// Requests that were begun and have not ended.
    #[inline]
    pub(crate) fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Whether a request is left to be sent.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        self.written < self.flights.len()
    }

    /// Since when the oldest request that was sent has waited.
    pub(crate) fn waiting_since(&self) -> Option<u64> {
        self.flights.front().map(|flight| flight.sent).filter(|sent| *sent > 0)
    }

    /// Whether it can make more requests.
    pub(crate) fn is_persistent(&self) -> bool {
        self.persistent
    }

    /// Sends what waits, at most `most` bytes of it.
    ///
    /// # Errors
    /// What `send(2)` says.
    #[inline]
    pub(crate) fn flush(&mut self, shared: &mut Shared<'_>, now: u64, most: usize) -> io::Result<Progress> {
        let mut left = most;
        while self.has_unsent() {
            let Some(socket) = &self.socket else { return Ok(Progress::Blocked) };
            let bytes = pieces(&self.flights, self.written, self.offset, shared.images, &mut shared.gathered);
            let bytes = &bytes[..bytes.len().min(left)];
            if bytes.is_empty() {
                return Ok(Progress::Limited);
            }
            let asked = bytes.len();
            match socket.send(bytes, false) {
                Ok(count) => {
                    left -= count;
                    self.advance(count, shared, now);
                    if count < asked {
                        return Ok(Progress::Blocked);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Progress::Blocked),
                Err(error) => return Err(error),
            }
        }
        Ok(Progress::All)
    }

    #[inline]
    fn advance(&mut self, count: usize, shared: &mut Shared<'_>, now: u64) {
        let (mut rest, mut begun) = (self.offset + count, 0);
        while let Some(flight) = self.flights.get_mut(self.written).filter(|_| rest > 0) {
            if flight.sent == 0 {
                flight.sent = now;
                begun += 1;
            }
            let length = shared.images[flight.target as usize].length();
            if rest < length {
                break;
            }
            rest -= length;
            self.written += 1;
        }
        self.offset = rest;
        if self.measured && begun > 0 {
            shared.recorder.sent(now, begun);
        }
    }

    /// Receives what there is, at most `most` bytes of it; `ended` says that the server has ended its output,
    /// so that it is to be read to the end. Leaves the time in `now`.
    ///
    /// # Errors
    /// What went wrong, with the answer or the connection.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        shared: &mut Shared<'_>,
        now: &mut u64,
        ended: bool,
        most: usize,
    ) -> Result<Progress, Fault> {
        let mut left = most;
        loop {
            if left == 0 {
                return Ok(Progress::Limited);
            }
            let Some(socket) = &self.socket else { return Ok(Progress::Over) };
            let skip = if self.skips { self.reader.to_skip() } else { 0 };
            let skips = skip > SKIP;
            let most_now =
                left.min(if skips { skip.min(MOST_SKIPPED) as usize } else { shared.buffer.len() });
            let result = match skips {
                true => socket.discard(most_now),
                false => socket.receive(&mut shared.buffer[..most_now]),
            };
            *now = clock::monotonic();
            match result {
                Ok(0) => return self.end(shared, *now),
                Ok(count) => {
                    left -= count;
                    shared.recorder.received(count);
                    match skips {
                        true => {
                            let done = self.reader.skipped(count as u64);
                            done.into_iter().for_each(|response| self.answered(&response, shared, *now));
                        }
                        false => self.take_in(count, shared, *now)?,
                    }
                    let whole = self.flights.is_empty() && self.reader.is_fresh();
                    if whole && (!self.persistent || !ended) {
                        return Ok(if self.persistent { Progress::All } else { Progress::Over });
                    }
                    if !self.persistent && self.reader.is_fresh() {
                        return Ok(Progress::Over);
                    }
                    if count < most_now && !ended {
                        return Ok(Progress::All);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Progress::Blocked),
                Err(error) if self.flights.iter().all(|flight| flight.sent == 0) => {
                    // A reset of a connection on which nothing is asked is an end of it, however rude.
                    let _ = error;
                    return Ok(Progress::Over);
                }
                Err(error) => return Err(fault_of(&error)),
            }
        }
    }

    fn take_in(&mut self, count: usize, shared: &mut Shared<'_>, now: u64) -> Result<(), Fault> {
        let buffer = std::mem::take(&mut shared.buffer);
        let result = self.read(&buffer[..count], shared, now);
        shared.buffer = buffer;
        result.map_err(|why| Fault { kind: ErrorKind::Malformed, said: why.to_owned() })
    }

    #[inline]
    fn read(&mut self, bytes: &[u8], shared: &mut Shared<'_>, now: u64) -> Result<(), &'static str> {
        let mut at = 0;
        while at < bytes.len() && self.persistent {
            match self.flights.front_mut() {
                Some(flight) if flight.sent > 0 => {
                    if flight.first == 0 {
                        flight.first = now;
                    }
                    let known = &mut shared.known[flight.target as usize];
                    let (used, done) = self.reader.feed(&bytes[at..], shared.asked, known)?;
                    at += used;
                    if let Some(response) = done {
                        self.answered(&response, shared, now);
                    }
                }
                // A server that gives up on an idle connection may say so in an answer nobody asked for.
                _ => self.persistent = false,
            }
        }
        Ok(())
    }

    #[inline]
    fn answered(&mut self, response: &Response, shared: &mut Shared<'_>, now: u64) {
        let Some(flight) = self.flights.pop_front() else { return };
        // An answer to a request that is not written whole: the rest of it can not follow.
        self.persistent = response.persistent && self.written > 0;
        if self.written > 0 {
            self.written -= 1;
        } else {
            self.offset = 0;
        }
        let judged = shared.expect.judge(response);
        self.answers += u64::from(judged.is_ok());
        self.responses += 1;
        if !self.measured {
            shared.recorder.record.connections.slow_answers += u64::from(judged.is_ok());
            return;
        }
        shared.pending -= 1;
        shared.recorder.landed(now, 1);
        match judged {
            Ok(()) => shared.recorder.answered(flight.due, flight.sent, flight.first, now),
            Err(kind) => {
                shared.recorder.record.lost_time += now - flight.sent;
                shared.recorder.record.fail(kind, 1, || shown(kind, response));
            }
        }
    }

    /// The server has ended the connection.
    fn end(&mut self, shared: &mut Shared<'_>, now: u64) -> Result<Progress, Fault> {
        let asked = self.flights.front().is_some_and(|flight| flight.sent > 0);
        match self.reader.end() {
            Ok(Some(response)) => {
                self.answered(&response, shared, now);
                Ok(Progress::Over)
            }
            Ok(None) if asked && self.persistent => {
                Err(Fault { kind: ErrorKind::Closed, said: "the connection ended before the answer".into() })
            }
            Ok(None) => Ok(Progress::Over),
            Err(why) => Err(Fault { kind: ErrorKind::Closed, said: why.to_owned() }),
        }
    }

    /// Closes it. With a fault, the requests that were sent have failed; without, those that were sent and will
    /// not be answered on this connection wait to be sent on the next (RFC 9112 §9.3.2).
    pub(crate) fn close(&mut self, shared: &mut Shared<'_>, now: u64, fault: Option<&Fault>) {
        if self.socket.take().is_none() {
            return;
        }
        shared.recorder.closed();
        let sent = self.flights.iter().filter(|flight| flight.sent > 0).count();
        if self.measured {
            shared.recorder.landed(now, sent as u64);
        }
        match fault {
            Some(fault) => {
                // What could not even be sent has failed with a connection that was never made.
                let lost = if matches!(self.state, State::Connecting(_)) { self.flights.len() } else { sent };
                self.fail(lost, shared, now, fault);
            }
            None => self.flights.iter_mut().for_each(|flight| (flight.sent, flight.first) = (0, 0)),
        }
        (self.written, self.offset) = (0, 0);
        self.begun = self.flights.len() as u64;
        self.state = State::Closed;
        self.reader = Reader::default();
    }

    /// The first `count` requests have failed.
    pub(crate) fn fail(&mut self, count: usize, shared: &mut Shared<'_>, now: u64, fault: &Fault) {
        let lost = self.flights.drain(..count);
        if self.measured && count > 0 {
            shared.pending -= count as u64;
            let waited = lost.map(|flight| if flight.sent > 0 { now.saturating_sub(flight.sent) } else { 0 });
            shared.recorder.record.lost_time += waited.sum::<u64>();
            shared.recorder.record.fail(fault.kind, count as u64, || fault.said.clone());
        }
    }

    /// Writes down what has no answer at the end of the run.
    pub(crate) fn abandon(&mut self, shared: &mut Shared<'_>, now: u64) {
        let record = &mut shared.recorder.record;
        for flight in &self.flights {
            record.unfinished += 1;
            record.longest_wait = record.longest_wait.max(now.saturating_sub(flight.due));
            if flight.sent > 0 {
                record.lost_time += now.saturating_sub(flight.sent);
            }
        }
    }
}

/// The bytes to send next: of the first request that waits, and of all behind it as far as they lie there in
/// one piece.
#[inline]
fn pieces<'a>(
    flights: &VecDeque<Flight>,
    written: usize,
    offset: usize,
    images: &'a [Image],
    gathered: &'a mut Vec<u8>,
) -> &'a [u8] {
    const ENOUGH: usize = 64 << 10;
    let waiting = flights.len() - written;
    let first = &images[flights[written].target as usize];
    if waiting == 1 || images.len() == 1 {
        return first.piece(offset, waiting.min(first.copies()));
    }
    gathered.clear();
    let mut skip = offset;
    for flight in flights.range(written..) {
        gathered.extend_from_slice(images[flight.target as usize].piece(skip, 1));
        skip = 0;
        if gathered.len() >= ENOUGH {
            break;
        }
    }
    gathered
}
