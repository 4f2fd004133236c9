//! Plaintext that the protocol sends, sealed in order while the driver has room.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::format::{FileBytes, FileReader, Layer};
use super::kernel::KernelSealing;
use crate::io::IoError;
use crate::out::{Memory, Out, Part, SendObserver, SendReport};

pub(super) struct Sending<T> {
    /// The protocol's output.
    pub(super) out: Out,
    /// The piece at its front that is not completely sealed.
    piece: Option<PlainPiece>,
    /// A read of the file at its front.
    reading: Option<T>,
    /// Plaintext sealed since the last observer.
    sealed: u64,
    /// Memory for bytes read from files.
    buffer: Vec<u8>,
}

impl<T> Default for Sending<T> {
    fn default() -> Sending<T> {
        let (out, buffer) = (Out::new(), Vec::new());
        Sending { out, piece: None, reading: None, sealed: 0, buffer }
    }
}

struct PlainPiece {
    from: PieceSource,
    sealed: usize,
    /// Whether the next piece may be sent by the same call.
    joined: bool,
}

enum PieceSource {
    Memory(Memory),
    /// This many bytes of the buffer, read from a file.
    Buffer(usize),
}

impl PlainPiece {
    fn rest<'a>(&'a self, buffer: &'a [u8]) -> &'a [u8] {
        let all = match &self.from {
            PieceSource::Memory(Memory::Staged(bytes, from)) => &bytes[*from..],
            PieceSource::Memory(Memory::Shared(bytes, range)) => &bytes[range.clone()],
            PieceSource::Buffer(count) => &buffer[..*count],
        };
        &all[self.sealed..]
    }
}

impl<T> Sending<T>
where
    T: Future<Output = Option<Result<Vec<u8>, IoError>>> + Unpin,
{
    /// Seals into `to` until it is full, a file must be awaited, or a piece needs a separate call.
    pub(super) fn seal<L: Layer, F: FileReader<Later = T>>(
        &mut self,
        state: &mut L::State,
        to: &mut Out,
        files: &F,
    ) -> Result<(), IoError> {
        loop {
            self.pass_observers(to);
            if to.full() || self.reading.is_some() {
                return Ok(());
            }
            if self.piece.is_none() {
                self.take_piece(files)?;
            }
            let Some(piece) = &mut self.piece else { return Ok(()) };
            let count = L::seal(state, piece.rest(&self.buffer), to)?;
            piece.sealed += count;
            self.sealed += count as u64;
            if piece.rest(&self.buffer).is_empty() {
                let joined = piece.joined;
                self.piece = None;
                self.pass_observers(to);
                if !joined {
                    return Ok(());
                }
            }
        }
    }

    /// Passes plaintext to `to` for sealing by the kernel: the whole output, or a part of a longer response.
    pub(super) fn pass(&mut self, sealing: &mut KernelSealing, to: &mut Out) {
        let before = to.len();
        if self.out.len() <= KernelSealing::MOST_BYTES {
            to.append(std::mem::take(&mut self.out));
            self.sealed = 0;
        }
        while !self.out.is_empty() && to.len() - before < KernelSealing::MOST_BYTES {
            let begin = to.len();
            if let Some(memory) = self.out.pop_memory(Vec::new()) {
                match memory {
                    Memory::Staged(bytes, from) => to.stage(&bytes[from..]),
                    Memory::Shared(bytes, range) => to.push(Part::Shared(bytes, range)),
                }
            } else if let Some((file, range, _)) = self.out.file() {
                let end = range.end.min(range.start + KernelSealing::MOST_BYTES);
                to.push(Part::File(file.clone(), range.start..end));
                self.out.pop_file(end - range.start);
            }
            self.sealed += to.len() - begin;
            self.pass_observers(to);
        }
        sealing.count(to.len() - before);
    }

    /// Takes the next piece of the output, if one is available without waiting.
    fn take_piece<F: FileReader<Later = T>>(&mut self, files: &F) -> Result<(), IoError> {
        if let Some(memory) = self.out.pop_memory(Vec::new()) {
            let joined = self.out.follows();
            self.piece = Some(PlainPiece { from: PieceSource::Memory(memory), sealed: 0, joined });
        } else if let Some((file, range, _)) = self.out.file() {
            match files.read(file, range, &mut self.buffer)? {
                FileBytes::Now(count) => self.take_file(count),
                FileBytes::Later(reading) => self.reading = Some(reading),
            }
        }
        Ok(())
    }

    /// Takes the `count` bytes of the front file with which the buffer begins.
    fn take_file(&mut self, count: usize) {
        self.out.pop_file(count as u64);
        self.piece = Some(PlainPiece { from: PieceSource::Buffer(count), sealed: 0, joined: true });
    }

    /// Waits for the read of a file, if one is running, and takes its bytes. Sealed output is flushed before.
    pub(super) fn poll_file(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), IoError>> {
        const EIO: i32 = 5;
        let Some(reading) = &mut self.reading else { return Poll::Ready(Ok(())) };
        let read = ready!(Pin::new(reading).poll(cx));
        self.reading = None;
        // A reader that panicked has no result.
        self.buffer = read.unwrap_or(Err(IoError::System(EIO)))?;
        self.take_file(self.buffer.len());
        Poll::Ready(Ok(()))
    }
}

