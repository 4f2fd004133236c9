//! A layer for tests: every byte on the wire is changed by its place in the stream, and the end of the
//! output is a closing record. It has what TLS has: a state for each direction that survives parking,
//! files that it reads itself, and something to say before the connection ends.
//!
//! Byte `n` of a direction is XORed with `0x5a ^ (n mod 256)`. The closing record is one byte, `0xff`
//! before it is changed.

use std::os::unix::fs::FileExt;
use std::task::{Context, Poll, ready};

use tenfold_http::{Connection, Finish, Instant, Io, IoError, Memory, Next, Out, Patience, Peer, Received};

use crate::protocol::{Event, Protocol};

/// The byte that ends the output.
pub const CLOSING_RECORD: u8 = 0xff;
/// Bytes of a file that are read at once.
const READ_BYTES: usize = 16 * 1024;

/// Runs a protocol below this layer.
#[derive(Clone, Debug)]
pub struct Xor<P>(pub P);

/// What the layer and the protocol above remember of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memories<T> {
    received: u8,
    sent: u8,
    above: T,
}

impl<P: Protocol> Protocol for Xor<P> {
    type State = Memories<P::State>;

    async fn serve<I: Io>(&self, io: &mut I, state: &mut Memories<P::State>) -> Next {
        let Memories { received, sent, above } = state;
        let mut layer =
            XorIo { below: io, input: Vec::new(), out: Out::new(), received, sent, closed: false };
        self.0.serve(&mut layer, above).await
    }

    async fn serve_anywhere<I: Io + Send>(&self, io: &mut I, state: &mut Memories<P::State>) -> Next {
        let Memories { received, sent, above } = state;
        let mut layer =
            XorIo { below: io, input: Vec::new(), out: Out::new(), received, sent, closed: false };
        self.0.serve_anywhere(&mut layer, above).await
    }

    fn first_bytes_by(&self) -> Instant {
        self.0.first_bytes_by()
    }

    fn next_request_by(&self) -> Instant {
        self.0.next_request_by()
    }

    fn admit(&self, peer: &Peer) -> bool {
        self.0.admit(peer)
    }

    fn dismiss(&self, peer: impl FnOnce() -> Peer) {
        self.0.dismiss(peer);
    }

    fn observe(&self, event: Event) {
        self.0.observe(event);
    }

    fn leave(&self) {
        self.0.leave();
    }

    fn rest(&self) -> Instant {
        self.0.rest()
    }
}

/// Changes `bytes`, the first of which is at `place` in its stream; moves the place on.
pub fn change(bytes: &mut [u8], place: &mut u8) {
    for byte in bytes {
        *byte ^= 0x5a ^ *place;
        *place = place.wrapping_add(1);
    }
}

struct XorIo<'a, I> {
    below: &'a mut I,
    input: Vec<u8>,
    out: Out,
    received: &'a mut u8,
    sent: &'a mut u8,
    closed: bool,
}

impl<I: Io> XorIo<'_, I> {
    /// Changes output until the driver's is full, there is no more, or what comes leaves by itself.
    fn seal(&mut self) -> Result<(), IoError> {
        while !self.out.is_empty() && !self.below.split().1.full() {
            self.out.advance(0);
            let mut bytes = match self.out.pop_memory(Vec::new()) {
                Some(Memory::Staged(bytes, from)) => bytes[from..].to_vec(),
                Some(Memory::Shared(bytes, range)) => bytes[range].to_vec(),
                None => self.read_file()?,
            };
            change(&mut bytes, self.sent);
            self.below.split().1.stage(&bytes);
            if !self.out.follows() {
                break;
            }
        }
        Ok(())
    }

    fn read_file(&mut self) -> Result<Vec<u8>, IoError> {
        let Some((file, range, _)) = self.out.file() else { return Ok(Vec::new()) };
        let mut bytes =
            vec![0; READ_BYTES.min(usize::try_from(range.end - range.start).unwrap_or(READ_BYTES))];
        match file.file.read_at(&mut bytes, range.start) {
            Ok(0) => Err(IoError::Truncated),
            Ok(count) => {
                bytes.truncate(count);
                self.out.advance(count as u64);
                Ok(bytes)
            }
            Err(error) => Err(IoError::System(error.raw_os_error().unwrap_or(0))),
        }
    }
}

impl<I: Io> Io for XorIo<'_, I> {
    fn split(&mut self) -> (&mut [u8], &mut Out) {
        (&mut self.input, &mut self.out)
    }

    fn consume(&mut self, count: usize) {
        self.input.drain(..count);
    }

    fn connection(&self) -> &Connection {
        self.below.connection()
    }

    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        room: usize,
        patience: Patience,
        by: Instant,
    ) -> Poll<Result<Received, IoError>> {
        let Some(room) = room.checked_sub(self.input.len()).filter(|&room| room > 0) else {
            return Poll::Ready(Ok(Received::Full));
        };
        // What is in hand here, the driver does not see: it must not take the connection for resting.
        let patience = if self.input.is_empty() { patience } else { Patience::Wait };
        // A blocking driver, and one with a ring, may have received more than it was asked for.
        if self.below.split().0.is_empty() {
            let received = ready!(self.below.poll_receive(cx, room, patience, by))?;
            if received != Received::Bytes {
                return Poll::Ready(Ok(received));
            }
        }
        let (bytes, _) = self.below.split();
        let count = bytes.len().min(room);
        change(&mut bytes[..count], self.received);
        self.input.extend_from_slice(&bytes[..count]);
        self.below.consume(count);
        Poll::Ready(Ok(Received::Bytes))
    }

    fn poll_lost(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<IoError> {
        self.below.poll_lost(cx, by)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<Result<(), IoError>> {
        loop {
            self.seal()?;
            ready!(self.below.poll_flush(cx, by))?;
            if self.out.is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>, how: Finish, by: Instant) -> Poll<()> {
        if !std::mem::replace(&mut self.closed, true) {
            self.out.stage(&[CLOSING_RECORD]);
        }
        // Where it can not be sent, the connection is over all the same.
        let _ = ready!(self.poll_flush(cx, by));
        self.below.poll_finish(cx, how, by)
    }

    fn delivered(&self) -> u64 {
        self.below.delivered()
    }

    fn draining(&self) -> bool {
        self.below.draining()
    }
}
