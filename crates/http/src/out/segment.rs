//! The pieces of which output consists.

use std::ops::Range;
use std::sync::Arc;

use super::{OpenFile, SendObserver};

/// One of them.
pub(super) enum Segment {
    Staged(usize),
    /// Staged bytes that leave by a call of their own.
    Alone(usize),
    /// Staged bytes that leave as a record of this type.
    Record(u8, usize),
    Shared(Arc<[u8]>, Range<usize>),
    File(Arc<OpenFile>, Range<u64>),
    Observer(SendObserver),
}

impl Segment {
    /// Bytes of it that are still to be sent.
    pub(super) fn len(&self) -> u64 {
        match self {
            Segment::Staged(count) | Segment::Alone(count) | Segment::Record(_, count) => *count as u64,
            Segment::Shared(_, range) => range.len() as u64,
            Segment::File(_, range) => range.end.saturating_sub(range.start),
            Segment::Observer(_) => 0,
        }
    }
}
