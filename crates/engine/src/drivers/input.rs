//! Received bytes that are not consumed yet, and their memory.
//!
//! A worker has one large buffer, and lends it to the connection that it serves. A connection that waits with an
//! incomplete message gets memory of its own, which grows with the message. A blocking receive needs a buffer during
//! its whole wait; this buffer starts small and grows with the input.
//!
//! A ring provides bytes in its own buffer. The task reads them there. When the connection waits, they move to memory
//! of the connection.

use std::cell::Cell;
use std::ops::{Deref, DerefMut, Range};

/// Bytes of the lent buffer: room for the largest head, or for many pipelined requests.
pub(crate) const LENT_BYTES: usize = 64 * 1024;
const SMALLEST: usize = 512;
/// The first size of the buffer of a blocking receive: a browser's head fits, and a thousand silent connections use two
/// megabytes.
const FIRST_BYTES: usize = 2048;

thread_local! {
    static LENT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The buffer of a completed receive. A connection keeps it for at most one tick.
pub(crate) trait ReceiveBuffer: DerefMut<Target = [u8]> {
    /// Drops the first `count` bytes; the buffer has at least `count`.
    fn consume(&mut self, count: usize);
}

/// The buffer type of drivers that receive into memory of the connection; it has no value.
pub(crate) enum NoBuffer {}

impl Deref for NoBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match *self {}
    }
}

impl DerefMut for NoBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match *self {}
    }
}

impl ReceiveBuffer for NoBuffer {
    fn consume(&mut self, _count: usize) {
        match *self {}
    }
}

/// The received bytes of a connection.
pub(crate) struct Input<B> {
    bytes: Vec<u8>,
    held: Range<usize>,
    lent: bool,
    /// Whether the lent buffer starts small.
    grows: bool,
    /// Received bytes in a buffer of the ring; `bytes` is empty then.
    buffer: Option<B>,
}

impl<B> Default for Input<B> {
    fn default() -> Input<B> {
        Input { bytes: Vec::new(), held: 0..0, lent: false, grows: false, buffer: None }
    }
}

impl<B: ReceiveBuffer> Input<B> {
    /// The input of a connection with a blocking receive.
    pub(crate) fn that_grows() -> Input<B> {
        Input { grows: true, ..Input::default() }
    }

