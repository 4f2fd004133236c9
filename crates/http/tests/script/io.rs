//! The driver of a script.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::ops::Range;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::clock::{self, Instant};
use crate::io::{Finish, Flushed, Io, IoError, Patience, Received};
use crate::message::connection::{Connection, Local, Peer};
use crate::out::{OpenFile, Out};

/// Reads a range of a file to send, in place of the system.
pub type ReadFile = fn(&OpenFile, Range<u64>, &mut Vec<u8>) -> Result<(), IoError>;

/// Makes the peer's next bytes from all the bytes that it has received. Each piece is received separately.
pub type Respond = Box<dyn FnOnce(&[u8]) -> Vec<Vec<u8>> + Send>;

/// An action of the peer.
pub(super) enum Step {
    /// It sends bytes. A receive returns at most these.
    Bytes(Vec<u8>),
    /// It sends bytes that depend on the bytes that it has received.
    Response(Respond),
    /// It ends its output.
    End,
    /// It resets the connection.
    Reset,
}

/// The operations of the driver that return `Pending` once although they could complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pauses {
    Never,
    Always,
    At(usize),
}

thread_local! {
    /// The earliest time at which a pending wait continues without an event.
    pub(super) static ALARM: Cell<Instant> = const { Cell::new(Instant::NEVER) };
}

/// The operations of a connection, each with a wait of its own.
#[derive(Clone, Copy)]
enum Wait {
    Receive,
    Loss,
    Send,
    Finish,
    /// A try to receive, which never pauses.
    Try,
}

/// An [`Io`] whose peer is a [`super::Script`].
pub struct ScriptIo {
    /// Received bytes; the first `consumed` bytes are dropped.
    input: Vec<u8>,
    consumed: usize,
    connection: Connection,
    out: Out,
    pub(super) steps: VecDeque<(Instant, Step)>,
    pub(super) draining_from: Instant,
    pub(super) takes: usize,
    pub(super) gap: Duration,
    takes_again: Instant,
    pub(super) gone_after: usize,
    pub(super) pauses: Pauses,
    /// Per operation: whether its last result was `Pending` because of a pause.
    paused: [bool; 5],
    pub(super) fault: Option<(usize, IoError)>,
    pub(super) parks: bool,
    pub(super) read: ReadFile,
    sent: Vec<u8>,
    in_flush: usize,
    pub(super) finish: Option<Finish>,
    pub(super) receives: usize,
    pub(super) flushes: usize,
    pub(super) operations: usize,
    pub(super) most_to_send: u64,
}

impl ScriptIo {
    pub(crate) fn new() -> ScriptIo {
        ScriptIo {
            input: Vec::new(),
            consumed: 0,
            connection: Connection::plaintext(Peer::Unix, Local { listener: 0 }),
            out: Out::new(),
            steps: VecDeque::new(),
            draining_from: Instant::NEVER,
            takes: usize::MAX,
            gap: Duration::ZERO,
            takes_again: Instant(0),
            gone_after: usize::MAX,
            pauses: Pauses::Never,
            paused: [false; 5],
            fault: None,
            parks: true,
            read: read_pattern,
            sent: Vec::new(),
            in_flush: 0,
            finish: None,
            receives: 0,
            flushes: 0,
            operations: 0,
            most_to_send: 0,
        }
    }

    /// Asserts that a parked connection has empty buffers, because it returns them.
    pub(super) fn assert_empty(&self) {
        assert!(self.in_hand() == 0, "parked with {} received bytes in hand", self.in_hand());
        assert!(self.out.is_empty(), "parked with {} bytes to send", self.out.len());
    }

    /// Returns the time of the peer's next step.
    pub(super) fn next_step(&self) -> Option<Instant> {
        self.steps.front().map(|(at, _)| *at)
    }

    pub(super) fn into_sent(mut self) -> Vec<u8> {
        std::mem::take(&mut self.sent)
    }

