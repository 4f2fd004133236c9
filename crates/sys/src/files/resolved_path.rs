//! The resolved path of a file: its path beneath a [`Root`] without links, and every directory above it.
//!
//! Many names and mounts may lead to a directory, but its device and inode are always the same. So ancestors are
//! compared by these, never by name.

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::files::file::{FileError, Root};
pub use crate::files::identity::Identity;
use crate::files::identity::{directories_above, identity};

/// The resolved path of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedPath {
    /// Its path with all links resolved, as far as the names are known: beneath the root, and above it unless the root
    /// was moved after it was opened. Bytes that are not UTF-8 are replaced.
    pub path: String,
    /// The file itself, then every directory above it, nearest first, up to the root of the file system.
    pub ancestry: Vec<Identity>,
}

impl ResolvedPath {
    /// The number of names in [`ResolvedPath::path`], which correspond to the first entries of
    /// [`ResolvedPath::ancestry`].
    pub fn depth(&self) -> usize {
        self.path.split('/').filter(|name| !name.is_empty()).count()
    }
}

impl Root {
    /// Resolves the current path of `relative`. [`Root::follow`] sets which links are followed.
    ///
    /// # Errors
    /// The name does not exist beneath the root, or a resource is exhausted.
    pub fn resolved_path(&self, relative: &str) -> Result<ResolvedPath, FileError> {
        let mut way = self.walk();
        let found = way.open(relative, OFlags::PATH)?;
        let mut ancestry = Vec::with_capacity(way.entered.len() + self.above.len() + 2);
        if way.last.is_some() {
            ancestry.push(identity(&found)?);
        }
        for (_, directory) in way.entered.iter().rev() {
            ancestry.push(identity(directory)?);
        }
        ancestry.push(identity(&self.directory)?);
        let (above, complete) = directories_above(&self.directory);
        let is_moved = !self.above.starts_with(&above);
        if is_moved {
            ancestry.extend(above);
        }
        if !is_moved || !complete {
            ancestry.extend(&self.above);
        }
        let names =
            way.entered.iter().map(|(name, _)| name).chain(&way.last).map(|name| name.to_string_lossy());
        let names_above = self.names.iter().filter(|_| !is_moved).map(|name| name.into());
        let names: Vec<_> = names_above.chain(names).collect();
        Ok(ResolvedPath { path: names.join("/"), ancestry })
    }

    /// The directory that the root's path leads to now, if it differs: the path or its link has a new target.
    ///
    /// # Errors
    /// A temporary obstacle: no descriptors or memory are left, or the system failed.
    pub fn successor(&self) -> Result<Option<Root>, FileError> {
        let reason = |error| FileError::from(Errno::from_io_error(&error).unwrap_or(Errno::ACCESS));
        if unless_unreachable(self.has_its_name().map_err(reason))? != Some(false) {
            return Ok(None);
        }
        let opened = Root::open(&self.path).map_err(|failed| reason(failed.error));
        let Some(mut successor) = unless_unreachable(opened)? else { return Ok(None) };
        successor.follow(self.links);
        Ok(Some(successor))
    }

    /// The identity of `relative` now; `None` if it is absent.
    ///
    /// # Errors
    /// [`FileError::Forbidden`] if this process lacks permission; otherwise see [`Root::successor`].
    pub fn identity_of(&self, relative: &str) -> Result<Option<Identity>, FileError> {
        if relative.is_empty() {
            return Ok(Some(identity(&self.directory)?));
        }
        match self.look(relative) {
            Ok(facts) => Ok(Some(facts.identity())),
            Err(FileError::Absent | FileError::Link) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The remembered identity of `relative`.
    pub fn remembered(&self, relative: &str) -> Option<Identity> {
        self.remembered.iter().find(|(name, _)| name == relative).map(|(_, identity)| *identity)
    }

    /// Remembers the identities of `names`, for a process that drops the privileges to look them up.
    pub fn remember<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) {
        let found = |name: &str| Some((name.to_owned(), self.look(name).ok()?.identity()));
        self.remembered = names.into_iter().filter_map(found).collect();
    }
}

/// Maps an absent or inaccessible directory to `None`, and keeps other errors.
fn unless_unreachable<T>(found: Result<T, FileError>) -> Result<Option<T>, FileError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(FileError::Absent | FileError::Link | FileError::Forbidden) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::Path;

