//! The output of a connection, in order.
//!
//! A response consists of staged bytes, shared bytes and files in any sequence. The responses to pipelined
//! requests are sent in one flush. A typical response has only staged bytes, in a single `Vec`.

mod source;
mod taken;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fs::File;
use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// A regular file opened for sending.
#[derive(Debug)]
pub struct OpenFile {
    /// The file. This crate does not read it.
    pub file: File,
    /// The size in bytes at the time of opening.
    pub size: u64,
    /// Whether a part of it was recently not in memory. For the engine; this crate does not use it.
    pub cold: AtomicBool,
    /// Whether a part of it was found in memory. For the engine.
    pub quick: AtomicBool,
    /// The time, in milliseconds of the clock, until which all of it counts as in memory. For the engine.
    pub resident_until: AtomicU64,
    _counted: CountedFile,
}

/// The number of [`OpenFile`] values in this process.
static OPEN_FILES: AtomicUsize = AtomicUsize::new(0);

/// Counts its file until it is dropped.
#[derive(Debug)]
struct CountedFile;

impl CountedFile {
    fn new() -> CountedFile {
        OPEN_FILES.fetch_add(1, Ordering::Relaxed);
        CountedFile
    }
}

impl Drop for CountedFile {
    fn drop(&mut self) {
        OPEN_FILES.fetch_sub(1, Ordering::Relaxed);
    }
}

impl OpenFile {
    /// Returns an open file that had `size` bytes.
    pub fn new(file: File, size: u64) -> OpenFile {
        let (cold, quick, resident_until) = (false.into(), false.into(), 0.into());
        OpenFile { file, size, cold, quick, resident_until, _counted: CountedFile::new() }
    }

    /// Returns the number of files that this process has open for sending.
    pub fn count() -> usize {
        OPEN_FILES.load(Ordering::Relaxed)
    }
}

/// A piece of output that is not copied to the staged bytes.
#[derive(Clone, Debug)]
pub enum Part {
    /// Bytes that several connections may send concurrently.
    Shared(Arc<[u8]>, Range<usize>),
    /// A range of a file.
    File(Arc<OpenFile>, Range<u64>),
}

/// The end of a body, of which each part is made when all earlier output has been sent or taken. A body of many
/// files thus keeps one of them open.
pub trait PartSource: Send {
    /// The bytes of all parts that are still to come.
    fn left(&self) -> u64;

    /// Makes the next part, which is not empty. It runs on the thread of the connection, and waits no longer than
    /// the opening of a file.
    fn next(&mut self) -> Part;
}

/// The result of sending the bytes between an observer and the previous observer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendReport {
    /// Bytes that were dropped instead of sent.
    pub unsent: u64,
    /// The number of calls or operations that sent the other bytes.
    pub sends: u32,
}

/// Called when the preceding bytes are sent or dropped.
pub type SendObserver = Box<dyn FnOnce(SendReport) + Send>;

/// A piece of output that a driver has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The bytes of the vector from this index on.
    Staged(Vec<u8>, usize),
    /// A range of shared bytes.
    Shared(Arc<[u8]>, Range<usize>),
}

/// The ordered output of a connection. Adding to it cannot fail. [`Out::full`] is checked before each
/// response, so at most one response exceeds the bound.
#[derive(Default)]
pub struct Out {
    /// Staged bytes; the first `gone` bytes have been sent.
    staged: Vec<u8>,
    gone: usize,
    /// All output before the last `tail` staged bytes, in order; typically empty.
    segments: VecDeque<Segment>,
    tail: usize,
    /// The number of calls that have sent bytes since the last observer was called.
    sends: u32,
    /// Bytes that a driver took but did not send.
    lost: u64,
    /// Whether the last piece taken must be sent by a separate call.
    popped_alone: bool,
}

impl Out {
    /// The bound of staged and shared bytes beyond which no further response begins.
    pub const MEMORY_BOUND: usize = 64 * 1024;
    /// The bound of parts beyond which no further response begins.
    pub const PARTS_BOUND: usize = 32;

    /// Returns an empty output without allocating.
    pub fn new() -> Out {
        Out::default()
    }

    /// Copies `bytes` to the end.
    #[inline]
    pub fn stage(&mut self, bytes: &[u8]) {
        self.staged.extend_from_slice(bytes);
        self.tail += bytes.len();
    }

    /// Lets `append` add bytes to the end of a vector, which has room for `count` more bytes. If it fails,
    /// nothing is added.
    pub fn stage_with<T, E>(
        &mut self,
        count: usize,
        append: impl FnOnce(&mut Vec<u8>) -> Result<T, E>,
    ) -> Result<T, E> {
        let begin = self.staged.len();
        self.staged.reserve(count);
        let appended = append(&mut self.staged);
        match appended {
            Ok(_) => self.tail += self.staged.len() - begin,
            Err(_) => self.staged.truncate(begin),
        }
        appended
    }

