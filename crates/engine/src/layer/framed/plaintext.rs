//! Plaintext that was received: a record may hold more of it than the protocol asked for.

use std::ops::Range;

#[derive(Default)]
pub(super) struct Plaintext {
    bytes: Vec<u8>,
    /// The part that the protocol sees. The bytes behind it wait until it asks for more.
    shown: Range<usize>,
}

impl Plaintext {
    pub(super) fn shown(&mut self) -> &mut [u8] {
        &mut self.bytes[self.shown.clone()]
    }

    pub(super) fn shown_len(&self) -> usize {
        self.shown.len()
    }

    /// Whether bytes wait that the protocol does not see.
    pub(super) fn has_hidden(&self) -> bool {
        self.shown.end < self.bytes.len()
    }

    /// Shows as many bytes as fit `room`.
    pub(super) fn show(&mut self, room: usize) {
        self.shown.end = self.bytes.len().min(self.shown.start + room);
    }

    pub(super) fn consume(&mut self, count: usize) {
        assert!(count <= self.shown.len(), "no more is consumed than was received");
        self.shown.start += count;
        if self.shown.start == self.bytes.len() {
            self.bytes.clear();
            self.shown = 0..0;
        }
    }

    /// Appends the plaintext of a record; it is hidden.
    pub(super) fn push(&mut self, plaintext: &[u8]) {
        self.bytes.drain(..self.shown.start);
        self.shown = 0..self.shown.len();
        self.bytes.extend_from_slice(plaintext);
    }
}
