//! Frames: a length of four bytes, big-endian, and as many bytes of JSON.

use std::io;

use serde::Serialize;

/// The longest frame in bytes. The record of a run takes about a megabyte, a plan with its body up to 9 MB.
pub(crate) const MOST: usize = 16 << 20;

/// Returns `message` as a frame.
///
/// # Errors
/// It is longer than [`MOST`], or a map has a key that JSON does not support.
pub(crate) fn frame(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    seal(bytes)
}

/// Returns `json` as a frame.
pub(crate) fn frame_of(json: &str) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    bytes.extend_from_slice(json.as_bytes());
    seal(bytes)
}

fn seal(mut bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    let length = bytes.len() - 4;
    let fits = u32::try_from(length).ok().filter(|_| length <= MOST);
    let Some(count) = fits else {
        return Err(io::Error::other(format!("a message of {length} bytes is longer than {MOST} bytes")));
    };
    bytes[..4].copy_from_slice(&count.to_be_bytes());
    Ok(bytes)
}

/// Whether an operation that never blocks should be tried again later.
pub(crate) fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Bytes that arrive, divided into frames. Memory grows with the bytes that arrived, not with an announced length.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    bytes: Vec<u8>,
    /// The bytes at the start that were returned.
    done: usize,
}

impl FrameReader {
    /// Adds bytes.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        if self.done > 0 {
            self.bytes.drain(..self.done);
            self.done = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the content of the next complete frame.
    ///
    /// # Errors
    /// The announced length is above [`MOST`].
    pub(crate) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let rest = &self.bytes[self.done..];
        let Some((head, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*head) as usize;
        if length > MOST {
            return Err(io::Error::other(format!("a message announces {length} bytes; the limit is {MOST}")));
        }
        if rest.len() < length {
            return Ok(None);
        }
        let begin = self.done + 4;
        self.done = begin + length;
        Ok(Some(&self.bytes[begin..self.done]))
    }

    /// Returns the number of bytes in memory.
    pub(crate) fn held(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn frames_arrive_whole_in_any_pieces(
            texts in proptest::collection::vec("[a-z\"\\\\]{0,40}", 0..6),
            piece in 1usize..20,
        ) {
            let bytes: Vec<u8> = texts.iter().flat_map(|text| frame(text).expect("it is short")).collect();
            let (mut reader, mut found) = (FrameReader::default(), Vec::<String>::new());
            for piece in bytes.chunks(piece) {
                reader.add(piece);
                while let Some(content) = reader.next().expect("the lengths are short") {
                    found.push(serde_json::from_slice(content).expect("JSON"));
                }
            }
            prop_assert_eq!(found, texts);
        }

        #[test]
        fn any_bytes_are_frames_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = FrameReader::default();
            reader.add(&bytes);
            while let Ok(Some(_)) = reader.next() {}
            prop_assert!(reader.held() <= bytes.len());
        }
    }

    #[test]
    fn an_announced_length_takes_no_memory() {
        let mut reader = FrameReader::default();
        reader.add(&(MOST as u32).to_be_bytes());
        assert!(matches!(reader.next(), Ok(None)));
        assert_eq!(reader.held(), 4);
        let mut reader = FrameReader::default();
        reader.add(&(MOST as u32 + 1).to_be_bytes());
        assert!(reader.next().is_err());
    }
}