    use super::*;
    use crate::files::links::Links;
    use crate::files::test_folder::TestFolder;

    fn folder(name: &str) -> TestFolder {
        let folder = TestFolder::new(&format!("place-{name}"));
        fs::create_dir_all(folder.at("root/one/two")).expect("our own directory");
        fs::write(folder.at("root/one/two/file"), "").expect("our own directory");
        symlink("one/two", folder.at("root/link")).expect("our own directory");
        symlink("link/../two/file", folder.at("root/round")).expect("our own directory");
        folder
    }

    fn named(path: &Path) -> Identity {
        let facts = fs::metadata(path).expect("it is there");
        Identity { device: facts.dev(), inode: facts.ino() }
    }

    #[test]
    fn h83_a_resolved_path_is_the_same_by_every_route() {
        let folder = folder("ways");
        let root = folder.root();
        let file = folder.at("root/one/two/file").canonicalize().expect("it is there");
        let expected: Vec<_> = file.ancestors().map(named).collect();
        for way in ["one/two/file", "link/file", "round"] {
            let place = root.resolved_path(way).expect("it is there");
            assert_eq!(Path::new("/").join(&place.path), file, "{way}");
            assert_eq!((&place.ancestry, place.depth()), (&expected, expected.len() - 1), "{way}");
        }
        let target = root.resolved_path("link").expect("it is there");
        assert_eq!(Some(Path::new("/").join(&target.path).as_path()), file.parent());
        assert_eq!(target.ancestry, expected[1..]);
        let whole = root.resolved_path("").expect("it is there");
        assert_eq!((whole.depth(), &whole.ancestry[..]), (target.depth() - 2, &expected[3..]));
        assert_eq!(root.resolved_path("none"), Err(FileError::Absent));
        let mut strict = folder.root();
        strict.follow(Links::None);
        assert_eq!(strict.resolved_path("link/file"), Err(FileError::Link));
    }

    #[test]
    fn h83_of_a_moved_root_only_the_names_beneath_it_are_known() {
        let folder = folder("moved");
        let (root, moved) = (folder.root(), folder.at("elsewhere/root"));
        fs::create_dir(folder.at("elsewhere")).expect("our own directory");
        fs::rename(folder.at("root"), &moved).expect("our own directory");
        let place = root.resolved_path("one/two/file").expect("it is there");
        let moved = moved.join("one/two/file").canonicalize().expect("it is there");
        assert_eq!((place.path.as_str(), place.depth()), ("one/two/file", 3));
        assert_eq!(place.ancestry, moved.ancestors().map(named).collect::<Vec<_>>());
    }

    #[test]
    fn h83_the_successor_of_a_root_is_found_by_its_path() {
        let folder = folder("successor");
        let (old, new) = (folder.at("root"), folder.at("new"));
        let root = folder.root();
        assert!(matches!(root.successor(), Ok(None)));
        fs::create_dir(&new).expect("our own directory");
        fs::rename(&old, folder.at("old")).expect("our own directory");
        assert!(matches!(root.successor(), Ok(None)), "nothing has the name");
        symlink("new", &old).expect("our own directory");
        let successor = root.successor().expect("it can be found").expect("another directory has the name");
        assert_eq!(successor.look("").map(|facts| facts.identity()), Ok(named(&new)));
        assert_eq!(root.look("").map(|facts| facts.identity()), Ok(named(&folder.at("old"))));
    }
}
