//! The half of a connection that receives: what comes is read, judged and timed.

use std::io;

use tenfold_sys::clock;

use super::{Connection, Progress, Shared};
use crate::connection::judge::{Fault, fault_of, shown};
use crate::measure::record::ErrorKind;
use crate::message::response::Response;

/// A body that is longer than this is thrown away in the kernel, where nothing has to be looked at.
const SKIP: u64 = 64 << 10;
/// Bytes thrown away at once.
const MOST_SKIPPED: u64 = 4 << 20;

impl Connection {
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
            let skip = self.to_throw_away();
            let skips = skip.is_some();
            let most_now = left.min(skip.unwrap_or(shared.buffer.len()));
            let result = match skips {
                true => socket.discard(most_now),
                false => socket.receive(&mut shared.buffer[..most_now]),
            };
            *now = clock::monotonic();
            match result {
                Ok(0) => return self.end(shared, *now),
                Ok(count) => {
                    left -= count;
                    match skips {
                        true => self.thrown_away(count, shared, *now),
                        false => self.take_in(count, shared, *now)?,
                    }
                    let whole = self.flights.is_empty() && self.reader.is_fresh();
                    if whole && (!self.persistent || !ended) {
                        return Ok(if self.persistent { Progress::All } else { Progress::Over });
                    }
                    if self.is_over() {
                        return Ok(Progress::Over);
                    }
                    if count < most_now && !ended {
                        return Ok(Progress::All);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Progress::Blocked),
                Err(error) => return self.broken(&error),
            }
        }
    }

    /// Bytes that may be thrown away in the kernel next; none where what comes is to be looked at.
    pub(crate) fn to_throw_away(&self) -> Option<usize> {
        let skip = if self.skips { self.reader.to_skip() } else { 0 };
        (skip > SKIP).then_some(skip.min(MOST_SKIPPED) as usize)
    }

    /// So many bytes came and were thrown away.
    pub(crate) fn thrown_away(&mut self, count: usize, shared: &mut Shared<'_>, now: u64) {
        shared.recorder.received(count);
        let done = self.reader.skipped(count as u64);
        done.into_iter().for_each(|response| self.answered(&response, shared, now));
    }

    /// Whether the answers so far were its last ones, and nothing of another has come.
    pub(crate) fn is_over(&self) -> bool {
        !self.persistent && self.reader.is_fresh()
    }

    /// Receiving failed. Of a connection on which nothing is asked a reset is an end, however rude.
    ///
    /// # Errors
    /// What went wrong, where something is asked.
    pub(crate) fn broken(&self, error: &io::Error) -> Result<Progress, Fault> {
        let asked = self.flights.iter().any(|flight| flight.sent > 0);
        if asked { Err(fault_of(error)) } else { Ok(Progress::Over) }
    }

    fn take_in(&mut self, count: usize, shared: &mut Shared<'_>, now: u64) -> Result<(), Fault> {
        let buffer = std::mem::take(&mut shared.buffer);
        let result = self.arrived(&buffer[..count], shared, now);
        shared.buffer = buffer;
        result
    }

    /// These bytes came.
    ///
    /// # Errors
    /// What is wrong with them.
    #[inline]
    pub(crate) fn arrived(&mut self, bytes: &[u8], shared: &mut Shared<'_>, now: u64) -> Result<(), Fault> {
        shared.recorder.received(bytes.len());
        self.read(bytes, shared, now)
            .map_err(|why| Fault { kind: ErrorKind::Malformed, said: why.to_owned() })
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
        // An answer to a request that is not written whole: the rest of it cannot follow.
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
    ///
    /// # Errors
    /// When an answer was asked for, and is not whole.
    pub(crate) fn end(&mut self, shared: &mut Shared<'_>, now: u64) -> Result<Progress, Fault> {
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
}
