//! The links of a listing, relative to the requested URL. The URL may lack a final slash, and a rewrite may
//! lead from it to a folder with another path.

use crate::rules::path::{Shown, SitePath};
use crate::rules::routes::{Routes, Slash};

/// The links from a requested URL to the entries of a folder.
pub(super) struct FolderLinks {
    pub(super) requested: SitePath,
    /// The folder that is listed.
    pub(super) folder: SitePath,
    /// Whether the entries can be requested beneath the requested path.
    is_beneath: bool,
    shown: Shown,
    slash: Slash,
}

impl FolderLinks {
    pub(super) fn new(requested: SitePath, routes: &Routes) -> FolderLinks {
        let (mut folder, mut is_beneath) = (requested.clone(), true);
        if let Some(rewritten) = routes.rewrite(&requested) {
            let entry = routes.rewrite(&requested.entry("x"));
            is_beneath = entry.is_some_and(|entry| entry.relative() == rewritten.entry("x").relative());
            folder = rewritten;
        }
        FolderLinks { requested, folder, is_beneath, shown: routes.shown.clone(), slash: routes.slash }
    }

    /// The path beneath which the entries are requested.
    pub(super) fn address(&self) -> &SitePath {
        if self.is_beneath { &self.requested } else { &self.folder }
    }

    /// Returns the link to the entry called `name`, or None if it cannot be requested.
    pub(super) fn to(&self, name: &str, is_folder: bool) -> Option<String> {
        let entry = self.address().child(name, &self.shown)?;
        let slash = if is_folder && self.slash != Slash::Remove { "/" } else { "" };
        let base = match self.requested.canonical().rsplit('/').next() {
            _ if !self.is_beneath => format!("{}/", self.folder.canonical().trim_end_matches('/')),
            // Relative links replace the last name of a URL without a final slash.
            Some(last) if !last.is_empty() => format!("./{last}/"),
            _ => "./".to_owned(),
        };
        Some(format!("{base}{entry}{slash}"))
    }

    /// Returns the link to the folder that is `levels`, at least one, above the requested folder.
    pub(super) fn above(&self, levels: usize) -> String {
        let names: Vec<_> = self.requested.canonical().split('/').filter(|name| !name.is_empty()).collect();
        let target = names.len().checked_sub(levels + 1).map(|at| names[at]);
        match target {
            _ if self.requested.asks_for_directory() => "../".repeat(levels),
            // The path of the root always ends in a slash.
            Some(name) if self.slash == Slash::Remove => format!("{}{name}", "../".repeat(levels)),
            _ if levels == 1 => "./".to_owned(),
            _ => "../".repeat(levels - 1),
        }
    }
}
