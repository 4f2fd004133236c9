//! Output whose parts are made when the output before them has left.

use super::{Out, PartSource, Segment};

impl Out {
    /// Adds the parts of `source` to the end.
    pub(crate) fn push_source(&mut self, source: Box<dyn PartSource>) {
        if source.left() > 0 {
            self.push_segment(Segment::Source(source));
            self.unfold();
        }
    }

    /// Puts the next part of a source at the front before the source. Drivers thus find parts at the front.
    #[cold]
    pub(super) fn unfold(&mut self) {
        let Some(Segment::Source(source)) = self.segments.front_mut() else { return };
        let before = source.left();
        let part = Segment::of(source.next());
        debug_assert!(part.len() > 0 && part.len() + source.left() == before);
        if source.left() == 0 {
            self.segments.pop_front();
        }
        self.segments.push_front(part);
    }
}
