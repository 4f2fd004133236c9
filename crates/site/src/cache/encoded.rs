//! Encoded content and digests of files, for all threads of a process.
//!
//! Only threads outside the loops use it, so its lock delays no loop. Each worker caches its responses in its
//! own store. This cache spares the next worker, or the next connection of an engine with a thread per
//! connection, encoding the same file again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use tenfold_http::semantics::negotiate::ContentCoding;
use tenfold_sys::file::FileStat;

/// One version of a file in one coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileVersion {
    /// Device, inode and size; the times of modification and change, in seconds and nanoseconds.
    identity: (u64, u64, u64, (i64, u32), (i64, u32)),
    coding: ContentCoding,
}

impl FileVersion {
    /// Returns the version with these facts.
    pub(crate) fn new(facts: &FileStat, coding: ContentCoding) -> FileVersion {
        let FileStat { device, inode, size, modified, changed, .. } = *facts;
        let modified = (modified.seconds, modified.nanoseconds);
        let changed = (changed.seconds, changed.nanoseconds);
        FileVersion { identity: (device, inode, size, modified, changed), coding }
    }

    /// Returns the version with these facts, without an encoding.
    pub(crate) fn identity(facts: &FileStat) -> FileVersion {
        FileVersion::new(facts, ContentCoding::Identity)
    }
}

/// Encoded content within a bound of bytes. The oldest content is evicted first.
#[derive(Debug)]
pub(crate) struct EncodedCache {
    most_bytes: usize,
    content: Mutex<EncodedEntries>,
}

#[derive(Debug, Default)]
struct EncodedEntries {
    encoded: HashMap<FileVersion, Arc<[u8]>>,
    order: VecDeque<FileVersion>,
    bytes: usize,
}

impl EncodedCache {
    /// Returns an empty cache with this bound.
    pub(crate) fn new(most_bytes: usize) -> EncodedCache {
        EncodedCache { most_bytes, content: Mutex::default() }
    }

    /// The number of entries.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.content.lock().unwrap_or_else(PoisonError::into_inner).order.len()
    }

    /// Returns the content cached for this version, or makes and caches it. Without a version, it is not
    /// cached.
    pub(crate) fn find_or_make(
        &self,
        version: Option<FileVersion>,
        make: impl FnOnce() -> Option<Arc<[u8]>>,
    ) -> Option<Arc<[u8]>> {
        let Some(version) = version else { return make() };
        if let Some(found) = self.find(&version) {
            return Some(found);
        }
        let made = make()?;
        self.put(version, Arc::clone(&made));
        Some(made)
    }

    /// Returns the content cached for this version.
    fn find(&self, version: &FileVersion) -> Option<Arc<[u8]>> {
        let content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        content.encoded.get(version).cloned()
    }

    /// Caches encoded content, and evicts the oldest content to make room. Content larger than the whole
    /// cache is not cached.
    fn put(&self, version: FileVersion, encoded: Arc<[u8]>) {
        let weight = weight(&encoded);
        if weight > self.most_bytes {
            return;
        }
        let mut content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        let content = &mut *content;
        // Another thread may have encoded the same version meanwhile.
        if content.encoded.contains_key(&version) {
            return;
        }
        while content.bytes + weight > self.most_bytes {
            let oldest = content.order.pop_front().expect("bytes belong to a version");
            let gone = content.encoded.remove(&oldest).expect("each version in the order has its bytes");
            content.bytes -= self::weight(&gone);
        }
        content.encoded.insert(version, encoded);
        content.order.push_back(version);
        content.bytes += weight;
    }
}

/// Bytes of memory for encoded content and for its version, which the map and the order both hold.
fn weight(encoded: &[u8]) -> usize {
    encoded.len() + 2 * size_of::<FileVersion>() + size_of::<Arc<[u8]>>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenfold_sys::file::{FileKind, Timestamp};

    fn facts(inode: u64) -> FileStat {
        let moment = Timestamp { seconds: 7, nanoseconds: 9 };
        FileStat { kind: FileKind::File, size: 5, modified: moment, changed: moment, device: 1, inode }
    }

    fn version(inode: u64) -> FileVersion {
        FileVersion::new(&facts(inode), ContentCoding::Gzip)
    }

    #[test]
    fn the_bound_is_exact_and_the_oldest_goes() {
        let coded: Arc<[u8]> = vec![0; 100].into();
        let cache = EncodedCache::new(2 * weight(&coded));
        for inode in 1..=3 {
            cache.put(version(inode), coded.clone());
            cache.put(version(inode), coded.clone());
        }
        let there = [1, 2, 3].map(|inode| cache.find(&version(inode)).is_some());
        assert_eq!(there, [false, true, true]);
        cache.put(version(4), vec![0; 2 * weight(&coded)].into());
        assert!(cache.find(&version(4)).is_none(), "content larger than the cache is not kept");
        assert!(cache.find(&version(3)).is_some(), "and evicts nothing");
    }

    #[test]
    fn another_version_and_another_coding_are_something_else() {
        let cache = EncodedCache::new(1 << 20);
        cache.put(version(1), vec![1].into());
        let old = facts(1);
        let later = Timestamp { seconds: 7, nanoseconds: 10 };
        for other in [
            FileStat { size: 6, ..old },
            FileStat { modified: later, ..old },
            FileStat { changed: later, ..old },
            FileStat { device: 2, ..old },
        ] {
            assert!(cache.find(&FileVersion::new(&other, ContentCoding::Gzip)).is_none(), "{other:?}");
        }
        assert!(cache.find(&FileVersion::new(&old, ContentCoding::Brotli)).is_none());
        assert!(cache.find(&FileVersion::new(&old, ContentCoding::Gzip)).is_some());
    }
}