    fn in_hand(&self) -> usize {
        self.input.len() - self.consumed
    }

    /// Counts an operation. Returns a result in its place if the script makes it pause or fail.
    fn interfere<T>(&mut self, wait: Wait, cx: &mut Context<'_>) -> Option<Poll<Result<T, IoError>>> {
        let paused = std::mem::take(&mut self.paused[wait as usize]);
        if let Some((at, error)) = self.fault
            && at == self.operations
        {
            self.operations += 1;
            return Some(Poll::Ready(Err(error)));
        }
        let may_pause = !paused && !matches!(wait, Wait::Try);
        if may_pause && (self.pauses == Pauses::Always || self.pauses == Pauses::At(self.operations)) {
            self.paused[wait as usize] = true;
            cx.waker().wake_by_ref();
            return Some(Poll::Pending);
        }
        self.operations += 1;
        None
    }

    /// Waits until `by` or `event`.
    fn wait<T>(by: Instant, event: Instant) -> Poll<Result<T, IoError>> {
        if by <= clock::now() {
            return Poll::Ready(Err(IoError::TimedOut));
        }
        ALARM.set(ALARM.get().min(by).min(event));
        Poll::Pending
    }

    /// Returns the time at which the peer resets the connection.
    fn reset_at(&self) -> Instant {
        let reset = self.steps.iter().find(|(_, step)| matches!(step, Step::Reset));
        reset.map_or(Instant::NEVER, |(at, _)| *at)
    }

    fn gone(&self) -> bool {
        self.reset_at() <= clock::now() || self.sent.len() >= self.gone_after
    }

    /// Replaces a response that is due with its bytes.
    fn respond(&mut self, now: Instant) {
        while let Some((at, step)) =
            self.steps.pop_front_if(|(at, step)| *at <= now && matches!(step, Step::Response(_)))
        {
            let Step::Response(respond) = step else { unreachable!("the step was checked") };
            let pieces = respond(&self.sent).into_iter().filter(|piece| !piece.is_empty());
            for piece in pieces.collect::<Vec<_>>().into_iter().rev() {
                self.steps.push_front((at, Step::Bytes(piece)));
            }
        }
    }

    /// Sends as many bytes as the peer receives at a time.
    fn poll_slice(&mut self, by: Instant) -> Poll<Result<(), IoError>> {
        if self.gone() {
            return Poll::Ready(Err(IoError::Gone));
        }
        let now = clock::now();
        if self.takes == 0 {
            return ScriptIo::wait(by, self.reset_at());
        }
        if self.takes_again > now {
            return ScriptIo::wait(by, self.takes_again.min(self.reset_at()));
        }
        self.in_flush += self.send(self.takes)?;
        self.takes_again = if self.takes == usize::MAX { now } else { now + self.gap };
        Poll::Ready(Ok(()))
    }

    /// Sends at most `most` bytes from the front of the output. Returns their number.
    fn send(&mut self, most: usize) -> Result<usize, IoError> {
        let before = self.sent.len();
        let most = most.min(self.gone_after - before);
        if let Some((file, range, _)) = self.out.file() {
            let end = range.end.min(range.start.saturating_add(most as u64));
            (self.read)(file, range.start..end, &mut self.sent)?;
        } else {
            // Few slices, so that output of many pieces needs several calls.
            let mut slices = [IoSlice::new(&[]); 3];
            let (filled, _) = self.out.memory(&mut slices);
            for slice in &slices[..filled] {
                let room = most - (self.sent.len() - before);
                self.sent.extend_from_slice(&slice[..slice.len().min(room)]);
            }
        }
        let count = self.sent.len() - before;
        self.out.advance(count as u64);
        Ok(count)
    }
}

/// Writes bytes of a file; the value of each byte derives from its offset.
fn read_pattern(_: &OpenFile, range: Range<u64>, to: &mut Vec<u8>) -> Result<(), IoError> {
    to.extend(range.map(|offset| (offset % 251) as u8));
    Ok(())
}

