//! The half of a connection that receives: what comes is read, judged and timed.

use std::io;

use tenfold_sys::clock;

use super::{ClientConnection, IoProgress, WorkerContext};
use crate::connection::judge::{ExchangeError, exchange_error, shown};
use crate::measure::record::ErrorKind;
use crate::message::response::ReceivedResponse;

/// A body that is longer than this is thrown away in the kernel, where nothing has to be looked at.
const SKIP: u64 = 64 << 10;
/// Bytes thrown away at once.
const MOST_SKIPPED: u64 = 4 << 20;

impl ClientConnection {
    /// Receives what there is, at most `most` bytes of it; `ended` says that the server has ended its output,
    /// so that it is to be read to the end. Leaves the time in `now`.
    ///
    /// # Errors
    /// What went wrong, with the answer or the connection.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        context: &mut WorkerContext<'_>,
        now: &mut u64,
        ended: bool,
        most: usize,
    ) -> Result<IoProgress, ExchangeError> {
        let mut left = most;
        loop {
            if left == 0 {
                return Ok(IoProgress::Limited);
            }
            let Some(socket) = &self.socket else { return Ok(IoProgress::Over) };
            let skip = self.discardable();
            let skips = skip.is_some();
            let most_now = left.min(skip.unwrap_or(context.buffer.len()));
            let result = match skips {
                true => socket.discard(most_now),
                false => socket.receive(&mut context.buffer[..most_now]),
            };
            *now = clock::monotonic();
            match result {
                Ok(0) => return self.end(context, *now),
                Ok(count) => {
                    left -= count;
                    match skips {
                        true => self.discarded(count, context, *now),
                        false => self.process_buffer(count, context, *now)?,
                    }
                    let whole = self.requests.is_empty() && self.parser.is_fresh();
                    if whole && (!self.persistent || !ended) {
                        return Ok(if self.persistent { IoProgress::All } else { IoProgress::Over });
                    }
                    if self.is_over() {
                        return Ok(IoProgress::Over);
                    }
                    if count < most_now && !ended {
                        return Ok(IoProgress::All);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(IoProgress::Blocked),
                Err(error) => return self.broken(&error),
            }
        }
    }

    /// Bytes that may be thrown away in the kernel next; none where what comes is to be looked at.
    pub(crate) fn discardable(&self) -> Option<usize> {
        let skip = if self.skips { self.parser.skippable() } else { 0 };
        (skip > SKIP).then_some(skip.min(MOST_SKIPPED) as usize)
    }

    /// So many bytes came and were thrown away.
    pub(crate) fn discarded(&mut self, count: usize, context: &mut WorkerContext<'_>, now: u64) {
        context.recorder.received(count);
        let done = self.parser.skipped(count as u64);
        done.into_iter().for_each(|response| self.answered(&response, context, now));
    }

    /// Whether the answers so far were its last ones, and nothing of another has come.
    pub(crate) fn is_over(&self) -> bool {
        !self.persistent && self.parser.is_fresh()
    }

    /// Receiving failed. Of a connection on which nothing is asked a reset is an end, however rude.
    ///
    /// # Errors
    /// What went wrong, where something is asked.
    pub(crate) fn broken(&self, error: &io::Error) -> Result<IoProgress, ExchangeError> {
        let asked = self.requests.iter().any(|request| request.sent > 0);
        if asked { Err(exchange_error(error)) } else { Ok(IoProgress::Over) }
    }

    fn process_buffer(
        &mut self,
        count: usize,
        context: &mut WorkerContext<'_>,
        now: u64,
    ) -> Result<(), ExchangeError> {
        let buffer = std::mem::take(&mut context.buffer);
        let result = self.arrived(&buffer[..count], context, now);
        context.buffer = buffer;
        result
    }

    /// These bytes came.
    ///
    /// # Errors
    /// What is wrong with them.
    #[inline]
    pub(crate) fn arrived(
        &mut self,
        bytes: &[u8],
        context: &mut WorkerContext<'_>,
        now: u64,
    ) -> Result<(), ExchangeError> {
        context.recorder.received(bytes.len());
        self.read(bytes, context, now)
            .map_err(|why| ExchangeError { kind: ErrorKind::Malformed, message: why.to_owned() })
    }

    #[inline]
    fn read(&mut self, bytes: &[u8], context: &mut WorkerContext<'_>, now: u64) -> Result<(), &'static str> {
        let mut at = 0;
        while at < bytes.len() && self.persistent {
            match self.requests.front_mut() {
                Some(request) if request.sent > 0 => {
                    if request.first == 0 {
                        request.first = now;
                    }
                    let known = &mut context.known[request.target as usize];
                    let (used, done) = self.parser.feed(&bytes[at..], context.traits, known)?;
                    at += used;
                    if let Some(response) = done {
                        self.answered(&response, context, now);
                    }
                }
                // A server that gives up on an idle connection may say so in an answer nobody asked for.
                _ => self.persistent = false,
            }
        }
        Ok(())
    }

    #[inline]
    fn answered(&mut self, response: &ReceivedResponse, context: &mut WorkerContext<'_>, now: u64) {
        let Some(request) = self.requests.pop_front() else { return };
        // An answer to a request that is not written whole: the rest of it cannot follow.
        self.persistent = response.persistent && self.written > 0;
        if self.written > 0 {
            self.written -= 1;
        } else {
            self.offset = 0;
        }
        let judged = context.expect.judge(response);
        self.answers += u64::from(judged.is_ok());
        self.responses += 1;
        if !self.measured {
            context.recorder.record.connections.slow_answers += u64::from(judged.is_ok());
            return;
        }
        context.pending -= 1;
        context.recorder.ended(now, 1);
        match judged {
            Ok(()) => context.recorder.answered(request.due, request.sent, request.first, now),
            Err(kind) => {
                context.recorder.record.lost_time += now - request.sent;
                context.recorder.record.fail(kind, 1, || shown(kind, response));
            }
        }
    }

    /// The server has ended the connection.
    ///
    /// # Errors
    /// When an answer was asked for, and is not whole.
    pub(crate) fn end(
        &mut self,
        context: &mut WorkerContext<'_>,
        now: u64,
    ) -> Result<IoProgress, ExchangeError> {
        let asked = self.requests.front().is_some_and(|request| request.sent > 0);
        match self.parser.end() {
            Ok(Some(response)) => {
                self.answered(&response, context, now);
                Ok(IoProgress::Over)
            }
            Ok(None) if asked && self.persistent => Err(ExchangeError {
                kind: ErrorKind::Closed,
                message: "the connection ended before the answer".into(),
            }),
            Ok(None) => Ok(IoProgress::Over),
            Err(why) => Err(ExchangeError { kind: ErrorKind::Closed, message: why.to_owned() }),
        }
    }
}