    /// Adds the bytes to the end that `append` appends to the staged bytes. Their first byte has the returned
    /// index, for [`Out::staged_at`].
    pub(crate) fn stage_by(&mut self, append: impl FnOnce(&mut Vec<u8>)) -> usize {
        let begin = self.staged.len();
        append(&mut self.staged);
        self.tail += self.staged.len() - begin;
        begin
    }

    /// Returns the staged byte at an index of [`Out::stage_by`], while nothing has been sent since.
    pub(crate) fn staged_at(&mut self, index: usize) -> &mut u8 {
        &mut self.staged[index]
    }

    /// Adds `part` to the end without copying it. An empty part is ignored. Panics if a range of shared bytes
    /// exceeds them.
    pub fn push(&mut self, part: Part) {
        let segment = Segment::of(part);
        if segment.len() > 0 {
            self.push_segment(segment);
        }
    }

    /// Copies `content` to the end as a record of type `kind`, which the kernel seals
    /// ([`crate::Io::seal_in_kernel`]).
    pub fn push_record(&mut self, kind: u8, content: &[u8]) {
        self.staged.extend_from_slice(content);
        self.push_segment(Segment::Record(kind, content.len()));
    }

    /// Returns the record at the front with its type.
    pub fn record(&self) -> Option<(u8, &[u8])> {
        match self.segments.front() {
            Some(Segment::Record(kind, count)) => Some((*kind, &self.staged[self.gone..self.gone + count])),
            _ => None,
        }
    }

    /// Calls `observer` when all preceding output has been sent or dropped.
    pub fn observe(&mut self, observer: SendObserver) {
        if self.is_empty() {
            observer(SendReport::default());
        } else {
            self.push_segment(Segment::Observer(observer));
        }
    }

    /// Like [`Out::observe`], but also waits if there is no output yet, because other output will precede the
    /// observer.
    pub(crate) fn observe_later(&mut self, observer: SendObserver) {
        self.push_segment(Segment::Observer(observer));
    }

    /// Returns the position after the last staged byte, for [`Out::isolate`].
    #[inline]
    pub(crate) fn mark(&self) -> usize {
        self.tail
    }

