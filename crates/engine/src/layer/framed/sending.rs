//! Plaintext that the protocol sends: it is sealed, in order, while the driver has room.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tenfold_http::{IoError, Memory, Out, SendObserver, SendReport};

use super::files::{Read, read};
use super::record::{CONTENT_BYTES, Key, Kind};
use crate::dispatch::offload::{Coming, Lane};

#[derive(Default)]
pub(super) struct Sending {
    /// The protocol's output.
    pub(super) out: Out,
    /// Memory from the front of it that is not all sealed.
    piece: Option<Piece>,
    /// A read of the file at its front.
    reading: Option<Coming<Result<Vec<u8>, IoError>>>,
    /// Plaintext that was sealed since the last observer.
    sealed: u64,
    record: Vec<u8>,
}

struct Piece {
    memory: Memory,
    sealed: usize,
    /// Whether the next piece may leave by the same call.
    joined: bool,
}

impl Piece {
    fn rest(&self) -> &[u8] {
        let all = match &self.memory {
            Memory::Staged(bytes, from) => &bytes[*from..],
            Memory::Shared(bytes, range) => &bytes[range.clone()],
        };
        &all[self.sealed..]
    }
}

impl Sending {
    /// Whether all plaintext is sealed.
    pub(super) fn is_empty(&self) -> bool {
        self.piece.is_none() && self.out.is_empty()
    }

    /// Seals into `to` until that is full, a file has to be waited for, or a piece has to leave by its own call.
    pub(super) fn seal(&mut self, key: &mut Key, to: &mut Out, lane: &Lane) -> Result<(), IoError> {
        loop {
            self.pass_observers(to);
            if to.full() || self.reading.is_some() {
                return Ok(());
            }
            if self.piece.is_none() {
                self.take_piece(lane)?;
            }
            let Some(piece) = &mut self.piece else { return Ok(()) };
            let content = &piece.rest()[..piece.rest().len().min(CONTENT_BYTES)];
            let count = content.len();
            self.record.clear();
            key.seal(Kind::Data, content, &mut self.record);
            to.stage(&self.record);
            piece.sealed += count;
            self.sealed += count as u64;
            if piece.rest().is_empty() {
                let joined = piece.joined;
                self.piece = None;
                self.pass_observers(to);
                if !joined {
                    return Ok(());
                }
            }
        }
    }

    /// Takes the next piece of the output, if there is one and it need not be waited for.
    fn take_piece(&mut self, lane: &Lane) -> Result<(), IoError> {
        if let Some(memory) = self.out.pop_memory(Vec::new()) {
            let joined = self.out.follows();
            self.piece = Some(Piece { memory, sealed: 0, joined });
        } else if let Some((file, range, _)) = self.out.file() {
            match read(file, range, lane)? {
                Read::Now(bytes) => self.take_file(bytes),
                Read::Later(coming) => self.reading = Some(coming),
            }
        }
        Ok(())
    }

    /// These bytes were read of the file at the front.
    fn take_file(&mut self, bytes: Vec<u8>) {
        self.out.pop_file(bytes.len() as u64);
        self.piece = Some(Piece { memory: Memory::Staged(bytes, 0), sealed: 0, joined: true });
    }

    /// Whether a file is being read. Output that is sealed is flushed before it is waited for.
    pub(super) fn poll_file(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), IoError>> {
        const EIO: i32 = 5;
        let Some(reading) = &mut self.reading else { return Poll::Ready(Ok(())) };
        let read = ready!(Pin::new(reading).poll(cx));
        self.reading = None;
        // There is no result if the reader panicked.
        self.take_file(read.unwrap_or(Err(IoError::System(EIO)))?);
        Poll::Ready(Ok(()))
    }

    /// Puts observers behind the sealed form of the bytes in front of them: they hear when that has left.
    fn pass_observers(&mut self, to: &mut Out) {
        if self.piece.is_none() {
            while let Some(observer) = self.out.pop_observer() {
                observe(observer, to, std::mem::take(&mut self.sealed), 0);
            }
        }
    }

    /// Nothing more is sealed. Observers hear of the bytes that were not, and of those that were and never leave.
    pub(super) fn give_up(&mut self, to: &mut Out) {
        self.reading = None;
        let mut unsealed = self.piece.take().map_or(0, |piece| piece.rest().len() as u64);
        loop {
            if let Some(observer) = self.out.pop_observer() {
                observe(observer, to, std::mem::take(&mut self.sealed), std::mem::take(&mut unsealed));
            } else if let Some(memory) = self.out.pop_memory(Vec::new()) {
                unsealed += Piece { memory, sealed: 0, joined: true }.rest().len() as u64;
            } else if let Some((_, range, _)) = self.out.file() {
                let count = range.end - range.start;
                self.out.pop_file(count);
                unsealed += count;
            } else {
                return;
            }
        }
    }
}

/// Calls `observer` when the bytes now in `to` have left or never will. It counts plaintext: `sealed` bytes of it are
/// in `to`, and `unsealed` ones never get there. A record that left in part counts as unsent up to its sealed length.
fn observe(observer: SendObserver, to: &mut Out, sealed: u64, unsealed: u64) {
    to.observe(Box::new(move |report| {
        let unsent = report.unsent.min(sealed) + unsealed;
        observer(SendReport { unsent, ..report });
    }));
}
