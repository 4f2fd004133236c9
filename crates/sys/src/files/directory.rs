//! The content of a directory beneath a [`Root`].

use rustix::fs::{AtFlags, Dir, FileType, OFlags};

use crate::files::file::{Facts, FileError, Root};

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name, without any directory.
    pub name: String,
    /// Its facts; for a symbolic link those of its target.
    pub facts: Facts,
}

/// The content of a directory, in no order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entries {
    /// The entries that were read.
    pub entries: Vec<Entry>,
    /// Whether the directory has further entries.
    pub more: bool,
}

impl Root {
    /// Reads at most `most` names of the directory `relative`, and looks at the UTF-8 names that `wants` accepts.
    /// Entries that vanish meanwhile are omitted, and so are symbolic links that are broken or leave the root.
    ///
    /// # Errors
    /// It is no directory, this process may not read it, or a resource is exhausted.
    pub fn entries(
        &self,
        relative: &str,
        most: usize,
        wants: impl Fn(&str) -> bool,
    ) -> Result<Entries, FileError> {
        let directory = self.resolve(relative, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut found = Entries { entries: Vec::new(), more: false };
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
            let Some(name) = name.to_str().ok().filter(|name| wants(name)) else { continue };
            let Ok(stat) = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let facts = match FileType::from_raw_mode(stat.st_mode) {
                // The root resolves the link, so its target cannot be outside.
                FileType::Symlink if relative.is_empty() => self.look(name),
                FileType::Symlink => self.look(&format!("{relative}/{name}")),
                _ => Ok(Facts::of(&stat)),
            };
            if let Ok(facts) = facts {
                found.entries.push(Entry { name: name.to_owned(), facts });
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::file::Kind;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    /// A directory that is removed with its content.
    struct Scratch(PathBuf);

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn scratch(name: &str) -> (Scratch, Root) {
        let path = std::env::temp_dir().join(format!("tenfold-directory-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("root/inner")).expect("a temporary directory can be made");
        let root = Root::open(&path.join("root")).expect("the directory was just made");
        (Scratch(path), root)
    }

    #[test]
    fn entries_are_what_they_lead_to_and_nothing_outside_is_one() {
        let (scratch, root) = scratch("entries");
        let inner = scratch.0.join("root/inner");
        fs::write(scratch.0.join("secret"), "secret").expect("our own folder");
        fs::write(inner.join("file"), "12345").expect("our own folder");
        fs::create_dir(inner.join("folder")).expect("our own folder");
        for (name, target) in
            [("good", "file"), ("up", "../../secret"), ("nowhere", "none"), ("to-folder", "folder")]
        {
            symlink(target, inner.join(name)).expect("our own folder");
        }
        fs::write(inner.join("unwanted"), "").expect("our own folder");
        let found = root.entries("inner", 100, |name| name != "unwanted").expect("it can be read");
        let mut seen: Vec<_> =
            found.entries.iter().map(|entry| (&entry.name[..], entry.facts.kind, entry.facts.size)).collect();
        seen.iter_mut().filter(|(_, kind, _)| *kind == Kind::Directory).for_each(|(.., size)| *size = 0);
        seen.sort_by_key(|(name, ..)| *name);
        assert_eq!(
            seen,
            [
                ("file", Kind::File, 5),
                ("folder", Kind::Directory, 0),
                ("good", Kind::File, 5),
                ("to-folder", Kind::Directory, 0),
            ]
        );
        assert!(!found.more);
    }

    #[test]
    fn the_bound_is_exact_and_what_is_no_directory_is_refused() {
        let (scratch, root) = scratch("bound");
        for name in 0..4 {
            fs::write(scratch.0.join(format!("root/inner/{name}")), "").expect("our own folder");
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
