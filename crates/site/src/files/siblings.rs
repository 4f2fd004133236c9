//! Compressed siblings of files, checked by age: an older sibling was made from an older version.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use tenfold_sys::file::{FileKind, Root, Timestamp};

use crate::rules::codings::{Codings, suffix};

/// Seconds by which a compressed file may be older than its original. Tools write whole seconds (brotli,
/// pigz), file systems round up to two (FAT), and copying sets the times of both files in any order.
const SLACK: i64 = 2;

/// The most names read in search of stale files, so that the check of a large site ends.
const MOST_NAMES: usize = 100_000;

/// Whether a compressed file of this time is current for an original of that time.
pub(crate) fn is_current(compressed: Timestamp, original: Timestamp) -> bool {
    let latest = Timestamp { seconds: compressed.seconds.saturating_add(SLACK), ..compressed };
    latest >= original
}

fn remark(root: &Root, name: &str, original: &str) -> String {
    let (stale, original) = (root.path().join(name), root.path().join(original));
    format!(
        "{} is older than {}, so it is not served; compress the file again",
        stale.display(),
        original.display()
    )
}

/// Returns remarks about compressed files beneath `root` that are older than their originals, and thus not
/// served.
pub fn stale_files(root: &Root, codings: &Codings) -> Vec<String> {
    let mut found = Vec::new();
    let (mut seen, mut left, mut names) = (HashSet::new(), vec![String::new()], MOST_NAMES);
    while let Some(folder) = left.pop() {
        if codings.siblings.is_empty() || names == 0 {
            break;
        }
        let Ok(listing) = root.entries(&folder, names, |name| !name.starts_with(b".")) else { continue };
        // Through links, a folder can have several names.
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

/// Remarks about files, for the log. The processes that share the memory write each remark once.
#[derive(Clone, Copy, Debug)]
pub struct Remarks {
    reported: &'static [AtomicU64],
    write: fn(&str),
}

impl Remarks {
    /// Words of shared memory, one bit per remark. A remark whose bit is taken by another remark is lost.
    /// This is rare, and it bounds their number.
    pub const WORDS: usize = 64;

    /// Remarks for `write`. `reported` has at least one word, and is initially zero.
    pub fn new(reported: &'static [AtomicU64], write: fn(&str)) -> Remarks {
        Remarks { reported, write }
    }

    /// Reports a stale compressed file.
    #[cold]
    pub(crate) fn stale(&self, root: &Root, name: &str, original: &str) {
        let mut hasher = DefaultHasher::new();
        (root.path(), name).hash(&mut hasher);
        let index = hasher.finish() as usize % (self.reported.len() * 64);
        let bit = 1 << (index % 64);
        if self.reported[index / 64].fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            (self.write)(&remark(root, name, original));
        }
    }
}
