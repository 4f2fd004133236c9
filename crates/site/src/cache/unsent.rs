//! A bound on long content that clients have not received yet, so that clients that do not read cannot
//! exhaust the memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Content of this many bytes or more is long. A connection's output holds little more than this of shorter
/// content. HTTP/2 counts the shorter content of its streams.
pub(crate) const LONG: usize = 64 << 10;
/// The bound of unsent content of a kind in a process. A single content may exceed it.
const MOST: usize = 64 << 20;

/// Listings, by their entity tags.
pub(crate) static PAGES: UnsentContent<String> = UnsentContent::new(MOST);

/// Content of files, by address.
#[cfg(not(test))]
pub(crate) fn files() -> &'static UnsentContent<usize> {
    static FILES: UnsentContent<usize> = UnsentContent::new(MOST);
    &FILES
}

/// The same with a small bound, separate for each test.
#[cfg(test)]
pub(crate) fn files() -> &'static UnsentContent<usize> {
    thread_local! {
        static FILES: &'static UnsentContent<usize> = Box::leak(Box::new(UnsentContent::new(1 << 20)));
    }
    FILES.with(|files| *files)
}

/// Content that clients are receiving. Responses with the same key share its memory.
pub(crate) struct UnsentContent<K: 'static> {
    most: usize,
    entries: Mutex<UnsentEntries<K>>,
}

struct UnsentEntries<K> {
    /// The content, and the number of responses that hold it.
    by_key: BTreeMap<K, (Arc<[u8]>, usize)>,
    bytes: usize,
}

/// Content held by a response. It counts as unsent until the share is dropped.
pub(crate) struct UnsentShare<K: Ord + 'static> {
    pub(crate) content: Arc<[u8]>,
    key: K,
    of: &'static UnsentContent<K>,
}

impl<K: Ord + Clone> UnsentContent<K> {
    const fn new(most: usize) -> UnsentContent<K> {
        UnsentContent { most, entries: Mutex::new(UnsentEntries { by_key: BTreeMap::new(), bytes: 0 }) }
    }

    /// Whether one more response may hold `length` bytes under `key`.
    pub(crate) fn admits(&self, key: &K, length: usize) -> bool {
        self.lock().admits(key, length, self.most)
    }

    /// Returns the content of `key`. If no response holds it, `make` makes it. Returns `None` beyond the
    /// bound.
    pub(crate) fn share(
        &'static self,
        key: K,
        length: usize,
        make: impl FnOnce() -> Arc<[u8]>,
    ) -> Option<UnsentShare<K>> {
        let mut entries = self.lock();
        if !entries.admits(&key, length, self.most) {
            return None;
        }
        let UnsentEntries { by_key, bytes } = &mut *entries;
        let (content, responses) = by_key.entry(key.clone()).or_insert_with(|| {
            *bytes += length;
            (make(), 0)
        });
        *responses += 1;
        Some(UnsentShare { content: Arc::clone(content), key, of: self })
    }

    fn lock(&self) -> MutexGuard<'_, UnsentEntries<K>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Ord> UnsentEntries<K> {
    fn admits(&self, key: &K, length: usize, most: usize) -> bool {
        self.bytes == 0 || self.bytes + length <= most || self.by_key.contains_key(key)
    }
}

impl<K: Ord + 'static> Drop for UnsentShare<K> {
    fn drop(&mut self) {
        let mut entries = self.of.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, responses)) = entries.by_key.get_mut(&self.key) else { return };
        *responses -= 1;
        if *responses == 0 {
            entries.by_key.remove(&self.key);
            entries.bytes -= self.content.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_content_shares_memory_and_different_content_has_a_bound() {
        static PAGES: UnsentContent<&str> = UnsentContent::new(10);
        let ask = |key, page: &str| PAGES.share(key, page.len(), || page.as_bytes().into());
        let first = ask("a", "123456").expect("there is room");
        let again = ask("a", "123456").expect("another response holds it");
        assert!(Arc::ptr_eq(&first.content, &again.content));
        assert!(ask("b", "12345").is_none(), "11 bytes");
        assert!(!PAGES.admits(&"b", 5) && PAGES.admits(&"b", 4) && PAGES.admits(&"a", 6));
        let small = ask("c", "1234").expect("10 bytes");
        drop(first);
        assert!(ask("b", "12345").is_none(), "another response still holds the first content");
        drop(again);
        assert!(ask("b", "12345").is_some(), "no response holds the first content");
        drop(small);
        assert!(ask("d", "12345678901").is_some(), "a single content may exceed the bound");
        let entries = PAGES.lock();
        assert!(entries.by_key.is_empty() && entries.bytes == 0, "dropped shares leave nothing");
    }
}
