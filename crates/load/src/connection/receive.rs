//! The receiving half of a connection: it parses, checks and times responses.

use std::io;

use tenfold_sys::clock;

use super::{ClientConnection, ConnectionState, IoProgress, WorkerContext};
use crate::connection::judge::{ExchangeError, exchange_error, shown};
use crate::connection::pending::PendingRequest;
use crate::measure::record::ErrorKind;
use crate::message::response::ReceivedResponse;

/// The shortest remainder of a body that the kernel discards.
const SKIP: u64 = 64 << 10;
/// The most bytes of one discarding receive.
const MOST_SKIPPED: u64 = 4 << 20;

impl ClientConnection {
    /// Receives at most `most` bytes. If the server has ended its output (`ended`), reads up to the end. Updates
    /// `now`.
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
                    if self.tls.as_ref().is_some_and(|tls| tls.closed) {
                        return self.end(context, *now);
                    }
                    // A response of HTTP/2 may be followed by other frames.
                    let whole = self.http2.is_none() && self.requests.is_empty() && self.parser.is_fresh();
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

    /// The number of bytes that the kernel may discard next; `None` if they must be parsed.
    pub(crate) fn discardable(&self) -> Option<usize> {
        let skip = if self.skips { self.parser.skippable() } else { 0 };
        (skip > SKIP).then_some(skip.min(MOST_SKIPPED) as usize)
    }

    /// Counts `count` discarded bytes.
    pub(crate) fn discarded(&mut self, count: usize, context: &mut WorkerContext<'_>, now: u64) {
        context.recorder.received(count);
        let done = self.parser.skipped(count as u64);
        done.into_iter().for_each(|response| self.answered(&response, context, now));
    }

    /// Whether the last response of the connection is complete, and no byte of another has arrived.
    pub(crate) fn is_over(&self) -> bool {
        !self.persistent && self.http2.as_ref().map_or(self.parser.is_fresh(), |http2| http2.streams() == 0)
    }

    /// Handles a failed receive. Without a sent request, a reset counts as the end of the connection.
    pub(crate) fn broken(&self, error: &io::Error) -> Result<IoProgress, ExchangeError> {
        let asked = self.requests.iter().any(|request| request.sent > 0);
        let asked = asked || self.http2.as_ref().is_some_and(|http2| http2.streams() > 0);
        if asked || self.is_handshaking() { Err(exchange_error(error)) } else { Ok(IoProgress::Over) }
    }

    fn is_handshaking(&self) -> bool {
        matches!(self.state, ConnectionState::Handshaking(_))
    }

    fn process_buffer(
        &mut self,
        count: usize,
        context: &mut WorkerContext<'_>,
        now: u64,
    ) -> Result<(), ExchangeError> {
        let buffer = std::mem::take(&mut context.buffer);
        let result = match self.tls {
            None => self.arrived(&buffer[..count], context, now),
            Some(_) => self.arrived_sealed(&buffer[..count], context, now),
        };
        context.buffer = buffer;
        result
    }

    /// Parses received bytes.
    #[inline]
    pub(crate) fn arrived(
        &mut self,
        bytes: &[u8],
        context: &mut WorkerContext<'_>,
        now: u64,
    ) -> Result<(), ExchangeError> {
        context.recorder.received(bytes.len());
        if self.http2.is_some() {
            return self.read_http2(bytes, context, now);
        }
        self.read(bytes, context, now).map_err(|why| ExchangeError::new(ErrorKind::Malformed, why))
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
                // A server that closes an idle connection may send an unsolicited response, such as 408.
                _ => self.persistent = false,
            }
        }
        Ok(())
    }

    #[inline]
    fn answered(&mut self, response: &ReceivedResponse, context: &mut WorkerContext<'_>, now: u64) {
        let Some(request) = self.requests.pop_front() else { return };
        // The response came before the whole request was sent; the rest cannot follow.
        self.persistent = response.persistent && self.written > 0;
        if self.written > 0 {
            self.written -= 1;
        } else {
            self.offset = 0;
        }
        self.complete(&request, response, context, now);
    }

    /// Checks and records a complete response.
    #[inline]
    pub(super) fn complete(
        &mut self,
        request: &PendingRequest,
        response: &ReceivedResponse,
        context: &mut WorkerContext<'_>,
        now: u64,
    ) {
        let judged = context.expect.judge(response);
        self.answers += u64::from(judged.is_ok());
        self.responses += 1;
        if !self.measured {
            context.recorder.record.connections.slow_answers += u64::from(judged.is_ok());
            return;
        }
        context.pending -= 1;
        context.recorder.ended(now, 1);
        *context.recorder.record.statuses.entry(response.status).or_default() += 1;
        match judged {
            Ok(()) => context.recorder.answered(request.due, request.sent, request.first, now),
            Err(kind) => {
                context.recorder.record.lost_time += now - request.sent;
                context.recorder.record.fail(kind, 1, || shown(kind, response));
            }
        }
    }

    /// Handles the end of the connection.
    pub(crate) fn end(
        &mut self,
        context: &mut WorkerContext<'_>,
        now: u64,
    ) -> Result<IoProgress, ExchangeError> {
        if self.is_handshaking() {
            let why = "the server closed the connection during the TLS handshake";
            return Err(ExchangeError::new(ErrorKind::Tls, why));
        }
        if let Some(http2) = &self.http2 {
            http2.check_end(self.tls.is_some())?;
        }
        let asked = self.waiting_since().is_some();
        // Any host on the path can end a connection, so an end without close_notify proves nothing (RFC 8446 §6.1).
        let truncated = self.tls.as_ref().is_some_and(|tls| !tls.closed);
        context.recorder.record.tls.truncated += u64::from(truncated);
        let kind = if truncated { ErrorKind::Truncated } else { ErrorKind::Closed };
        match self.parser.end() {
            Ok(Some(_)) if truncated => {
                let why = "the connection ended without close_notify, so the body may be incomplete";
                Err(ExchangeError::new(kind, why))
            }
            Ok(Some(response)) => {
                self.answered(&response, context, now);
                Ok(IoProgress::Over)
            }
            Ok(None) if asked && (self.persistent || self.http2.is_some()) => {
                Err(ExchangeError::new(kind, "the connection ended before the response"))
            }
            Ok(None) => Ok(IoProgress::Over),
            Err(why) => Err(ExchangeError::new(kind, why)),
        }
    }
}