impl Io for ScriptIo {
    fn split(&mut self) -> (&mut [u8], &mut Out) {
        (&mut self.input[self.consumed..], &mut self.out)
    }

    fn consume(&mut self, count: usize) {
        assert!(count <= self.in_hand(), "consumed {count} bytes of {}", self.in_hand());
        self.consumed += count;
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
        let wait = if patience == Patience::Try { Wait::Try } else { Wait::Receive };
        if let Some(instead) = self.interfere(wait, cx) {
            return instead;
        }
        self.input.drain(..std::mem::take(&mut self.consumed));
        let in_hand = self.in_hand();
        let room = room.saturating_sub(in_hand);
        if room == 0 {
            return Poll::Ready(Ok(Received::Full));
        }
        let now = clock::now();
        self.respond(now);
        match self.steps.front_mut() {
            Some((at, step)) if *at <= now => match step {
                Step::Response(_) => unreachable!("bytes have replaced it"),
                Step::End => Poll::Ready(Ok(Received::End)),
                Step::Reset => Poll::Ready(Err(IoError::Gone)),
                Step::Bytes(bytes) => {
                    self.input.extend(bytes.drain(..room.min(bytes.len())));
                    if bytes.is_empty() {
                        self.steps.pop_front();
                    }
                    self.receives += 1;
                    Poll::Ready(Ok(Received::Bytes))
                }
            },
            _ if patience == Patience::Try => Poll::Ready(Ok(Received::Idle)),
            _ if patience == Patience::Park && self.parks && in_hand == 0 => Poll::Ready(Ok(Received::Idle)),
            _ => ScriptIo::wait(by, self.next_step().unwrap_or(Instant::NEVER)),
        }
    }

    fn poll_lost(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<IoError> {
        let lost = match self.interfere::<()>(Wait::Loss, cx) {
            Some(instead) => instead,
            None if self.gone() => Poll::Ready(Err(IoError::Gone)),
            None => ScriptIo::wait(by, self.reset_at()),
        };
        lost.map(|lost| lost.expect_err("a wait for a loss ends with an error"))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<Result<(), IoError>> {
        if let Some(instead) = self.interfere(Wait::Send, cx) {
            return instead;
        }
        self.most_to_send = self.most_to_send.max(self.out.len());
        while !self.out.is_empty() {
            ready!(self.poll_slice(by))?;
            if self.gap.is_zero() && self.takes < usize::MAX && !self.out.is_empty() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        self.flushes += usize::from(std::mem::take(&mut self.in_flush) > 0);
        Poll::Ready(Ok(()))
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<Result<Flushed, IoError>> {
        if let Some(instead) = self.interfere(Wait::Send, cx) {
            return instead;
        }
        self.most_to_send = self.most_to_send.max(self.out.len());
        if !self.out.is_empty() {
            ready!(self.poll_slice(by))?;
        }
        if !self.out.is_empty() {
            return Poll::Ready(Ok(Flushed::Part));
        }
        self.flushes += usize::from(std::mem::take(&mut self.in_flush) > 0);
        Poll::Ready(Ok(Flushed::All))
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>, how: Finish, _by: Instant) -> Poll<()> {
        if let Some(Poll::Pending) = self.interfere::<()>(Wait::Finish, cx) {
            return Poll::Pending;
        }
        assert!(self.finish.is_none(), "the output is ended twice");
        assert!(self.out.is_empty(), "the output is ended with {} bytes to send", self.out.len());
        self.finish = Some(how);
        Poll::Ready(())
    }

    fn delivered(&self) -> u64 {
        self.sent.len() as u64
    }

    fn holds(&self, file: &OpenFile, size: u64) -> bool {
        (self.read)(file, size - 1..size, &mut Vec::new()).is_ok()
    }

    fn blocks(&self) -> bool {
        !self.parks
    }

    fn draining(&self) -> bool {
        self.draining_from <= clock::now()
    }
}
