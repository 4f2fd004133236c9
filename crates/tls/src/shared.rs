//! Bytes that one process publishes and others read, in words of shared memory.
//!
//! A sequence lock: the number in the first word is odd while the bytes change. A reader that finds it odd or
//! changed starts over (Boehm, "Can Seqlocks Get Along With Programming Language Memory Models?", 2012).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Words that processes share. An implementation must return the same words at each call.
pub trait SharedWords: Send + Sync {
    /// Returns the words; at least [`HEADER_WORDS`].
    fn words(&self) -> &[AtomicU64];
}

impl SharedWords for Vec<AtomicU64> {
    fn words(&self) -> &[AtomicU64] {
        self
    }
}

/// The words before the bytes: the sequence number and the length.
pub const HEADER_WORDS: usize = 2;

/// The attempts of a reader. A writer changes only some kilobytes; a reader must not wait for a writer that
/// died.
const MAX_ATTEMPTS: u32 = 1000;

/// Bytes with one writer and any number of readers.
#[derive(Clone)]
pub struct SharedBytes {
    words: Arc<dyn SharedWords>,
}

/// A version of the bytes; it changes with every publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicationVersion(u64);

impl SharedBytes {
    /// Returns the bytes in these words. Zeroed memory is an empty publication.
    pub fn new(words: Arc<dyn SharedWords>) -> SharedBytes {
        assert!(words.words().len() >= HEADER_WORDS, "shared words have a header");
        SharedBytes { words }
    }

    /// Returns the number of words that `bytes` bytes need.
    pub const fn words_for(bytes: usize) -> usize {
        HEADER_WORDS + bytes.div_ceil(8)
    }

    /// Returns the most bytes that a publication can have.
    pub fn capacity(&self) -> usize {
        (self.words.words().len() - HEADER_WORDS) * 8
    }

    /// Returns the version of the published bytes.
    pub fn version(&self) -> PublicationVersion {
        PublicationVersion(self.words.words()[0].load(Ordering::Acquire))
    }

    /// Replaces the bytes; returns `false` if they exceed the capacity. Only one process may call it.
    #[must_use]
    pub fn publish(&self, bytes: &[u8]) -> bool {
        let words = self.words.words();
        if bytes.len() > self.capacity() {
            return false;
        }
        // The number is already odd if a former writer died while it wrote.
        let odd = words[0].load(Ordering::Relaxed).wrapping_add(1) | 1;
        words[0].store(odd, Ordering::Relaxed);
        fence(Ordering::Release);
        words[1].store(bytes.len() as u64, Ordering::Relaxed);
        for (word, chunk) in words[HEADER_WORDS..].iter().zip(bytes.chunks(8)) {
            let mut padded = [0; 8];
            padded[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_ne_bytes(padded), Ordering::Relaxed);
        }
        words[0].store(odd.wrapping_add(1), Ordering::Release);
        true
    }

    /// Returns the bytes of a publication and its version; `None` if no attempt found a complete publication.
    pub fn read(&self) -> Option<(PublicationVersion, Vec<u8>)> {
        let words = self.words.words();
        for _ in 0..MAX_ATTEMPTS {
            let before = words[0].load(Ordering::Acquire);
            let length = usize::try_from(words[1].load(Ordering::Relaxed)).unwrap_or(usize::MAX);
            if before.is_multiple_of(2) && length <= self.capacity() {
                let used = &words[HEADER_WORDS..Self::words_for(length)];
                let mut bytes: Vec<u8> =
                    used.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
                fence(Ordering::Acquire);
                if words[0].load(Ordering::Relaxed) == before {
                    bytes.truncate(length);
                    return Some((PublicationVersion(before), bytes));
                }
            }
            std::thread::yield_now();
        }
        None
    }
}

/// Returns `count` words of private memory.
pub fn private_words(count: usize) -> Arc<dyn SharedWords> {
    Arc::new((0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_publication_is_read_whole_up_to_the_capacity() {
        let shared = SharedBytes::new(private_words(SharedBytes::words_for(20)));
        assert_eq!(shared.capacity(), 24);
        assert_eq!(shared.read().expect("no write is in progress").1, b"");
        let mut versions = vec![shared.version()];
        for length in [24, 3, 0, 8] {
            let bytes: Vec<u8> = (1..=length).collect();
            assert!(shared.publish(&bytes));
            let (version, read) = shared.read().expect("no write is in progress");
            assert_eq!(read, bytes);
            assert!(!versions.contains(&version));
            versions.push(version);
        }
        assert!(!shared.publish(&[0; 25]), "one byte too many");
        assert_eq!(shared.read().expect("no write is in progress").1.len(), 8);
    }

    #[test]
    fn a_writer_that_died_in_the_middle_is_not_waited_for() {
        let words = private_words(SharedBytes::words_for(8));
        let shared = SharedBytes::new(Arc::clone(&words));
        words.words()[0].store(7, Ordering::Relaxed);
        assert!(shared.read().is_none());
        assert!(shared.publish(b"next"));
        assert_eq!(shared.read().expect("written").1, b"next");
        // No writer leaves such a length.
        words.words()[1].store(u64::MAX, Ordering::Relaxed);
        assert!(shared.read().is_none());
    }

    #[test]
    fn a_reader_never_sees_parts_of_two_publications() {
        let shared = SharedBytes::new(private_words(SharedBytes::words_for(512)));
        assert!(shared.publish(&[0; 512]));
        std::thread::scope(|scope| {
            let writer = shared.clone();
            let writing = scope.spawn(move || (0..20_000u32).all(|n| writer.publish(&[n as u8; 512])));
            let mut seen = 0;
            while !writing.is_finished() || seen == 0 {
                if let Some((_, bytes)) = shared.read() {
                    assert!(bytes.iter().all(|&byte| byte == bytes[0]), "a mixture of two publications");
                    seen += 1;
                }
            }
            assert!(writing.join().expect("no panic"));
        });
    }
}