    /// Sends the bytes staged since `mark` by separate calls: one for all of them, or one for each line.
    /// Nothing may have been pushed since `mark`.
    #[cold]
    pub(crate) fn isolate(&mut self, mark: usize, by_line: bool) {
        let bytes = &self.staged[self.staged.len() - (self.tail - mark)..];
        let lengths: Vec<_> = match by_line {
            true => bytes.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::len).collect(),
            false => vec![bytes.len()],
        };
        self.tail = mark;
        for length in lengths {
            self.push_segment(Segment::Alone(length));
        }
    }

    /// Moves all of `other` to the end.
    pub fn append(&mut self, mut other: Out) {
        if self.is_empty() {
            (other.lost, other.sends, other.popped_alone) = (self.lost, self.sends, self.popped_alone);
            std::mem::swap(self, &mut other);
            return;
        }
        let mut at = other.gone;
        for segment in std::mem::take(&mut other.segments) {
            match segment {
                Segment::Staged(count) => {
                    self.stage(&other.staged[at..at + count]);
                    at += count;
                }
                Segment::Alone(count) => {
                    self.staged.extend_from_slice(&other.staged[at..at + count]);
                    self.push_segment(Segment::Alone(count));
                    at += count;
                }
                Segment::Record(kind, count) => {
                    self.push_record(kind, &other.staged[at..at + count]);
                    at += count;
                }
                other => self.push_segment(other),
            }
        }
        self.stage(&other.staged[at..]);
        other.tail = 0;
    }

    fn push_segment(&mut self, segment: Segment) {
        if self.tail > 0 {
            self.segments.push_back(Segment::Staged(std::mem::take(&mut self.tail)));
        }
        self.segments.push_back(segment);
    }

    /// Whether the next response must wait for a flush: the output has much memory, many parts, or a file.
    #[inline]
    pub fn full(&self) -> bool {
        let staged = self.staged.len() - self.gone;
        staged >= Out::MEMORY_BOUND || (!self.segments.is_empty() && self.has_full_segments(staged))
    }

    fn has_full_segments(&self, staged: usize) -> bool {
        let mut kept = staged;
        for segment in &self.segments {
            match segment {
                // A part of shared bytes keeps all of them in memory.
                Segment::Shared(bytes, _) => kept += bytes.len(),
                // Otherwise, a client that does not read would keep many files open.
                Segment::File(..) | Segment::Source(_) => return true,
                _ => {}
            }
        }
        self.segments.len() >= Out::PARTS_BOUND || kept >= Out::MEMORY_BOUND
    }

    /// Whether there is no output.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tail == 0 && self.segments.is_empty()
    }

    /// Returns the memory for staged bytes, which belong to this output only. The memory of sent bytes is kept until all
    /// are sent.
    pub(crate) fn staged_memory(&self) -> usize {
        self.staged.len()
    }

    /// Returns the shared bytes of which parts are in the output. A part keeps all of them in memory.
    pub(crate) fn shared(&self) -> impl Iterator<Item = &Arc<[u8]>> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Shared(bytes, _) => Some(bytes),
            _ => None,
        })
    }

    /// Whether there are bytes to send. Observers have none.
    pub(crate) fn has_bytes(&self) -> bool {
        self.tail > 0 || self.segments.iter().any(|segment| segment.len() > 0)
    }

    /// Returns the number of bytes to send.
    pub fn len(&self) -> u64 {
        self.tail as u64 + self.segments.iter().map(Segment::len).sum::<u64>()
    }

    /// Returns the output if it has only staged bytes, which is typical.
    #[inline]
    pub fn staged_alone(&self) -> Option<&[u8]> {
        self.segments.is_empty().then(|| &self.staged[self.gone..])
    }

    /// Fills `slices` with the bytes in memory that a single call can send: up to the first file, or up to
    /// bytes that need a separate call. Returns the number of filled slices, and whether more output follows
    /// in the same batch.
    pub fn memory<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> (usize, bool) {
        let (mut at, mut filled, mut taken) = (self.gone, 0, 0);
        for segment in &self.segments {
            let alone = matches!(segment, Segment::Alone(_));
            let bytes: &[u8] = match segment {
                Segment::Alone(_) if filled > 0 => return (filled, false),
                Segment::Record(..) => return (filled, false),
                Segment::Staged(count) | Segment::Alone(count) => {
                    at += count;
                    &self.staged[at - count..at]
                }
                Segment::Shared(bytes, range) => &bytes[range.clone()],
                Segment::File(..) | Segment::Source(_) => return (filled, true),
                Segment::Observer(_) => {
                    taken += 1;
                    continue;
                }
            };
            if filled == slices.len() {
                return (filled, true);
            }
            slices[filled] = IoSlice::new(bytes);
            if alone {
                return (1, false);
            }
            (filled, taken) = (filled + 1, taken + 1);
        }
        debug_assert_eq!(taken, self.segments.len());
        if self.tail == 0 {
            return (filled, false);
        }
        if filled == slices.len() {
            return (filled, true);
        }
        slices[filled] = IoSlice::new(&self.staged[at..]);
        (filled + 1, false)
    }

    /// Returns the file at the front, its range to send, and whether more output follows in the same batch.
    #[inline]
    pub fn file(&self) -> Option<(&Arc<OpenFile>, Range<u64>, bool)> {
        match self.segments.front() {
            Some(Segment::File(file, range)) => Some((file, range.clone(), self.goes_on(1))),
            _ => None,
        }
    }

    /// Returns the file at the front, and its range to send. The range includes the parts of the file that continue it
    /// after staged bytes.
    pub(crate) fn file_ahead(&self) -> Option<(&Arc<OpenFile>, Range<u64>)> {
        let mut segments = self.segments.iter();
        let Some(Segment::File(file, range)) = segments.next() else { return None };
        let mut end = range.end;
        for segment in segments {
            match segment {
                Segment::File(other, next) if Arc::ptr_eq(other, file) && next.start == end => end = next.end,
                Segment::Staged(_) | Segment::Observer(_) => {}
                _ => break,
            }
        }
        Some((file, range.start..end))
    }

    /// Whether output from segment `index` on can be sent in a batch with the output before it.
    fn goes_on(&self, index: usize) -> bool {
        match self.segments.iter().skip(index).find(|segment| !matches!(segment, Segment::Observer(_))) {
            Some(segment) => !matches!(segment, Segment::Alone(_) | Segment::Record(..)),
            None => self.tail > 0,
        }
    }

    /// Returns the first file of the output and its range to send. It follows the bytes of [`Out::memory`],
    /// if that returned all of them.
    pub fn next_file(&self) -> Option<(&Arc<OpenFile>, Range<u64>)> {
        let is_source = |segment: &&Segment| matches!(segment, Segment::Source(_));
        self.segments.iter().take_while(|segment| !is_source(segment)).find_map(|segment| match segment {
            Segment::File(file, range) => Some((file, range.clone())),
            _ => None,
        })
    }

    /// Drops the first `count` bytes, which have been sent. Panics if there are fewer.
    #[inline]
    pub fn advance(&mut self, count: u64) {
        if self.segments.is_empty() {
            self.drop_tail(count);
            self.sends += u32::from(count > 0);
        } else {
            self.advance_segments(count);
        }
        self.rewind_where_empty();
    }

    /// Resets the output if it has neither bytes nor observers. Otherwise its front is a part.
    #[inline]
    fn rewind_where_empty(&mut self) {
        if self.is_empty() {
            self.staged.clear();
            (self.gone, self.sends) = (0, 0);
        } else if matches!(self.segments.front(), Some(Segment::Source(_))) {
            self.unfold();
        }
    }

    fn advance_segments(&mut self, mut count: u64) {
        // A call may send the end of one response and the beginning of the next: it counts for both.
        let mut counted = false;
        while let Some(segment) = self.segments.front_mut() {
            let step = count.min(segment.len());
            count -= step;
            if step > 0 && !std::mem::replace(&mut counted, true) {
                self.sends += 1;
            }
            self.gone += segment.drop_first(step);
            if segment.len() > 0 {
                return;
            }
            if let Some(Segment::Observer(observer)) = self.segments.pop_front() {
                observer(SendReport { unsent: 0, sends: std::mem::take(&mut self.sends) });
                counted = false;
            }
        }
        self.sends += u32::from(count > 0 && !counted);
        self.drop_tail(count);
    }

    #[inline]
    fn drop_tail(&mut self, count: u64) {
        let count = usize::try_from(count).expect("staged bytes fit a usize");
        self.tail = self.tail.checked_sub(count).expect("no more bytes are sent than were staged");
        self.gone += count;
    }

    /// Drops all output, and reports the unsent bytes to the observers. Keeps at most `capacity` bytes of
    /// memory.
    #[inline]
    pub fn clear(&mut self, capacity: usize) {
        let (unsent, sends) = (std::mem::take(&mut self.lost), std::mem::take(&mut self.sends));
        if !self.segments.is_empty() {
            self.drop_segments(SendReport { unsent, sends });
        }
        self.staged.clear();
        (self.gone, self.tail) = (0, 0);
        if self.staged.capacity() > capacity {
            self.staged.shrink_to(capacity);
        }
        if self.segments.capacity() > Out::PARTS_BOUND {
            self.segments.shrink_to(Out::PARTS_BOUND);
        }
    }

    /// Out of line, because a typical output has no segments.
    #[cold]
    fn drop_segments(&mut self, mut report: SendReport) {
        for segment in self.segments.drain(..) {
            report.unsent += segment.len();
            if let Segment::Observer(observer) = segment {
                observer(std::mem::take(&mut report));
            }
        }
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        self.clear(0);
    }
}

