//! Output that a driver takes: it owns the bytes until the kernel has processed them, and then reports the
//! result.

use super::{Memory, Out, Segment, SendObserver};

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
        if matches!(self.segments.front()?, Segment::File(..) | Segment::Record(..) | Segment::Observer(_)) {
            return None;
        }
        let memory = match self.segments.pop_front()? {
            Segment::Shared(bytes, range) => Memory::Shared(bytes, range),
            Segment::Staged(count) | Segment::Alone(count) => {
                spare.extend_from_slice(&self.staged[self.gone..self.gone + count]);
                self.gone += count;
                Memory::Staged(spare, 0)
            }
            Segment::File(..) | Segment::Record(..) | Segment::Observer(_) => return None,
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
