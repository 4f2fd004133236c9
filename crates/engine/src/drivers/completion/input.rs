//! What a connection has received: in the ring's buffer for the turn in which it came, and in
//! memory of its own for longer.

use super::ring::Buffer;

pub(super) struct Input<B> {
    /// Comes first, where there is any.
    own: Vec<u8>,
    consumed: usize,
    /// Read only while `own` is empty.
    buffer: Option<B>,
}

impl<B> Default for Input<B> {
    fn default() -> Input<B> {
        Input { own: Vec::new(), consumed: 0, buffer: None }
    }
}

impl<B: Buffer> Input<B> {
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        match &mut self.buffer {
            Some(buffer) if self.own.is_empty() => buffer,
            _ => &mut self.own[self.consumed..],
        }
    }

    pub(super) fn len(&self) -> usize {
        match &self.buffer {
            Some(buffer) if self.own.is_empty() => buffer.len(),
            _ => self.own.len() - self.consumed,
        }
    }

    pub(super) fn consume(&mut self, count: usize) {
        match &mut self.buffer {
            Some(buffer) if self.own.is_empty() => {
                buffer.consume(count);
                if buffer.is_empty() {
                    self.buffer = None;
                }
            }
            _ => {
                assert!(count <= self.own.len() - self.consumed, "no more is consumed than was received");
                self.consumed += count;
                if self.consumed == self.own.len() {
                    self.release_own();
                }
            }
        }
    }

    fn release_own(&mut self) {
        (self.own, self.consumed) = (Vec::new(), 0);
    }

    /// Takes bytes from the front of `source`, as many as leave at most `room` in hand; says how many.
    fn take(&mut self, source: &[u8], room: usize) -> usize {
        let count = source.len().min(room.saturating_sub(self.len()));
        if self.consumed > 0 {
            self.own.drain(..self.consumed);
            self.consumed = 0;
        }
        self.own.extend_from_slice(&source[..count]);
        count
    }

    /// Takes from bytes that came while nobody read.
    pub(super) fn take_from(&mut self, inbox: &mut Vec<u8>, room: usize) -> bool {
        self.settle();
        let count = self.take(inbox, room);
        inbox.drain(..count);
        count > 0
    }

    /// Takes a buffer that has just come: as it is, where nothing is in hand. What does not fit `room`
    /// goes to `rest`.
    pub(super) fn accept(&mut self, mut buffer: B, room: usize, rest: &mut Vec<u8>) {
        self.settle();
        if self.own.is_empty() && buffer.len() <= room {
            self.buffer = Some(buffer);
            return;
        }
        let count = self.take(&buffer, room);
        buffer.consume(count);
        rest.extend_from_slice(&buffer);
    }

    /// Before a wait: gives the ring its buffer back.
    pub(super) fn settle(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            debug_assert!(self.own.is_empty());
            self.own.extend_from_slice(&buffer);
        }
    }

    pub(super) fn release(&mut self) {
        self.buffer = None;
        self.release_own();
    }
}
