//! What was made of files in this process, compressed content and digests, for all of its threads.
//!
//! Only work beside the loops comes here, so its lock holds up no loop. A worker keeps what it has served in
//! its own store; the shelf saves the next worker, and the next connection of an engine that gives each a
//! thread, from doing it again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use tenfold_http::negotiate::Coding;
use tenfold_sys::file::Facts;

/// One version of a file in one coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Label {
    /// Device, inode, size; when it was modified and changed, in seconds and nanoseconds.
    identity: (u64, u64, u64, (i64, u32), (i64, u32)),
    coding: Coding,
}

impl Label {
    /// The version with these facts.
    pub(crate) fn new(facts: &Facts, coding: Coding) -> Label {
        let Facts { device, inode, size, modified, changed, .. } = *facts;
        let modified = (modified.seconds, modified.nanoseconds);
        let changed = (changed.seconds, changed.nanoseconds);
        Label { identity: (device, inode, size, modified, changed), coding }
    }

    /// The version with these facts, as it is.
    pub(crate) fn identity(facts: &Facts) -> Label {
        Label::new(facts, Coding::Identity)
    }
}

/// What was made, within a bound of bytes; what came first goes first.
#[derive(Debug)]
pub(crate) struct Shelf {
    most_bytes: usize,
    content: Mutex<Content>,
}

#[derive(Debug, Default)]
struct Content {
    coded: HashMap<Label, Arc<[u8]>>,
    order: VecDeque<Label>,
    bytes: usize,
}

impl Shelf {
    /// An empty one for so many bytes.
    pub(crate) fn new(most_bytes: usize) -> Shelf {
        Shelf { most_bytes, content: Mutex::default() }
    }

    /// How much lies here.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.content.lock().unwrap_or_else(PoisonError::into_inner).order.len()
    }

    /// What lies here under this label.
    pub(crate) fn find(&self, label: &Label) -> Option<Arc<[u8]>> {
        let content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        content.coded.get(label).cloned()
    }

    /// Puts coded content here, and takes away the oldest where room is needed. What is larger than the
    /// whole is not kept.
    pub(crate) fn put(&self, label: Label, coded: Arc<[u8]>) {
        let weight = weight(&coded);
        if weight > self.most_bytes {
            return;
        }
        let mut content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        let content = &mut *content;
        // Two may have made it at once.
        if content.coded.contains_key(&label) {
            return;
        }
        while content.bytes + weight > self.most_bytes {
            let oldest = content.order.pop_front().expect("where there are bytes, there is a label");
            let gone = content.coded.remove(&oldest).expect("each label in the order has its bytes");
            content.bytes -= self::weight(&gone);
        }
        content.coded.insert(label, coded);
        content.order.push_back(label);
        content.bytes += weight;
    }
}

/// Bytes of memory for coded content and its label, which stands in the map and in the order.
fn weight(coded: &[u8]) -> usize {
    coded.len() + 2 * size_of::<Label>() + size_of::<Arc<[u8]>>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenfold_sys::file::{Kind, Timestamp};

    fn facts(inode: u64) -> Facts {
        let moment = Timestamp { seconds: 7, nanoseconds: 9 };
        Facts { kind: Kind::File, size: 5, modified: moment, changed: moment, device: 1, inode }
    }

    fn label(inode: u64) -> Label {
        Label::new(&facts(inode), Coding::Gzip)
    }

    #[test]
    fn the_bound_is_exact_and_the_oldest_goes() {
        let coded: Arc<[u8]> = vec![0; 100].into();
        let shelf = Shelf::new(2 * weight(&coded));
        for inode in 1..=3 {
            shelf.put(label(inode), coded.clone());
            shelf.put(label(inode), coded.clone());
        }
        let there = [1, 2, 3].map(|inode| shelf.find(&label(inode)).is_some());
        assert_eq!(there, [false, true, true]);
        shelf.put(label(4), vec![0; 2 * weight(&coded)].into());
        assert!(shelf.find(&label(4)).is_none(), "what is larger than the whole");
        assert!(shelf.find(&label(3)).is_some(), "drives nothing out");
    }

    #[test]
    fn another_version_and_another_coding_are_something_else() {
        let shelf = Shelf::new(1 << 20);
        shelf.put(label(1), vec![1].into());
        let old = facts(1);
        let later = Timestamp { seconds: 7, nanoseconds: 10 };
        for other in [
            Facts { size: 6, ..old },
            Facts { modified: later, ..old },
            Facts { changed: later, ..old },
            Facts { device: 2, ..old },
        ] {
            assert!(shelf.find(&Label::new(&other, Coding::Gzip)).is_none(), "{other:?}");
        }
        assert!(shelf.find(&Label::new(&old, Coding::Brotli)).is_none());
        assert!(shelf.find(&Label::new(&old, Coding::Gzip)).is_some());
    }
}
