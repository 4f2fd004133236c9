//! The entries of a folder, sorted by a query.

use std::cmp::Ordering;

use tenfold_sys::directory::DirectoryEntry;
use tenfold_sys::file::FileKind;

use crate::respond::listing::links::FolderLinks;

/// The order of a listing, by its query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SortOrder {
    pub(super) by: By,
    pub(super) descending: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Name,
    Size,
    Date,
}

/// The entries of a folder, in the order in which they are shown.
pub(super) struct FolderEntries {
    pub(super) links: FolderLinks,
    pub(super) order: SortOrder,
    pub(super) entries: Vec<ListedEntry>,
    /// The bound on names, if the folder has more.
    pub(super) cut: Option<usize>,
    /// Entries with a name that no URL can contain.
    pub(super) nameless: usize,
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
        order: SortOrder,
        entries: Vec<DirectoryEntry>,
        cut: Option<usize>,
        nameless: usize,
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
        entries.sort_by_cached_key(|shown| (shown.entry.name.to_lowercase(), shown.entry.name.clone()));
        // Stable: equal entries stay in the order of names.
        entries.sort_by(|one, other| order.compare(one, other));
        FolderEntries { links, order, entries, cut, nameless }
    }
}

impl SortOrder {
    /// Parses a query such as `sort=size&order=desc`. The default is ascending by name.
    pub(super) fn of(query: &str) -> SortOrder {
        let mut order = SortOrder { by: By::Name, descending: false };
        for pair in query.split('&') {
            match pair {
                "sort=name" => order.by = By::Name,
                "sort=size" => order.by = By::Size,
                "sort=date" => order.by = By::Date,
                "order=asc" => order.descending = false,
                "order=desc" => order.descending = true,
                _ => {}
            }
        }
        order
    }

    /// Folders precede files in every order.
    fn compare(self, one: &ListedEntry, other: &ListedEntry) -> Ordering {
        let (a, b) = (&one.entry.facts, &other.entry.facts);
        let by = match self.by {
            // The entries are sorted by name already, so only the reverse order needs a comparison.
            By::Name if self.descending => {
                let key = |shown: &ListedEntry| (shown.entry.name.to_lowercase(), shown.entry.name.clone());
                key(one).cmp(&key(other))
            }
            By::Name => Ordering::Equal,
            By::Size if one.is_folder() => Ordering::Equal,
            By::Size => a.size.cmp(&b.size),
            By::Date => a.modified.cmp(&b.modified),
        };
        let folders = other.is_folder().cmp(&one.is_folder());
        folders.then(if self.descending { by.reverse() } else { by })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_has_the_order_and_unknown_orders_are_ignored() {
        for (query, by, descending) in [
            ("", By::Name, false),
            ("sort=size", By::Size, false),
            ("sort=date&order=desc", By::Date, true),
            ("order=desc&x=y", By::Name, true),
            ("sort=colour&order=up&sort", By::Name, false),
        ] {
            assert_eq!(SortOrder::of(query), SortOrder { by, descending }, "{query}");
        }
    }
}
