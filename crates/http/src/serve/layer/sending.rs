//! Plaintext that the protocol sends, sealed in order while the driver has room.

use std::future::Future;
use std::io::IoSlice;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::format::{FileBytes, FileReader, Layer};
use super::kernel::KernelSealing;
use crate::io::IoError;
use crate::out::{Memory, Out, Part, SendObserver, SendReport};

/// The end of the output that is sealed although the driver's output is full, because a call for it would cost
/// more. A head and a body of 64 KiB thus need one call.
const REST_BYTES: u64 = 2000;

pub(super) struct Sending<T> {
    /// The protocol's output.
    pub(super) out: Out,
    /// Bytes read from files. `chunk` is the part that is not sealed yet: the beginning of the first file, and of the
    /// parts that continue it after staged bytes.
    buffer: Vec<u8>,
    chunk: Range<usize>,
    /// A read of the file at the front.
    reading: Option<T>,
    /// Plaintext taken from the output since the last observer.
    taken: u64,
    /// Observers of taken plaintext.
    observers: Observers,
}

impl<T> Default for Sending<T> {
    fn default() -> Sending<T> {
        let (out, buffer, observers) = (Out::new(), Vec::new(), Observers::default());
        Sending { out, buffer, chunk: 0..0, reading: None, taken: 0, observers }
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
            self.take_observers();
            self.observers.pass(to);
            let left = self.out.len();
            if left == 0 || (left > REST_BYTES && to.full()) || !self.is_in_memory(files)? {
                return Ok(());
            }
            let filled = L::seal(state, left, to, |content, most| self.fill(content, most, files));
            self.observers.lost = filled.is_err();
            self.take_observers();
            self.observers.pass(to);
            if !filled?? {
                return Ok(());
            }
        }
    }

    /// Moves plaintext, whose beginning is in memory, to the end of `content`, at most `most` bytes. Returns
    /// whether the next plaintext may be sent by the same call.
    fn fill<F: FileReader<Later = T>>(
        &mut self,
        content: &mut Vec<u8>,
        most: usize,
        files: &F,
    ) -> Result<bool, IoError> {
        let end = content.len() + most;
        while content.len() < end {
            let mut slices = [IoSlice::new(&[])];
            let (piece, joined) = match self.out.file() {
                Some((_, range, joined)) => {
                    let part = range.end - range.start;
                    let piece = &self.buffer[self.chunk.clone()];
                    let piece = &piece[..piece.len().min(usize::try_from(part).unwrap_or(usize::MAX))];
                    self.chunk.start += piece.len().min(end - content.len());
                    (piece, joined || part > piece.len() as u64)
                }
                None => {
                    let (_, joined) = self.out.memory(&mut slices);
                    (&*slices[0], joined)
                }
            };
            let count = piece.len().min(end - content.len());
            let is_last = count == piece.len() && !joined;
            content.extend_from_slice(&piece[..count]);
            self.out.pop_bytes(count as u64);
            self.taken += count as u64;
            if is_last {
                return Ok(false);
            }
            self.take_observers();
            if !self.is_in_memory(files)? {
                break;
            }
        }
        Ok(true)
    }

    /// Passes plaintext to `to` for sealing by the kernel: the whole output, or a part of a longer response.
    pub(super) fn pass(&mut self, sealing: &mut KernelSealing, to: &mut Out) {
        let before = to.len();
        if self.out.len() <= KernelSealing::MOST_BYTES {
            to.append(std::mem::take(&mut self.out));
            self.taken = 0;
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
                self.out.pop_bytes(end - range.start);
            }
            self.taken += to.len() - begin;
            self.take_observers();
            self.observers.pass(to);
        }
        sealing.count(to.len() - before);
    }

    /// Whether the front of the output is in memory. Reads the file at the front if that needs no wait.
    fn is_in_memory<F: FileReader<Later = T>>(&mut self, files: &F) -> Result<bool, IoError> {
        if self.chunk.is_empty()
            && self.reading.is_none()
            && let Some((file, range)) = self.out.file_ahead()
        {
            match files.read(file, range, &mut self.buffer)? {
                FileBytes::Now(count) => self.chunk = 0..count,
                FileBytes::Later(reading) => self.reading = Some(reading),
            }
        }
        Ok(self.reading.is_none())
    }

    /// Waits for the read of a file, if one is running, and takes its bytes. Sealed output is flushed before.
    pub(super) fn poll_file(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), IoError>> {
        const EIO: i32 = 5;
        let Some(reading) = &mut self.reading else { return Poll::Ready(Ok(())) };
        let read = ready!(Pin::new(reading).poll(cx));
        self.reading = None;
        // A reader that panicked has no result.
        self.buffer = read.unwrap_or(Err(IoError::System(EIO)))?;
        self.chunk = 0..self.buffer.len();
        Poll::Ready(Ok(()))
    }
}

impl<T> Sending<T> {
    /// Whether all plaintext is sealed.
    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Takes the observers at the front of the output.
    fn take_observers(&mut self) {
        while let Some(observer) = self.out.pop_observer() {
            self.observers.add(observer, std::mem::take(&mut self.taken), 0);
        }
    }

    /// Stops sealing. Observers count unsealed plaintext, and sealed plaintext that is dropped, as unsent.
    pub(super) fn give_up(&mut self, to: &mut Out) {
        (self.reading, self.chunk) = (None, 0..0);
        self.observers.pass(to);
        while let (unsealed, Some(observer)) = self.out.drop_to_observer() {
            self.observers.add(observer, std::mem::take(&mut self.taken), unsealed);
            self.observers.pass(to);
        }
    }
}

/// Observers that follow the next record.
#[derive(Default)]
struct Observers {
    first: Option<PlainObserver>,
    /// Observers whose plaintext is in that record only.
    more: Vec<PlainObserver>,
    /// Whether the record could not be sealed.
    lost: bool,
}

/// An observer of plaintext. Since the previous observer, `taken` bytes were taken to be sealed, and
/// `unsealed` bytes dropped.
struct PlainObserver {
    observer: SendObserver,
    taken: u64,
    unsealed: u64,
}

impl Observers {
    fn add(&mut self, observer: SendObserver, taken: u64, unsealed: u64) {
        let added = PlainObserver { observer, taken, unsealed };
        match self.first {
            None => self.first = Some(added),
            Some(_) => self.more.push(added),
        }
    }

    /// Adds the observers after the present output of `to`.
    fn pass(&mut self, to: &mut Out) {
        let Some(first) = self.first.take() else { return };
        let (more, lost) = (std::mem::take(&mut self.more), self.lost);
        to.observe(Box::new(move |report| {
            let unsent = if lost { u64::MAX } else { report.unsent };
            first.report(SendReport { unsent, ..report });
            // A record that was sent only in part delivers no plaintext.
            let unsent = if unsent > 0 { u64::MAX } else { 0 };
            let report = SendReport { unsent, sends: report.sends.min(1) };
            more.into_iter().for_each(|observer| observer.report(report));
        }));
    }
}

impl PlainObserver {
    /// Converts the report on sealed bytes. A partially sent record counts as unsent up to its sealed length.
    fn report(self, report: SendReport) {
        let unsent = report.unsent.min(self.taken) + self.unsealed;
        (self.observer)(SendReport { unsent, ..report });
    }
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
