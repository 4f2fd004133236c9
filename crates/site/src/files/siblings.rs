//! Compressed files beside their originals, by age: an older one was made of an older version.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use tenfold_sys::file::{FileKind, Root, Timestamp};

use crate::rules::codings::{Codings, suffix};

/// Seconds by which a compressed file may be older than its original. Tools write whole seconds (brotli, pigz), file
/// systems round to up to two (FAT), and copies of both files get their times in any order.
const SLACK: i64 = 2;

/// Names that are read at most to find stale files, so that the check of a large site ends.
const MOST_NAMES: usize = 100_000;

/// Whether a compressed file of this time belongs to the original of that time.
pub(crate) fn is_current(compressed: Timestamp, original: Timestamp) -> bool {
    let latest = Timestamp { seconds: compressed.seconds.saturating_add(SLACK), ..compressed };
    latest >= original
}

/// The remark about a stale file.
fn remark(root: &Root, name: &str, original: &str) -> String {
    let (stale, original) = (root.path().join(name), root.path().join(original));
    format!(
        "{} is older than {}, so it is not served; compress the file again",
        stale.display(),
        original.display()
    )
}

/// Returns remarks about compressed files beneath `root` that are not served because they are older than their originals.
pub fn stale_files(root: &Root, codings: &Codings) -> Vec<String> {
    let mut found = Vec::new();
    let (mut seen, mut left, mut names) = (HashSet::new(), vec![String::new()], MOST_NAMES);
    while let Some(folder) = left.pop() {
        if codings.siblings.is_empty() || names == 0 {
            break;
        }
        let Ok(listing) = root.entries(&folder, names, |name| !name.starts_with('.')) else { continue };
        // Links give a folder several names.
        if !seen.insert(listing.identity) {
            continue;
        }
        names = names.saturating_sub(listing.entries.len());
        let path = |name: &str| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        let (folders, files): (Vec<_>, Vec<_>) =
            listing.entries.iter().partition(|entry| entry.facts.kind == FileKind::Directory);
        left.extend(folders.iter().map(|entry| path(&entry.name)));
        let times: HashMap<_, _> =
            files.iter().map(|entry| (entry.name.as_str(), entry.facts.modified)).collect();
        for (compressed, time) in &times {
            let originals =
                codings.siblings.iter().filter_map(|&coding| compressed.strip_suffix(suffix(coding)));
            let newer = originals
                .filter(|name| times.get(name).is_some_and(|original| !is_current(*time, *original)));
            found.extend(newer.map(|name| remark(root, &path(compressed), &path(name))));
        }
    }
    found.sort();
    found
}

/// Remarks about files, for the log. Each is made once by all processes that share the memory.
#[derive(Clone, Copy, Debug)]
pub struct Remarks {
    said: &'static [AtomicU64],
    tell: fn(&str),
}

impl Remarks {
    /// Words of shared memory for the remarks that were made: one bit for each. A new remark is lost if its bit is that of
    /// another, which is rare with few remarks, and bounds their number.
    pub const WORDS: usize = 64;

    /// Remarks that `tell` writes. `said` has zeros at first, and at least one word.
    pub fn new(said: &'static [AtomicU64], tell: fn(&str)) -> Remarks {
        Remarks { said, tell }
    }

    /// Remarks that a compressed file is stale.
    #[cold]
    pub(crate) fn stale(&self, root: &Root, name: &str, original: &str) {
        let mut hasher = DefaultHasher::new();
        (root.path(), name).hash(&mut hasher);
        let place = hasher.finish() as usize % (self.said.len() * 64);
        let bit = 1 << (place % 64);
        if self.said[place / 64].fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            (self.tell)(&remark(root, name, original));
        }
    }
}
