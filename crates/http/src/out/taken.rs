//! Output that a driver takes over: it owns the bytes until the kernel is done with them, and then reports their fate.

use super::{Memory, Out, Segment, SendObserver};

impl Out {
    /// Moves the first piece of memory out of the front, for a driver that owns bytes until the kernel is
    /// done with them. Staged bytes come in a vector: the stage itself if there is nothing else, with
    /// `spare` in its place, otherwise a copy in `spare`. Returns none if nothing, a file or a record is at the
    /// front.
    /// [`Out::follows`] tells whether the next piece goes with it.
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
        // An observer hears when what is before it has left: see `advance`.
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

    /// Moves the first `count` bytes out of the file at the front, for a driver that has read or mapped them and owns
    /// them until the kernel is done with them: they count as a piece. An observer behind them hears of it when the driver
    /// says so, with [`Out::advance`] or [`Out::lose`]. Panics if there is no file, or if it is shorter.
    pub fn pop_file(&mut self, count: u64) {
        let Some(Segment::File(_, range)) = self.segments.front_mut() else {
            panic!("{count} bytes are moved out of a file, and none is at the front")
        };
        assert!(count <= range.end - range.start, "{count} bytes are moved out of {range:?}");
        range.start += count;
        self.sends += u32::from(count > 0);
        if range.is_empty() {
            self.segments.pop_front();
        }
        self.rewind_where_empty();
    }

    /// Moves the observer at the front out, if there is one, for a layer that sends its own form of the bytes in front of
    /// it: the layer puts the observer behind that form.
    pub fn pop_observer(&mut self) -> Option<SendObserver> {
        if !matches!(self.segments.front()?, Segment::Observer(_)) {
            return None;
        }
        let Some(Segment::Observer(observer)) = self.segments.pop_front() else { return None };
        self.sends = 0;
        self.rewind_where_empty();
        Some(observer)
    }

    /// Counts bytes that were moved out and never left: the next observer hears of them when everything is dropped.
    pub fn lose(&mut self, count: u64) {
        self.lost = count;
    }

    /// Whether the front of the output goes with the memory that was moved out last.
    pub fn follows(&self) -> bool {
        !self.popped_alone && self.goes_on(0)
    }
}
