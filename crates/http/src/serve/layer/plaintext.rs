//! Plaintext at the front of the driver's input.

use std::ops::Range;

/// Plaintext at the front of the driver's input. It is opened where the driver received it. If plaintext is
/// left already, it moves next to that, so that a record costs only its own length.
///
/// Methods return the number of consumed bytes of the driver's input.
#[derive(Default)]
pub(super) struct Plaintext {
    /// Plaintext that is not consumed.
    length: usize,
    /// Plaintext visible to the protocol: a record may contain more than it requested.
    shown: usize,
    /// The position of the next record, after the remains of opened records. 0 without plaintext.
    next: usize,
}

impl Plaintext {
    pub(super) fn length(&self) -> usize {
        self.length
    }

    pub(super) fn shown(&self) -> usize {
        self.shown
    }

    pub(super) fn next(&self) -> usize {
        self.next
    }

    /// Makes plaintext visible, up to `most` bytes. Returns whether more became visible.
    pub(super) fn show(&mut self, most: usize) -> bool {
        let more = self.length > self.shown;
        if more {
            self.shown = self.length.min(most);
        }
        more
    }

    /// Adds the plaintext `content` of the next record, which has `length` bytes.
    pub(super) fn open(&mut self, input: &mut [u8], content: &Range<usize>, length: usize) -> usize {
        if self.length == 0 && !content.is_empty() {
            (self.length, self.next) = (content.len(), length - content.start);
            return content.start;
        }
        input.copy_within(self.next + content.start..self.next + content.end, self.length);
        self.length += content.len();
        self.skip(length)
    }

    /// Skips the next record of `count` bytes.
    pub(super) fn skip(&mut self, count: usize) -> usize {
        if self.length == 0 {
            return count;
        }
        self.next += count;
        0
    }

    /// Drops large remains of opened records before the next record, and moves the plaintext. Records of one
    /// byte leave twenty times as many bytes as plaintext.
    pub(super) fn close_gap(&mut self, input: &mut [u8]) -> usize {
        let gap = self.next - self.length;
        if gap <= self.length / 4 {
            return 0;
        }
        input.copy_within(..self.length, gap);
        self.next = self.length;
        gap
    }

    /// Consumes `count` bytes of visible plaintext.
    pub(super) fn consume(&mut self, count: usize) -> usize {
        self.shown = self.shown.checked_sub(count).expect("only visible plaintext is consumed");
        self.length -= count;
        let dropped = if self.length == 0 { self.next } else { count };
        self.next -= dropped;
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: usize = 5;
    const TAG: usize = 17;

    /// Opens records with contents of these lengths, received `batch` at a time, and consumes `consumed`
    /// bytes after each batch. Returns the plaintext, and the number of bytes moved to close gaps.
    fn open_all(contents: &[usize], batch: usize, consumed: usize) -> (Vec<u8>, usize) {
        let (mut plaintext, mut input, mut read, mut moved) =
            (Plaintext::default(), Vec::new(), Vec::new(), 0);
        let mut value = 0_u8;
        for lengths in contents.chunks(batch) {
            let gap = plaintext.close_gap(&mut input);
            moved += if gap > 0 { plaintext.length() } else { 0 };
            input.drain(..gap);
            for length in lengths {
                input.extend([0xff; HEADER]);
                input.extend((0..*length).map(|_| {
                    value = (value + 1) % 251;
                    value
                }));
                input.extend([0xfe; TAG]);
            }
            for length in lengths {
                let content = HEADER..HEADER + length;
                let dropped = plaintext.open(&mut input, &content, HEADER + length + TAG);
                input.drain(..dropped);
            }
            assert_eq!(plaintext.next(), input.len(), "all records were opened");
            plaintext.show(usize::MAX);
            let count = consumed.min(plaintext.shown());
            read.extend_from_slice(&input[..count]);
            input.drain(..plaintext.consume(count));
        }
        read.extend_from_slice(&input[..plaintext.length()]);
        (read, moved)
    }

    #[test]
    fn plaintext_is_whole_in_every_division() {
        for (contents, batch) in [(vec![0, 1, 0, 0, 700, 3, 0], 1), (vec![1; 300], 7), (vec![900, 0, 2], 2)] {
            let expected: Vec<u8> =
                (0..contents.iter().sum::<usize>()).map(|at| ((at + 1) % 251) as u8).collect();
            for consumed in [0, 1, 5, 10_000] {
                assert_eq!(
                    open_all(&contents, batch, consumed).0,
                    expected,
                    "{contents:?} {batch} {consumed}"
                );
            }
        }
    }

    /// A former implementation moved a head of 256 KiB in records of one byte 700 times its length.
    #[test]
    fn h18_small_records_behind_much_plaintext_are_linear() {
        let contents = [vec![16_384; 15], vec![1; 16_384]].concat();
        let received: usize = contents.iter().map(|length| HEADER + length + TAG).sum();
        let (read, moved) = open_all(&contents, 2850, 0);
        assert_eq!(read.len(), 16 * 16_384);
        assert!(moved < 4 * received, "{moved} bytes moved for {received}");
    }
}
