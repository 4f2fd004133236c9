//! Output that a driver takes: it owns the bytes until the kernel has processed them, and then reports the
//! result.

use super::{Memory, Out, Part, Segment, SendObserver};

/// The most shared bytes that are copied to another output: a part costs more.
const COPIED: u64 = 4096;

impl Out {
    /// Takes the first piece of memory, for a driver that owns bytes until the kernel has processed them.
    /// Staged bytes come in a vector. If there is no other output, it is the stage itself, which `spare`
    /// replaces; otherwise the bytes are copied to `spare`. Returns `None` at a file, a record, an observer
    /// or the end. [`Out::follows`] returns whether the next piece belongs to the same batch.
    pub fn pop_memory(&mut self, mut spare: Vec<u8>) -> Option<Memory> {
        debug_assert!(spare.is_empty());
        self.popped_alone = matches!(self.segments.front(), Some(Segment::Alone(_)));
        if self.segments.is_empty() {
            if self.tail == 0 {
                return None;
            }
            (self.tail, self.sends) = (0, 0);
            let from = std::mem::take(&mut self.gone);
            return Some(Memory::Staged(std::mem::replace(&mut self.staged, spare), from));
        }
        // An observer waits until the preceding bytes are sent: see `advance`.
        let is_memory = |segment: &Segment| {
            matches!(segment, Segment::Shared(..) | Segment::Staged(_) | Segment::Alone(_))
        };
        if !is_memory(self.segments.front()?) {
            return None;
        }
        let memory = match self.segments.pop_front()? {
            Segment::Shared(bytes, range) => Memory::Shared(bytes, range),
            Segment::Staged(count) | Segment::Alone(count) => {
                spare.extend_from_slice(&self.staged[self.gone..self.gone + count]);
                self.gone += count;
                Memory::Staged(spare, 0)
            }
            _ => return None,
        };
        self.sends += 1;
        self.rewind_where_empty();
        Some(memory)
    }

    /// Takes the first `count` bytes of the piece at the front, for a driver that has read or mapped a file, or
    /// for a layer that has copied them. A driver reports their result to the next observer with
    /// [`Out::advance`] or [`Out::lose`]. Panics if the piece is shorter.
    pub fn pop_bytes(&mut self, count: u64) {
        debug_assert!(count > 0);
        match self.segments.front_mut() {
            Some(segment) => {
                self.gone += segment.drop_first(count);
                if segment.len() == 0 {
                    self.segments.pop_front();
                }
            }
            None => self.drop_tail(count),
        }
        self.sends += 1;
        self.rewind_where_empty();
    }

    /// Takes the observer at the front, if there is one, for a layer that sends its own form of the preceding
    /// bytes. The layer adds the observer after that form.
    pub fn pop_observer(&mut self) -> Option<SendObserver> {
        if !matches!(self.segments.front()?, Segment::Observer(_)) {
            return None;
        }
        let Some(Segment::Observer(observer)) = self.segments.pop_front() else { return None };
        self.sends = 0;
        self.rewind_where_empty();
        Some(observer)
    }

    /// Moves the first `count` bytes to the end of `to`, and the observers that follow them. Short parts of shared bytes
    /// are copied. Panics if there are fewer.
    pub(crate) fn take_front(&mut self, count: u64, to: &mut Out) {
        let mut left = count;
        while let Some(segment) = self.segments.front_mut() {
            if matches!(segment, Segment::Source(_)) {
                self.unfold();
                continue;
            }
            let step = left.min(segment.len());
            left -= step;
            match segment {
                Segment::Staged(size) | Segment::Alone(size) | Segment::Record(_, size) => {
                    to.stage(&self.staged[self.gone..self.gone + step as usize]);
                    *size -= step as usize;
                    self.gone += step as usize;
                }
                Segment::Shared(bytes, range) if step <= COPIED => {
                    let end = range.start + step as usize;
                    to.stage(&bytes[range.start..end]);
                    range.start = end;
                }
                Segment::Shared(bytes, range) => {
                    let end = range.start + step as usize;
                    to.push(Part::Shared(bytes.clone(), range.start..end));
                    range.start = end;
                }
                Segment::File(file, range) => {
                    let end = range.start + step;
                    to.push(Part::File(file.clone(), range.start..end));
                    range.start = end;
                }
                // A source is not at the front.
                Segment::Observer(_) | Segment::Source(_) => {}
            }
            if segment.len() > 0 {
                return;
            }
            if let Some(Segment::Observer(observer)) = self.segments.pop_front() {
                to.observe(observer);
            }
        }
        let step = usize::try_from(left).expect("staged bytes fit a usize");
        self.tail = self.tail.checked_sub(step).expect("no more bytes are taken than were added");
        to.stage(&self.staged[self.gone..self.gone + step]);
        self.gone += step;
        self.rewind_where_empty();
    }

    /// Drops the output up to the next observer. Returns the number of dropped bytes, and the observer.
    pub(crate) fn drop_to_observer(&mut self) -> (u64, Option<SendObserver>) {
        let mut dropped = 0;
        while let Some(mut segment) = self.segments.pop_front() {
            dropped += segment.len();
            match segment {
                Segment::Observer(observer) => {
                    self.sends = 0;
                    return (dropped, Some(observer));
                }
                // Its parts are not made.
                Segment::Source(_) => {}
                _ => self.gone += segment.drop_first(segment.len()),
            }
        }
        dropped += self.tail as u64;
        self.drop_tail(self.tail as u64);
        self.rewind_where_empty();
        (dropped, None)
    }

    /// Records bytes that a driver took but did not send. The next observer receives their number when the
    /// output is dropped.
    pub fn lose(&mut self, count: u64) {
        self.lost = count;
    }

    /// Whether the front of the output belongs to the batch of the last piece taken.
    pub fn follows(&self) -> bool {
        !self.popped_alone && self.goes_on(0)
    }
}
