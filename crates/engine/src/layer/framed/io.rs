//! A connection through the layer, for one activation.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tenfold_http::{Connection, Finish, Instant, Io, IoError, Next, Out, Patience, Received, Scheme, clock};

use super::hello;
use super::plaintext::Plaintext;
use super::record::{self, Alert, Key, Kind, NOTE_ANSWERS, NOTE_ASKS, RECORD_BYTES};
use super::sending::Sending;
use super::session::Session;
use crate::dispatch::offload::Lane;

/// How long a connection waits for an alert or a closing record to leave, if the protocol does not end it.
const CLOSING_TIME: Duration = Duration::from_secs(1);

/// How far the end of the output is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Closing {
    No,
    Flushing,
    Flushed,
}

pub(super) struct FramedIo<'a, I: Io> {
    below: &'a mut I,
    /// The driver's facts, and those of this layer.
    connection: Connection,
    /// Present behind the hello exchange.
    session: &'a mut Option<Box<Session>>,
    lane: &'a Lane,
    input: Plaintext,
    sending: Sending,
    /// Whether the layer has records of its own in the driver's output, which are flushed before it receives.
    replying: bool,
    /// Whether the peer has sent its closing record.
    ended: bool,
    /// Whether the peer broke the rules of this layer: nothing more is opened or sealed.
    failed: bool,
    closing: Closing,
    /// Whether the end of the connection waits for bytes that the peer may still send.
    lingers: bool,
}

impl<'a, I: Io> FramedIo<'a, I> {
    pub(super) fn new(
        below: &'a mut I,
        session: &'a mut Option<Box<Session>>,
        lane: &'a Lane,
    ) -> FramedIo<'a, I> {
        let tls = session.as_ref().map(|session| session.facts.clone());
        let connection = Connection { scheme: Scheme::Https, tls, ..below.connection().clone() };
        FramedIo {
            below,
            connection,
            session,
            lane,
            input: Plaintext::default(),
            sending: Sending::default(),
            replying: false,
            ended: false,
            failed: false,
            closing: Closing::No,
            lingers: false,
        }
    }

    /// Exchanges hellos by `by`, unless they were exchanged before. Returns what to do with the connection if no
    /// plaintext can follow yet.
    pub(super) async fn begin(&mut self, by: Instant) -> Option<Next> {
        if self.session.is_some() {
            return None;
        }
        match poll_fn(|cx| self.poll_hello(cx, by)).await {
            Ok(Received::Bytes) => None,
            Ok(Received::Idle) => Some(Next::Park(by)),
            Ok(Received::End | Received::Full) | Err(_) => Some(self.close(Next::Close).await),
        }
    }

    fn poll_hello(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<Result<Received, IoError>> {
        loop {
            ready!(self.poll_reply(cx, by))?;
            if self.session.is_some() {
                return Poll::Ready(Ok(Received::Bytes));
            }
            let (input, out) = self.below.split();
            let patience = if input.is_empty() { Patience::Park } else { Patience::Wait };
            match hello::answer(input, out) {
                Ok(Some((session, length))) => {
                    self.below.consume(length);
                    self.connection.tls = Some(session.facts.clone());
                    *self.session = Some(Box::new(session));
                    self.replying = true;
                }
                Ok(None) => match ready!(self.below.poll_receive(cx, RECORD_BYTES, patience, by))? {
                    Received::Bytes => {}
                    other => return Poll::Ready(Ok(other)),
                },
                Err(alert) => self.fail(alert),
            }
        }
    }

    /// Returns what to do with the connection when the protocol returned `next`, or `None` if the protocol has to go
    /// on, because there is more in hand than it saw.
    pub(super) async fn end(&mut self, next: Next) -> Option<Next> {
        let more = self.ended || self.input.has_hidden() || !self.below.split().0.is_empty();
        match next {
            Next::Park(_) if more && !self.failed => None,
            Next::Park(_) if !self.failed => Some(next),
            _ => Some(self.close(next).await),
        }
    }

    /// Ends the output if the protocol has not: behind an alert, or behind plaintext that was sent whole.
    async fn close(&mut self, next: Next) -> Next {
        let whole = self.session.is_some() && self.sending.is_empty() && self.below.split().1.is_empty();
        if self.closing == Closing::No && (self.failed || whole) {
            let by = clock::now() + CLOSING_TIME;
            poll_fn(|cx| self.poll_finish(cx, Finish::Close, by)).await;
        }
        if self.lingers { Next::Linger } else { next }
    }

    /// Sends records of the layer, before anything is received. After an alert, nothing is.
    fn poll_reply(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<Result<(), IoError>> {
        if self.replying {
            ready!(self.below.poll_flush(cx, by))?;
            self.replying = false;
        }
        Poll::Ready(if self.failed { Err(IoError::Gone) } else { Ok(()) })
    }

    /// Opens the record at the front of the driver's input. Returns false while a part of it is missing.
    fn open(&mut self) -> Result<bool, Alert> {
        let (input, out) = self.below.split();
        let Some(length) = record::length(input)? else { return Ok(false) };
        let session = self.session.as_mut().expect("plaintext follows the hello exchange");
        let (kind, content) = session.receiving.open(&mut input[..length])?;
        let content = &input[content];
        match kind {
            Kind::Data => self.input.push(content),
            Kind::Note if content == NOTE_ASKS => {
                let mut reply = Vec::new();
                session.sending.seal(Kind::Note, NOTE_ANSWERS, &mut reply);
                out.stage(&reply);
                self.replying = true;
            }
            Kind::Note => {}
            Kind::Close => self.ended = true,
            // The peer wants no answer.
            Kind::Alert => self.failed = true,
            Kind::Hello => return Err(Alert::Unexpected),
        }
        session.count(if kind == Kind::Data { content.len() } else { 0 })?;
        self.below.consume(length);
        Ok(true)
    }

    /// Stages the closing record, unless plaintext was cut short: the record would say that it was whole.
    fn stage_closing_record(&mut self) {
        if !self.failed
            && self.sending.is_empty()
            && let Some(session) = self.session.as_mut()
        {
            let mut record = Vec::new();
            session.sending.seal(Kind::Close, &[], &mut record);
            self.below.split().1.stage(&record);
        }
    }

    fn fail(&mut self, alert: Alert) {
        let mut record = Vec::new();
        match self.session.as_mut() {
            Some(session) => session.sending.seal(Kind::Alert, &alert.content(), &mut record),
            None => Key::PUBLIC.clone().seal(Kind::Alert, &alert.content(), &mut record),
        }
        self.below.split().1.stage(&record);
        (self.replying, self.failed) = (true, true);
    }
}

impl<I: Io> Drop for FramedIo<'_, I> {
    fn drop(&mut self) {
        self.sending.give_up(self.below.split().1);
    }
}