    #[inline]
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        match &mut self.buffer {
            Some(buffer) => buffer,
            None => &mut self.bytes[self.held.clone()],
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.buffer.as_ref().map_or(self.held.len(), |buffer| buffer.len())
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(crate) fn consume(&mut self, count: usize) {
        assert!(count <= self.len(), "no more is consumed than was received");
        if let Some(buffer) = &mut self.buffer {
            buffer.consume(count);
            if buffer.is_empty() {
                self.buffer = None;
            }
            return;
        }
        self.held.start += count;
        if self.held.is_empty() {
            self.held = 0..0;
        }
    }

    /// Moves bytes from the front of `inbox` until the input has `room` bytes. Returns whether it moved any.
    pub(crate) fn take_from(&mut self, inbox: &mut Vec<u8>, room: usize) -> bool {
        self.settle();
        let count = self.append(inbox, room);
        inbox.drain(..count);
        count > 0
    }

    /// Takes a received buffer, without a copy if the input is empty. Bytes beyond `room` go to `rest`.
    pub(crate) fn accept(&mut self, mut buffer: B, room: usize, rest: &mut Vec<u8>) {
        self.settle();
        if self.held.is_empty() && buffer.len() <= room {
            self.buffer = Some(buffer);
            return;
        }
        let count = self.append(&buffer, room);
        buffer.consume(count);
        rest.extend_from_slice(&buffer);
    }

    /// Copies bytes from the front of `source` into memory of the connection, until the input has `room` bytes.
    fn append(&mut self, source: &[u8], room: usize) -> usize {
        let count = source.len().min(room.saturating_sub(self.held.len()));
        self.bytes.truncate(self.held.end);
        if self.held.start > 0 {
            self.bytes.drain(..self.held.start);
        }
        self.bytes.extend_from_slice(&source[..count]);
        self.held = 0..self.bytes.len();
        count
    }

    /// Room after the held bytes, for at most `most` bytes in all. It is empty only if the input has `most` bytes. A
    /// head that fills the lent buffer continues in memory of its own.
    pub(crate) fn room(&mut self, most: usize) -> &mut [u8] {
        let held = self.held.len();
        let most = most.max(held).min(if held < LENT_BYTES { LENT_BYTES } else { usize::MAX });
        if self.lent && held >= LENT_BYTES {
            self.settle();
        }
        if self.bytes.is_empty() {
            self.bytes = LENT.take();
            let least = if self.grows { FIRST_BYTES } else { LENT_BYTES };
            if self.bytes.len() < least {
                self.bytes.resize(least, 0);
            }
            self.lent = true;
        }
        if self.held.end == self.bytes.len() && held < most {
            if self.held.start > 0 {
                self.bytes.copy_within(self.held.clone(), 0);
                self.held = 0..held;
            } else {
                let wanted = (held * 2).clamp(SMALLEST, most.max(SMALLEST));
                self.bytes.resize(wanted, 0);
            }
        }
        let end = self.bytes.len().min(self.held.start + most);
        &mut self.bytes[self.held.end..end.max(self.held.end)]
    }

    /// Adds `count` bytes that were written into the room.
    #[inline]
    pub(crate) fn filled(&mut self, count: usize) {
        self.held.end += count;
        debug_assert!(self.held.end <= self.bytes.len());
        // The call may have had more bytes, so the next call gets twice the room.
        if self.grows && self.lent && self.held.end == self.bytes.len() && self.bytes.len() < LENT_BYTES {
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
    }

    /// Prepares for a wait: returns the lent buffer or the ring's buffer, and copies held bytes to memory of the
    /// connection.
    #[inline]
    pub(crate) fn settle(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.append(&buffer, usize::MAX);
        }
        if self.held.is_empty() {
            return self.release();
        }
        if self.lent {
            let held = self.held.len();
            let mut own = vec![0; held.next_power_of_two().max(SMALLEST)];
            own[..held].copy_from_slice(&self.bytes[self.held.clone()]);
            LENT.set(std::mem::replace(&mut self.bytes, own));
            (self.held, self.lent) = (0..held, false);
        }
    }

    /// Drops held bytes and returns all memory.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.buffer = None;
        let bytes = std::mem::take(&mut self.bytes);
        if self.lent {
            LENT.set(bytes);
        }
        (self.held, self.lent) = (0..0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(input: &mut Input<NoBuffer>, bytes: &[u8], most: usize) -> usize {
        let room = input.room(most);
        let count = room.len().min(bytes.len());
        room[..count].copy_from_slice(&bytes[..count]);
        input.filled(count);
        count
    }

    #[test]
    fn bytes_survive_waits_one_by_one() {
        let sent: Vec<u8> = (0..5000u32).map(|number| number as u8).collect();
        let mut input = Input::<NoBuffer>::default();
        for byte in &sent {
            assert_eq!(put(&mut input, &[*byte], 16_384), 1);
            input.settle();
        }
        assert_eq!(input.bytes(), sent);
        assert!(input.bytes.capacity() <= 8192, "{}", input.bytes.capacity());
    }

    #[test]
    fn no_more_is_held_than_was_allowed() {
        let mut input = Input::<NoBuffer>::default();
        assert_eq!(put(&mut input, &[7; 300], 100), 100);
        assert!(input.room(100).is_empty());
        input.settle();
        assert!(input.room(100).is_empty());
        input.consume(40);
        assert_eq!(put(&mut input, &[8; 300], 100), 40);
        assert_eq!(input.len(), 100);
        assert_eq!(input.bytes()[60..], [8; 40]);
    }

    #[test]
    fn more_is_held_than_the_lent_buffer_has_if_that_is_allowed() {
        let mut input = Input::<NoBuffer>::default();
        let most = 3 * LENT_BYTES;
        while input.len() < most {
            assert_ne!(put(&mut input, &[7; 50_000], most), 0, "{} bytes are held", input.len());
        }
        assert!(input.room(most).is_empty());
        assert!(input.bytes() == [7; 3 * LENT_BYTES]);
        assert_eq!(LENT.take().len(), LENT_BYTES, "the lent buffer was given back");
    }

    #[test]
    fn room_that_waits_begins_small_and_grows_with_what_comes() {
        let mut input = Input::<NoBuffer>::that_grows();
        assert!(input.room(16_384).len() <= 2048, "a silent connection holds {} bytes", input.bytes.len());
        for sent in [1, 2047, 4096, 100_000, 100_000] {
            let count = put(&mut input, &vec![7; sent], LENT_BYTES);
            input.consume(count);
        }
        assert_eq!(input.bytes.len(), LENT_BYTES / 4);
        put(&mut input, &[7; 100_000], 100);
        assert_eq!(input.len(), 100);
        assert!(input.room(100).is_empty());
        input.release();
        LENT.take();
    }

    #[test]
    fn an_input_with_nothing_in_hand_holds_no_memory() {
        let mut input = Input::<NoBuffer>::default();
        put(&mut input, b"abc", 100);
        input.consume(3);
        input.settle();
        assert_eq!(input.bytes.capacity(), 0);
        let lent = LENT.take();
        assert_eq!(lent.len(), LENT_BYTES);
        LENT.set(lent);
    }
}
