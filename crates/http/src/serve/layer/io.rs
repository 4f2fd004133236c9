//! A connection through a layer, for one activation.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::format::{FileReader, Layer, LayerProgress};
use super::plaintext::Plaintext;
use super::queue::KernelQueue;
use super::sending::Sending;
use super::turns::{HandshakeTurns, Turn};
use crate::clock::{self, Instant};
use crate::io::{Finish, Flushed, Io, IoError, Patience, Received};
use crate::message::connection::Connection;
use crate::out::{OpenFile, Out};
use crate::serve::session::Next;

/// The time in which an alert or a closing record must be sent, if the protocol does not end the connection.
const CLOSING_TIME: Duration = Duration::from_secs(1);

/// The interval of checks whether the process that a handshake needs is still late.
const LATE_LOOK: Duration = Duration::from_millis(50);

/// The progress of ending the output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Closing {
    No,
    Flushing,
    Flushed,
}

/// A connection through the layer `L`, with files read by `F`.
pub struct LayeredIo<'a, I: Io, L: Layer, F: FileReader> {
    below: &'a mut I,
    layer: &'a L,
    files: &'a F,
    turns: &'a HandshakeTurns,
    turn: Turn,
    /// The facts of the driver and of the layer.
    connection: Connection,
    state: &'a mut Option<Box<L::State>>,
    input: Plaintext,
    sending: Sending<F::Later>,
    /// Whether the driver's output has records of the layer itself. They are sent before a wait for bytes, or
    /// with the next response.
    replying: bool,
    /// Whether the peer sent its closing record.
    ended: bool,
    /// The time limit of a record that begins between requests, and the deadline of the present record.
    record_time: Duration,
    record_by: Option<Instant>,
    /// Whether the layer admitted the connection in this activation.
    admitted: bool,
    /// The time of the next check whether the process that the handshake needs is still late.
    late: Option<Instant>,
    /// Whether the layer can neither open nor seal any longer.
    failed: bool,
    /// Whether the connection ends after the protocol's output.
    last: bool,
    closing: Closing,
    kernel: KernelQueue,
    /// Whether the connection must drain input before closing.
    lingers: bool,
}