impl<I: Io> Io for FramedIo<'_, I> {
    fn split(&mut self) -> (&mut [u8], &mut Out) {
        (self.input.shown(), &mut self.sending.out)
    }

    fn consume(&mut self, count: usize) {
        self.input.consume(count);
    }

    fn connection(&self) -> &Connection {
        &self.connection
    }

    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        room: usize,
        patience: Patience,
        by: Instant,
    ) -> Poll<Result<Received, IoError>> {
        if self.input.shown_len() >= room {
            return Poll::Ready(Ok(Received::Full));
        }
        loop {
            ready!(self.poll_reply(cx, by))?;
            if self.input.has_hidden() {
                self.input.show(room);
                return Poll::Ready(Ok(Received::Bytes));
            }
            if self.ended {
                return Poll::Ready(Ok(Received::End));
            }
            match self.open() {
                Ok(true) => continue,
                Ok(false) => {}
                Err(alert) => {
                    self.fail(alert);
                    continue;
                }
            }
            // The driver does not see the plaintext in hand: it must not take the connection for an idle one.
            let patience = if self.input.shown_len() == 0 { patience } else { Patience::Wait };
            match ready!(self.below.poll_receive(cx, RECORD_BYTES, patience, by))? {
                Received::Bytes => {}
                Received::Idle => return Poll::Ready(Ok(Received::Idle)),
                // Without a closing record, bytes may be missing.
                Received::End | Received::Full => return Poll::Ready(Err(IoError::Gone)),
            }
        }
    }

    fn poll_lost(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<IoError> {
        self.below.poll_lost(cx, by)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<Result<(), IoError>> {
        if self.failed {
            return Poll::Ready(Err(IoError::Gone));
        }
        loop {
            let session = self.session.as_mut().expect("plaintext follows the hello exchange");
            session.answered |= !self.sending.is_empty();
            self.sending.seal(&mut session.sending, self.below.split().1, self.lane)?;
            ready!(self.below.poll_flush(cx, by))?;
            if self.sending.poll_file(cx)?.is_pending() {
                return self.below.poll_lost(cx, by).map(Err);
            }
            if self.sending.is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>, how: Finish, by: Instant) -> Poll<()> {
        if self.closing == Closing::No {
            self.stage_closing_record();
            self.closing = Closing::Flushing;
        }
        if self.closing == Closing::Flushing {
            // If it cannot be sent, the connection is over all the same.
            let _ = ready!(self.below.poll_flush(cx, by));
            self.closing = Closing::Flushed;
        }
        // The protocol knows nothing of records that were received and not opened: a close would be a reset.
        self.lingers = how == Finish::Linger || self.failed || !self.below.split().0.is_empty();
        self.below.poll_finish(cx, if self.lingers { Finish::Linger } else { how }, by)
    }

    fn delivered(&self) -> u64 {
        self.below.delivered()
    }

    fn draining(&self) -> bool {
        self.below.draining()
    }
}
