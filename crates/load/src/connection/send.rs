//! The sending half of a connection: one call sends queued requests that are contiguous in memory.

use std::collections::VecDeque;
use std::io;

use super::{ClientConnection, IoProgress, WorkerContext};
use crate::connection::pending::PendingRequest;
use crate::message::request::EncodedRequest;

impl ClientConnection {
    /// Sends at most `most` queued bytes.
    #[inline]
    pub(crate) fn flush(
        &mut self,
        context: &mut WorkerContext<'_>,
        now: u64,
        most: usize,
    ) -> io::Result<IoProgress> {
        if self.tls.is_some() {
            return self.flush_tls(context, now, most);
        }
        let mut left = most;
        while self.has_unsent() {
            self.prepare(context, now);
            let Some(socket) = &self.socket else { return Ok(IoProgress::Blocked) };
            let bytes = self.waiting(context, left);
            if bytes.is_empty() {
                return Ok(IoProgress::Limited);
            }
            let asked = bytes.len();
            match socket.send(bytes, false) {
                Ok(count) => {
                    left -= count;
                    self.advance(count, context, now);
                    if count < asked {
                        return Ok(IoProgress::Blocked);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(IoProgress::Blocked),
                Err(error) => return Err(error),
            }
        }
        Ok(IoProgress::All)
    }

    /// Returns at most `most` bytes to send next.
    pub(crate) fn waiting<'s>(&'s self, context: &'s mut WorkerContext<'_>, most: usize) -> &'s [u8] {
        let bytes = match &self.http2 {
            None => pieces(&self.requests, self.written, self.offset, context.encoded, &mut context.gathered),
            Some(http2) => http2.output(),
        };
        &bytes[..bytes.len().min(most)]
    }

    /// Marks the requests of the next `count` bytes as sent. [`ClientConnection::advance`] or
    /// [`ClientConnection::unmark_sent`] follows.
    pub(crate) fn mark_sent(&mut self, count: usize, context: &mut WorkerContext<'_>, now: u64) {
        let mut rest = (self.offset + count) as u64;
        let mut begun = 0;
        for request in self.requests.range_mut(self.written..) {
            if rest == 0 {
                break;
            }
            begun += u64::from(request.sent == 0);
            request.sent = if request.sent == 0 { now } else { request.sent };
            rest = rest.saturating_sub(context.encoded[request.target as usize].length() as u64);
        }
        if self.measured && begun > 0 {
            context.recorder.sent(now, begun);
        }
    }

    /// Marks requests as unsent if no byte of them was written.
    pub(crate) fn unmark_sent(&mut self, context: &mut WorkerContext<'_>, now: u64) {
        let from = (self.written + usize::from(self.offset > 0)).min(self.requests.len());
        let mut taken = 0;
        for request in self.requests.range_mut(from..) {
            taken += u64::from(std::mem::take(&mut request.sent) > 0);
        }
        if self.measured {
            context.recorder.ended(now, taken);
        }
    }

    /// Counts `count` written bytes.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize, context: &mut WorkerContext<'_>, now: u64) {
        if let Some(http2) = &mut self.http2 {
            return http2.advance(count);
        }
        let (mut rest, mut begun) = (self.offset + count, 0);
        while let Some(request) = self.requests.get_mut(self.written).filter(|_| rest > 0) {
            if request.sent == 0 {
                request.sent = now;
                begun += 1;
            }
            let length = context.encoded[request.target as usize].length();
            if rest < length {
                break;
            }
            rest -= length;
            self.written += 1;
        }
        self.offset = rest;
        if self.measured && begun > 0 {
            context.recorder.sent(now, begun);
        }
    }
}

/// Returns the bytes to send next: the first queued request and, if they are contiguous, the next requests.
#[inline]
fn pieces<'a>(
    requests: &VecDeque<PendingRequest>,
    written: usize,
    offset: usize,
    encoded: &'a [EncodedRequest],
    gathered: &'a mut Vec<u8>,
) -> &'a [u8] {
    const ENOUGH: usize = 64 << 10;
    let waiting = requests.len() - written;
    let first = &encoded[requests[written].target as usize];
    if waiting == 1 || encoded.len() == 1 {
        return first.piece(offset, waiting.min(first.copies()));
    }
    gathered.clear();
    let mut skip = offset;
    for request in requests.range(written..) {
        gathered.extend_from_slice(encoded[request.target as usize].piece(skip, 1));
        skip = 0;
        if gathered.len() >= ENOUGH {
            break;
        }
    }
    gathered
}
