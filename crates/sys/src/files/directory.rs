//! The content of a directory beneath a [`Root`].

use rustix::fs::{AtFlags, Dir, FileType, OFlags};

use crate::files::file::{FileError, FileStat, Root};
use crate::files::identity::Identity;

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// Its name, without any directory.
    pub name: String,
    /// Its facts; for a symbolic link those of its target.
    pub facts: FileStat,
}

/// The content of a directory, in no order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryListing {
    /// The entries that were read.
    pub entries: Vec<DirectoryEntry>,
    /// Whether the directory has further entries.
    pub more: bool,
    /// The directory that was read.
    pub identity: Identity,
}

impl Root {
    /// Reads at most `most` names of the directory `relative`, and looks at the names that `wants` accepts. Names
    /// that are not UTF-8 are omitted after that call. Entries that vanish meanwhile are omitted, and so are symbolic links that are broken or leave the root.
    ///
    /// # Errors
    /// It is no directory, this process may not read it, or a resource is exhausted.
    pub fn entries(
        &self,
        relative: &str,
        most: usize,
        mut wants: impl FnMut(&[u8]) -> bool,
    ) -> Result<DirectoryListing, FileError> {
        let directory = self.resolve(relative, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let identity = FileStat::of(&rustix::fs::fstat(&directory)?).identity();
        let mut found = DirectoryListing { entries: Vec::new(), more: false, identity };
        let mut read = 0;
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            if read == most {
                found.more = true;
                break;
            }
            read += 1;
            if !wants(name.to_bytes()) {
                continue;
            }
            let Ok(name) = name.to_str() else { continue };
            let Ok(stat) = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let facts = match FileType::from_raw_mode(stat.st_mode) {
                // The root resolves the link, so its target cannot be outside.
                FileType::Symlink if relative.is_empty() => self.look(name),
                FileType::Symlink => self.look(&format!("{relative}/{name}")),
                _ => Ok(FileStat::of(&stat)),
            };
            if let Ok(facts) = facts {
                found.entries.push(DirectoryEntry { name: name.to_owned(), facts });
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::file::FileKind;
    use crate::files::test_folder::TestFolder;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn folder(name: &str) -> (TestFolder, Root) {
        let folder = TestFolder::new(&format!("directory-{name}"));
        fs::create_dir(folder.at("root/inner")).expect("our own folder");
        let root = folder.root();
        (folder, root)
    }

    #[test]
    fn entries_are_link_targets_beneath_the_root() {
        let (folder, root) = folder("entries");
        let inner = folder.at("root/inner");
        fs::write(folder.at("secret"), "secret").expect("our own folder");
        fs::write(inner.join("file"), "12345").expect("our own folder");
        fs::create_dir(inner.join("folder")).expect("our own folder");
        for (name, target) in
            [("good", "file"), ("up", "../../secret"), ("nowhere", "none"), ("to-folder", "folder")]
        {
            symlink(target, inner.join(name)).expect("our own folder");
        }
        fs::write(inner.join("unwanted"), "").expect("our own folder");
        let found = root.entries("inner", 100, |name| name != b"unwanted").expect("it can be read");
        let mut seen: Vec<_> =
            found.entries.iter().map(|entry| (&entry.name[..], entry.facts.kind, entry.facts.size)).collect();
        seen.iter_mut().filter(|(_, kind, _)| *kind == FileKind::Directory).for_each(|(.., size)| *size = 0);
        seen.sort_by_key(|(name, ..)| *name);
        assert_eq!(
            seen,
            [
                ("file", FileKind::File, 5),
                ("folder", FileKind::Directory, 0),
                ("good", FileKind::File, 5),
                ("to-folder", FileKind::Directory, 0),
            ]
        );
        assert!(!found.more);
    }

    #[test]
    fn the_bound_is_exact_and_files_are_rejected() {
        let (folder, root) = folder("bound");
        for name in 0..4 {
            fs::write(folder.at(&format!("root/inner/{name}")), "").expect("our own folder");
        }
        for (most, count, more) in [(3, 3, true), (4, 4, false), (5, 4, false)] {
            let found = root.entries("inner", most, |_| true).expect("it can be read");
            assert_eq!((found.entries.len(), found.more), (count, more), "of {most}");
        }
        assert_eq!(root.entries("inner/0", 9, |_| true), Err(FileError::Absent));
        assert_eq!(root.entries("none", 9, |_| true), Err(FileError::Absent));
        assert_eq!(root.entries("", 9, |_| true).map(|found| found.entries.len()), Ok(1));
    }
}