impl<'a, I: Io, L: Layer, F: FileReader> LayeredIo<'a, I, L, F> {
    /// Returns the connection above `below` with this state of the layer. Its handshake shares `turns` with
    /// other handshakes of the loop.
    pub fn new(
        below: &'a mut I,
        layer: &'a L,
        state: &'a mut Option<Box<L::State>>,
        files: &'a F,
        turns: &'a HandshakeTurns,
    ) -> LayeredIo<'a, I, L, F> {
        let connection = below.connection().clone();
        LayeredIo {
            below,
            layer,
            files,
            turns,
            turn: Turn::default(),
            connection,
            state,
            input: Plaintext::default(),
            sending: Sending::default(),
            replying: false,
            ended: false,
            record_time: Duration::ZERO,
            record_by: None,
            admitted: false,
            late: None,
            failed: false,
            last: false,
            closing: Closing::No,
            kernel: KernelQueue::default(),
            lingers: false,
        }
    }

    /// Completes the handshake by `by`, if it is not complete yet. A record that begins between requests has
    /// the same time limit. Returns the driver's next step if no plaintext can follow.
    pub async fn begin(&mut self, by: Instant) -> Option<Next> {
        self.record_time = by.since(clock::now());
        match poll_fn(|cx| self.poll_handshake(cx, by)).await {
            Ok(Received::Bytes) => None,
            Ok(Received::Idle) => Some(Next::Park(by)),
            Ok(Received::End | Received::Full) | Err(_) => Some(self.close(Next::Close).await),
        }
    }

    fn poll_handshake(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<Result<Received, IoError>> {
        loop {
            if self.has_to_reply() {
                ready!(self.poll_reply(cx, by))?;
            }
            if let Some(state) = self.state.as_deref().filter(|state| L::is_established(state)) {
                L::describe(state, &mut self.connection);
                return Poll::Ready(Ok(Received::Bytes));
            }
            if self.ended {
                return Poll::Ready(Ok(Received::End));
            }
            let begun = self.state.is_some() || !self.below.split().0.is_empty();
            if begun && self.state.is_none() && !self.admitted {
                if !self.layer.admits(&self.connection) {
                    return Poll::Ready(Err(IoError::Gone));
                }
                self.admitted = true;
            }
            ready!(self.poll_late(cx, by))?;
            if L::is_long_step(self.state.as_deref(), self.below.split().0)
                && self.turns.poll_turn(&mut self.turn, cx).is_pending()
            {
                return self.below.poll_lost(cx, by).map(Err);
            }
            if self.advance() {
                continue;
            }
            let patience = if begun { Patience::Wait } else { Patience::Park };
            // The first message can be longer than a record.
            match ready!(self.below.poll_receive(cx, 2 * L::RECORD_BYTES, patience, by))? {
                Received::Bytes => {}
                Received::Full => {
                    self.layer.overflow(self.state.as_deref_mut(), self.below.split().1);
                    (self.replying, self.failed) = (true, true);
                }
                other => return Poll::Ready(Ok(other)),
            }
        }
    }

    /// Waits while the process that the handshake needs is late.
    fn poll_late(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<Result<(), IoError>> {
        while let Some(look) = self.late {
            match ready!(self.below.poll_lost(cx, by.min(look))) {
                IoError::TimedOut if clock::now() < by => {}
                error => return Poll::Ready(Err(error)),
            }
            self.late = self.layer.is_late().then(|| clock::now() + LATE_LOOK);
        }
        Poll::Ready(Ok(()))
    }

    /// Returns the driver's next step after the protocol returned `next`; `None` if the protocol must
    /// continue, because more input has arrived.
    pub async fn end(&mut self, next: Next) -> Option<Next> {
        let more = self.ended || !self.below.split().0.is_empty();
        match next {
            Next::Park(_) if more && !self.failed => None,
            Next::Park(_) if !self.failed => Some(next),
            _ => Some(self.close(next).await),
        }
    }

    /// Ends the output, if the protocol did not: after an alert, or after plaintext that was sent whole.
    async fn close(&mut self, next: Next) -> Next {
        let established = self.state.as_ref().is_some_and(|state| L::is_established(state));
        let whole = established && self.sending.is_empty() && self.below.split().1.is_empty();
        if self.closing == Closing::No && (self.failed || whole) {
            let by = clock::now() + CLOSING_TIME;
            poll_fn(|cx| self.poll_finish(cx, Finish::Close, by)).await;
        }
        if self.lingers { Next::Linger } else { next }
    }

    /// Whether records of the layer itself must be sent immediately. Between requests, they are sent with the
    /// next response if its request has arrived. Session tickets, for example, follow the last message of a
    /// handshake, which clients send with a request.
    fn has_to_reply(&mut self) -> bool {
        let established = self.state.as_deref().is_some_and(L::is_established);
        let (input, out) = self.below.split();
        self.failed || !established || input.is_empty() || out.full()
    }

    /// Sends records of the layer itself. After an alert, the connection receives nothing.
    fn poll_reply(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<Result<(), IoError>> {
        if self.replying {
            ready!(self.below.poll_flush(cx, by))?;
            self.replying = false;
        }
        Poll::Ready(if self.failed { Err(IoError::Gone) } else { Ok(()) })
    }

    /// Processes the next record of the driver's input. Returns false if it is incomplete.
    fn advance(&mut self) -> bool {
        let (input, out) = self.below.split();
        let before = out.len();
        let progress = self.layer.advance(self.state, &mut input[self.input.next()..], out);
        self.replying |= out.len() > before;
        match progress {
            LayerProgress::Incomplete => return false,
            LayerProgress::Processed(length) => self.skip(length),
            LayerProgress::Opened { content, length } => {
                let dropped = self.input.open(input, &content, length);
                self.below.consume(dropped);
            }
            LayerProgress::Closed(length) => {
                self.ended = true;
                self.skip(length);
            }
            LayerProgress::Late => self.late = Some(clock::now()),
            LayerProgress::Failed => self.failed = true,
        }
        self.record_by = None;
        true
    }

    /// Seals output until the driver's output is full, and sends it by `send`.
    fn poll_part(
        &mut self,
        cx: &mut Context<'_>,
        by: Instant,
        send: impl FnOnce(&mut I, &mut Context<'_>) -> Poll<Result<Flushed, IoError>>,
    ) -> Poll<Result<Flushed, IoError>> {
        if self.failed {
            return Poll::Ready(Err(IoError::Gone));
        }
        let state = self.state.as_mut().expect("plaintext follows the handshake");
        ready!(self.kernel.poll_pass(self.below, self.layer, state, cx, by))?;
        match L::kernel_sealing(state) {
            Some(sealing) => self.sending.pass(sealing, self.below.split().1),
            None => self.sending.seal::<L, F>(state, self.below.split().1, self.files)?,
        }
        if self.last && self.sending.is_empty() && self.closing == Closing::No {
            self.stage_closing_record();
            self.closing = Closing::Flushing;
        }
        if ready!(send(self.below, cx))? == Flushed::Part {
            return Poll::Ready(Ok(Flushed::Part));
        }
        self.replying = false;
        if self.sending.poll_file(cx)?.is_pending() {
            return self.below.poll_lost(cx, by).map(Err);
        }
        if !self.sending.is_empty() {
            return Poll::Ready(Ok(Flushed::Part));
        }
        if self.closing != Closing::No
            && let Some(state) = self.state.as_mut()
        {
            ready!(self.kernel.poll_queued::<I, L>(self.below, state, cx, by))?;
        }
        Poll::Ready(Ok(Flushed::All))
    }

    /// Returns the deadline of a wait until `by`. While a record is incomplete, the connection is not idle
    /// and cannot be evicted, so a record that may contain a head has a head's time limit.
    fn limit_record(&mut self, patience: Patience, by: Instant) -> Instant {
        let is_head = patience == Patience::Park && self.input.length() == 0;
        if !is_head || self.below.split().0.is_empty() {
            return by;
        }
        let record_by = *self.record_by.get_or_insert(clock::now() + self.record_time);
        by.min(record_by)
    }

    /// Skips the next record of `count` bytes.
    fn skip(&mut self, count: usize) {
        let dropped = self.input.skip(count);
        self.below.consume(dropped);
    }

    /// Stages the closing record. After truncated plaintext it is omitted, because it would claim
    /// completeness.
    fn stage_closing_record(&mut self) {
        if !self.failed
            && self.sending.is_empty()
            && let Some(state) = self.state.as_mut()
        {
            L::close(state, self.below.split().1);
        }
    }
}

impl<I: Io, L: Layer, F: FileReader> Drop for LayeredIo<'_, I, L, F> {
    fn drop(&mut self) {
        self.turns.give_up(&mut self.turn);
        self.sending.give_up(self.below.split().1);
    }
}

impl<I: Io, L: Layer, F: FileReader> Io for LayeredIo<'_, I, L, F> {
    fn split(&mut self) -> (&mut [u8], &mut Out) {
        (&mut self.below.split().0[..self.input.shown()], &mut self.sending.out)
    }

    fn consume(&mut self, count: usize) {
        let dropped = self.input.consume(count);
        self.below.consume(dropped);
    }

    fn connection(&self) -> &Connection {
        &self.connection
    }

    fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        room: usize,
        patience: Patience,
        by: Instant,
    ) -> Poll<Result<Received, IoError>> {
        if self.input.shown() >= room {
            return Poll::Ready(Ok(Received::Full));
        }
        // The layer's own records follow a try with the next output.
        let replies = patience != Patience::Try;
        loop {
            if self.failed && !replies {
                return Poll::Ready(Err(IoError::Gone));
            }
            if replies && self.has_to_reply() {
                ready!(self.poll_reply(cx, by))?;
            }
            if self.input.show(room) {
                return Poll::Ready(Ok(Received::Bytes));
            }
            if self.ended {
                return Poll::Ready(Ok(Received::End));
            }
            if self.advance() {
                continue;
            }
            if replies {
                ready!(self.poll_reply(cx, by))?;
            }
            let gap = self.input.close_gap(self.below.split().0);
            self.below.consume(gap);
            // The driver's bytes may be part of a record, so it does not treat the connection as
            // idle.
            let room = self.input.next() + L::RECORD_BYTES;
            let by = self.limit_record(patience, by);
            match ready!(self.below.poll_receive(cx, room, patience, by))? {
                Received::Bytes => {}
                Received::Idle => return Poll::Ready(Ok(Received::Idle)),
                // The driver has no room for a record after the present plaintext.
                Received::Full if self.input.length() > 0 => return Poll::Ready(Ok(Received::Full)),
                // Without a closing record, bytes may be missing.
                Received::End | Received::Full => return Poll::Ready(Err(IoError::Gone)),
            }
        }
    }

    fn poll_lost(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<IoError> {
        self.below.poll_lost(cx, by)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<Result<(), IoError>> {
        while ready!(self.poll_part(cx, by, |below, cx| {
            below.poll_flush(cx, by).map(|flushed| flushed.map(|()| Flushed::All))
        }))? == Flushed::Part
        {}
        Poll::Ready(Ok(()))
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<Result<Flushed, IoError>> {
        self.poll_part(cx, by, |below, cx| below.poll_send(cx, by))
    }

    fn end_output(&mut self) {
        self.last = true;
    }

    fn poll_submitted(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<Result<(), IoError>> {
        self.below.poll_submitted(cx, by)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>, how: Finish, by: Instant) -> Poll<()> {
        if self.closing == Closing::No {
            if let Some(state) = self.state.as_mut()
                && L::kernel_sealing(state).is_some()
            {
                // The closing record needs the announced keys.
                let _ = ready!(self.kernel.poll_pass(self.below, self.layer, state, cx, by));
            }
            self.stage_closing_record();
            self.closing = Closing::Flushing;
        }
        if self.closing == Closing::Flushing {
            // If the closing record cannot be sent, the connection ends without it.
            if ready!(self.below.poll_flush(cx, by)).is_ok()
                && let Some(state) = self.state.as_mut()
            {
                let _ = ready!(self.kernel.poll_queued::<I, L>(self.below, state, cx, by));
            }
            self.closing = Closing::Flushed;
        }
        // The protocol has not seen unopened records, because of which a close would become a reset.
        self.lingers = how == Finish::Linger || self.failed || !self.below.split().0.is_empty();
        self.below.poll_finish(cx, if self.lingers { Finish::Linger } else { how }, by)
    }

    fn delivered(&self) -> u64 {
        self.below.delivered()
    }

    fn holds(&self, file: &OpenFile, size: u64) -> bool {
        self.below.holds(file, size)
    }

    fn share_output(&mut self) {
        self.below.share_output();
    }

    fn blocks(&self) -> bool {
        self.below.blocks()
    }

    fn draining(&self) -> bool {
        self.below.draining() || self.state.as_deref().is_some_and(L::is_ending)
    }

    fn closes_idle(&self) -> bool {
        self.below.closes_idle()
    }
}
