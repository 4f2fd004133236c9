//! The text below a listing: the beginning of the folder's README file.

use std::os::unix::fs::FileExt;

use tenfold_sys::directory::DirectoryEntry;
use tenfold_sys::file::{FileKind, Root};

use crate::files::protection::Protection;
use crate::respond::listing::folder::Readme;
use crate::rules::access::Guard;
use crate::rules::path::SitePath;
use crate::rules::routes::Routes;

/// The names of the file in lower case, in the order in which they are tried.
const NAMES: [&str; 3] = ["readme.md", "readme.txt", "readme"];
/// The most bytes of the file that are shown.
const MOST: usize = 64 << 10;

/// Reads the README of a listed `folder` whose `guard` admitted the client. None if there is no such file, if it needs
/// other credentials, or if its URL leads elsewhere.
pub(super) fn of(
    entries: &[DirectoryEntry],
    folder: &SitePath,
    root: &Root,
    protection: &Protection,
    routes: &Routes,
    guard: &Guard,
) -> Option<Readme> {
    let entry = NAMES.iter().find_map(|wanted| {
        let is_it = |entry: &&DirectoryEntry| {
            entry.facts.kind == FileKind::File && entry.name.eq_ignore_ascii_case(wanted)
        };
        entries.iter().find(is_it)
    })?;
    let path = folder.entry(&entry.name);
    if routes.redirect(&path, None).is_some() || routes.rewrite(&path).is_some() {
        return None;
    }
    let (file, facts) = root.open_file(path.relative()).ok()?;
    let own = protection.guard(path.relative(), &facts).ok()??;
    if facts.kind != FileKind::File || !(own.is_open() || own == *guard) {
        return None;
    }
    let mut bytes = vec![0; MOST.min(usize::try_from(facts.size).unwrap_or(MOST))];
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], read as u64) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    bytes.truncate(read);
    let is_cut = facts.size > read as u64;
    // A character at the cut may be incomplete.
    if is_cut && let Some(incomplete) = bytes.utf8_chunks().last().map(|chunk| chunk.invalid().len()) {
        bytes.truncate(read - incomplete);
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    (!text.trim().is_empty()).then(|| Readme { name: entry.name.clone(), text, is_cut })
}
