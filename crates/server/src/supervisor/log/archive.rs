//! Rotated files of the access log: `access.log.2026-11-21`, `access.log.2026-11-21.2`. The oldest are removed.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tenfold_sys::folder::OpenFolder;
use tenfold_sys::user::{self, SystemUser};

use crate::diagnostics::{debug, warning};

/// A rotated file. The order is that of rotation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RotatedFile {
    day: String,
    number: u32,
    name: OsString,
}

/// Removes all rotated files of the log at `path` but the newest `keep`. Files of users other than root, this process and
/// `workers` are neither counted nor removed.
pub(crate) fn remove_oldest(path: &Path, keep: usize, workers: Option<&SystemUser>) -> io::Result<()> {
    let mut files = list(path)?;
    let (folder, _) = OpenFolder::around(path)?;
    let users = [0, user::own(), workers.map_or(0, |user| user.id)];
    let is_own = |file: &RotatedFile| {
        let facts = folder.look(&file.name).and_then(|found| found.metadata());
        facts.is_ok_and(|facts| facts.is_file() && facts.nlink() == 1 && users.contains(&facts.uid()))
    };
    let found = files.len();
    files.retain(is_own);
    if let others @ 1.. = found - files.len() {
        let shown = path.display();
        warning!(
            "{others} names of rotated files in the folder of {shown} are no files of the server, and stay"
        );
    }
    for file in &files[..files.len().saturating_sub(keep)] {
        let name = file.name.display();
        match folder.remove(&file.name) {
            Ok(()) => debug!("{name} was removed (log-keep)"),
            Err(error) => warning!("cannot remove the rotated log {name}: {error}"),
        }
    }
    Ok(())
}

impl RotatedFile {
    /// Reads the name of a file in the folder of the log `own`. `None` for any other file.
    fn parse(own: &OsStr, name: &OsStr) -> Option<RotatedFile> {
        let rest = name.as_bytes().strip_prefix(own.as_bytes())?.strip_prefix(b".")?;
        let rest = str::from_utf8(rest).ok()?;
        let (day, number) = rest.split_at_checked(10)?;
        let digits = day.bytes().enumerate().all(|(place, byte)| match place {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
        let number = match number {
            "" => 1,
            _ => number.strip_prefix('.')?.parse().ok().filter(|number| *number > 1)?,
        };
        digits.then(|| RotatedFile { day: day.to_owned(), number, name: name.to_owned() })
    }
}

/// The rotated files of the log at `path`, the oldest first.
fn list(path: &Path) -> io::Result<Vec<RotatedFile>> {
    let Some(own) = path.file_name() else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in fs::read_dir(path.parent().unwrap_or(Path::new(".")))? {
        found.extend(RotatedFile::parse(own, &entry?.file_name()));
    }
    found.sort();
    Ok(found)
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
            "a.log.2026-11-21.gz",
            "a.log.2026-11-2x",
            "a.log.2026-11-21.x",
            "b.log.2026-11-21",
            "a.log.2026-11-21.bak",
            "a.log.2026-11-é",
        ];
        assert_eq!(names(&files(&others)), Vec::<String>::new());
    }

    #[test]
    fn files_are_in_the_order_of_rotation() {
        let all =
            files(&["a.log.2026-11-21.10", "a.log.2026-11-21.2", "a.log.2026-11-20", "a.log.2026-11-21"]);
        let order = ["a.log.2026-11-20", "a.log.2026-11-21", "a.log.2026-11-21.2", "a.log.2026-11-21.10"];
        assert_eq!(names(&all), order);
    }
}