impl<T> Sending<T> {
    /// Whether all plaintext is sealed.
    pub(super) fn is_empty(&self) -> bool {
        self.piece.is_none() && self.out.is_empty()
    }

    /// Moves observers after the sealed form of the preceding bytes.
    fn pass_observers(&mut self, to: &mut Out) {
        if self.piece.is_none() {
            while let Some(observer) = self.out.pop_observer() {
                observe(observer, to, std::mem::take(&mut self.sealed), 0);
            }
        }
    }

    /// Stops sealing. Observers count unsealed plaintext, and sealed plaintext that is dropped, as unsent.
    pub(super) fn give_up(&mut self, to: &mut Out) {
        self.reading = None;
        let mut unsealed = self.piece.take().map_or(0, |piece| piece.rest(&self.buffer).len() as u64);
        loop {
            if let Some(observer) = self.out.pop_observer() {
                observe(observer, to, std::mem::take(&mut self.sealed), std::mem::take(&mut unsealed));
            } else if let Some(memory) = self.out.pop_memory(Vec::new()) {
                let piece = PlainPiece { from: PieceSource::Memory(memory), sealed: 0, joined: true };
                unsealed += piece.rest(&[]).len() as u64;
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

/// Adds an observer after the present output of `to`, and converts its report to plaintext: `sealed` bytes of
/// it are in `to`, and `unsealed` bytes are dropped. A partially sent record counts as unsent up to its
/// sealed length.
fn observe(observer: SendObserver, to: &mut Out, sealed: u64, unsealed: u64) {
    to.observe(Box::new(move |report| {
        let unsent = report.unsent.min(sealed) + unsealed;
        observer(SendReport { unsent, ..report });
    }));
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::io::SealedOutput;
    use crate::out::OpenFile;

    type NoRead = std::future::Ready<Option<Result<Vec<u8>, IoError>>>;

    const SIZE: u64 = (2 << 30) + 5;

    /// Passes on a response with a long file and a short response, and ends with `end`. Returns the
    /// observers' reports.
    fn pass(end: impl FnOnce(&mut Out)) -> Vec<u64> {
        let mut sending: Sending<NoRead> = Sending::default();
        let reports = Arc::new(Mutex::new(Vec::new()));
        let file = File::open("/dev/null").expect("Linux has it");
        sending.out.stage(b"head");
        sending.out.push(Part::File(Arc::new(OpenFile::new(file, SIZE)), 0..SIZE));
        for next in [&b"next"[..], b""] {
            let reports = reports.clone();
            let observer = move |report: SendReport| reports.lock().expect("no panic").push(report.unsent);
            sending.out.observe(Box::new(observer));
            sending.out.stage(next);
        }
        let mut sealing = KernelSealing::new(SealedOutput { queued: 0, record: 0 });
        let mut to = Out::new();
        let mut lengths = Vec::new();
        while !sending.is_empty() {
            let before = to.len();
            sending.pass(&mut sealing, &mut to);
            lengths.push(to.len() - before);
        }
        assert_eq!(lengths, [(1 << 30) + 4, 1 << 30, 9]);
        end(&mut to);
        drop(to);
        reports.lock().expect("no panic").clone()
    }

    #[test]
    fn a_long_response_is_passed_on_in_parts_and_observers_hear_of_whole_responses() {
        assert_eq!(pass(|to| to.advance(to.len())), [0, 0]);
        assert_eq!(pass(|to| to.clear(0)), [SIZE + 4, 4]);
        assert_eq!(pass(|to| to.advance(SIZE)), [4, 4]);
    }
}
