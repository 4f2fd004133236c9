//! The entries of a folder, filtered and sorted by a query.

use std::cmp::Ordering;

use tenfold_sys::directory::DirectoryEntry;
use tenfold_sys::file::FileKind;

use crate::respond::listing::links::FolderLinks;
use crate::respond::listing::natural::NaturalName;
use crate::respond::listing::view::{By, SortOrder, View};

/// The entries of a folder, in the order in which they are shown.
pub(super) struct FolderEntries {
    pub(super) links: FolderLinks,
    pub(super) view: View,
    pub(super) entries: Vec<ListedEntry>,
    /// Entries that the filter hides.
    pub(super) filtered: usize,
    /// The bound on names, if the folder has more.
    pub(super) cut: Option<usize>,
    /// Entries with a name that no URL can contain.
    pub(super) nameless: usize,
    pub(super) readme: Option<Readme>,
}

/// The text below a listing.
pub(super) struct Readme {
    pub(super) name: String,
    pub(super) text: String,
    /// Whether the file has more.
    pub(super) is_cut: bool,
}

/// An entry that can be requested.
pub(super) struct ListedEntry {
    pub(super) entry: DirectoryEntry,
    /// The link to the entry.
    pub(super) link: String,
}

impl ListedEntry {
    pub(super) fn is_folder(&self) -> bool {
        self.entry.facts.kind == FileKind::Directory
    }
}

impl FolderEntries {
    pub(super) fn new(
        links: FolderLinks,
        view: View,
        entries: Vec<DirectoryEntry>,
        cut: Option<usize>,
        nameless: usize,
        readme: Option<Readme>,
    ) -> FolderEntries {
        let shown = |entry: DirectoryEntry| {
            let folder = match entry.facts.kind {
                FileKind::Special => return None,
                kind => kind == FileKind::Directory,
            };
            let link = links.to(&entry.name, folder)?;
            Some(ListedEntry { entry, link })
        };
        let mut entries: Vec<_> = entries.into_iter().filter_map(shown).collect();
        let all = entries.len();
        entries.retain(|shown| view.admits(&shown.entry.name));
        let filtered = all - entries.len();
        entries.sort_by_cached_key(|shown| NaturalName::new(&shown.entry.name));
        if view.order == (SortOrder { by: By::Name, descending: true }) {
            entries.reverse();
        }
        // Stable: equal entries stay in the order of names.
        entries.sort_by(|one, other| compare(view.order, one, other));
        FolderEntries { links, view, entries, filtered, cut, nameless, readme }
    }
}

/// Compares entries that are in the order of names already. Folders precede files in every order.
fn compare(order: SortOrder, one: &ListedEntry, other: &ListedEntry) -> Ordering {
    let (a, b) = (&one.entry.facts, &other.entry.facts);
    let by = match order.by {
        By::Name => Ordering::Equal,
        By::Size if one.is_folder() => Ordering::Equal,
        By::Size => a.size.cmp(&b.size),
        By::Date => a.modified.cmp(&b.modified),
    };
    let folders = other.is_folder().cmp(&one.is_folder());
    folders.then(if order.descending { by.reverse() } else { by })
}