/// A piece of the output.
enum Segment {
    Staged(usize),
    /// Staged bytes that a separate call sends.
    Alone(usize),
    /// Staged bytes sent as a record of this type.
    Record(u8, usize),
    Shared(Arc<[u8]>, Range<usize>),
    File(Arc<OpenFile>, Range<u64>),
    /// Further parts; never at the front.
    Source(Box<dyn PartSource>),
    Observer(SendObserver),
}

impl Segment {
    /// Returns the segment of a part. Panics if a range of shared bytes exceeds them.
    fn of(part: Part) -> Segment {
        match part {
            Part::Shared(bytes, range) => {
                assert!(range.end <= bytes.len(), "the range {range:?} exceeds {} bytes", bytes.len());
                Segment::Shared(bytes, range)
            }
            Part::File(file, range) => Segment::File(file, range),
        }
    }

    /// Returns the number of bytes to send.
    fn len(&self) -> u64 {
        match self {
            Segment::Staged(count) | Segment::Alone(count) | Segment::Record(_, count) => *count as u64,
            Segment::Shared(_, range) => range.len() as u64,
            Segment::File(_, range) => range.end.saturating_sub(range.start),
            Segment::Source(source) => source.left(),
            Segment::Observer(_) => 0,
        }
    }

    /// Drops the first `count` bytes. Returns the number of staged bytes among them.
    fn drop_first(&mut self, count: u64) -> usize {
        assert!(count <= self.len(), "{count} bytes are dropped from a piece of {}", self.len());
        match self {
            Segment::Staged(left) | Segment::Alone(left) | Segment::Record(_, left) => {
                *left -= count as usize;
                return count as usize;
            }
            Segment::Shared(_, range) => range.start += count as usize,
            Segment::File(_, range) => range.start += count,
            Segment::Source(_) => assert!(count == 0, "bytes were sent before they were made"),
            Segment::Observer(_) => {}
        }
        0
    }
}
