//! The names of rotated files of the access log: `access.log.2026-11-21`, `access.log.2026-11-21.2`, and the same with
//! `.gz` once they are compressed.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The suffix of compressed files.
pub(in crate::supervisor) const COMPRESSED: &str = ".gz";

/// A rotated file. The order is that of rotation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RotatedFile {
    day: String,
    number: u32,
    pub(super) is_compressed: bool,
    pub(super) name: OsString,
}

impl RotatedFile {
    /// Reads the name of a file in the folder of the log `own`. `None` for any other file.
    fn parse(own: &OsStr, name: &OsStr) -> Option<RotatedFile> {
        let rest = name.as_bytes().strip_prefix(own.as_bytes())?.strip_prefix(b".")?;
        let rest = str::from_utf8(rest).ok()?;
        let plain = rest.strip_suffix(COMPRESSED);
        let (day, number) = plain.unwrap_or(rest).split_at_checked(10)?;
        let digits = day.bytes().enumerate().all(|(place, byte)| match place {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
        let number = match number {
            "" => 1,
            _ => number.strip_prefix('.')?.parse().ok().filter(|number| *number > 1)?,
        };
        let (day, is_compressed) = (day.to_owned(), plain.is_some());
        digits.then(|| RotatedFile { day, number, is_compressed, name: name.to_owned() })
    }

    fn rotation(&self) -> (&str, u32) {
        (&self.day, self.number)
    }
}

/// The rotated files of the log at `path`, the oldest first.
///
/// # Errors
/// The folder cannot be read.
pub(super) fn list(path: &Path) -> io::Result<Vec<RotatedFile>> {
    let Some(own) = path.file_name() else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in fs::read_dir(path.parent().unwrap_or(Path::new(".")))? {
        found.extend(RotatedFile::parse(own, &entry?.file_name()));
    }
    found.sort();
    Ok(found)
}

/// The files of all rotations but the newest `keep`.
pub(super) fn beyond(files: &[RotatedFile], keep: usize) -> &[RotatedFile] {
    let rotations: BTreeSet<_> = files.iter().map(RotatedFile::rotation).collect();
    let kept = rotations.into_iter().rev().take(keep).next_back();
    let old = files.iter().take_while(|file| kept.is_none_or(|oldest| file.rotation() < oldest));
    &files[..old.count()]
}

/// The files that have no compressed file beside them.
pub(super) fn uncompressed(files: &[RotatedFile]) -> impl Iterator<Item = &RotatedFile> {
    let compressed: BTreeSet<_> =
        files.iter().filter(|file| file.is_compressed).map(RotatedFile::rotation).collect();
    files.iter().filter(move |file| !compressed.contains(&file.rotation()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[&str]) -> Vec<RotatedFile> {
        let parse = |name: &&str| RotatedFile::parse(OsStr::new("a.log"), OsStr::new(name));
        let mut files: Vec<_> = names.iter().filter_map(parse).collect();
        files.sort();
        files
    }

    fn names(files: &[RotatedFile]) -> Vec<String> {
        files.iter().map(|file| file.name.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn only_names_of_rotation_are_rotated_files() {
        let others = [
            "a.log",
            "a.log.1",
            "a.log.gz",
            "a.log.2026-11-21.1",
            "a.log.2026-11-21.gz.tmp",
            "a.log.2026-11-2x",
            "a.log.2026-11-21.x",
            "b.log.2026-11-21",
            "a.log.2026-11-21.bak",
            "a.log.2026-11-é",
        ];
        assert_eq!(names(&files(&others)), Vec::<String>::new());
    }

    #[test]
    fn the_oldest_rotations_are_beyond_the_kept_ones() {
        let all = files(&[
            "a.log.2026-11-21.10",
            "a.log.2026-11-21.2.gz",
            "a.log.2026-11-20.gz",
            "a.log.2026-11-21",
            "a.log.2026-11-21.gz",
        ]);
        assert_eq!(names(beyond(&all, 4)), Vec::<String>::new());
        assert_eq!(names(beyond(&all, 3)), ["a.log.2026-11-20.gz"]);
        assert_eq!(
            names(beyond(&all, 2)),
            ["a.log.2026-11-20.gz", "a.log.2026-11-21", "a.log.2026-11-21.gz"]
        );
        assert_eq!(beyond(&all, 1).len(), 4);
        assert_eq!(beyond(&[], 1).len(), 0);
        let left: Vec<_> = uncompressed(&all).cloned().collect();
        assert_eq!(names(&left), ["a.log.2026-11-21.10"]);
    }
}
