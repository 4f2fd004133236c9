//! Symbolic links beneath a root, filtered by owner.
//!
//! The kernel can follow every link or none. For the owner rule, this module walks a path name by name, with a
//! descriptor for each directory. So a rename during the walk cannot redirect it.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// The symbolic links that are followed; links that leave the root never are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// All that stay beneath the root.
    #[default]
    Beneath,
    /// None.
    None,
    /// Links that belong to the owner of their target.
    SameOwner,
}

/// The limit of links in one path, equal to the kernel's (`man 7 path_resolution`).
pub(crate) const MOST_LINKS: usize = 40;

/// A remaining step of a walk.
enum WalkStep {
    Enter(CString),
    /// The current object must belong to this user.
    Belongs(u32),
}

/// Opens `path` beneath `root`, following only links that belong to the owner of their target.
pub(crate) fn open_by_owner(root: &OwnedFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    LinkWalk::new(root, Links::SameOwner).open(path, flags)
}

/// A walk along a path beneath a root.
pub(crate) struct LinkWalk<'r> {
    root: &'r OwnedFd,
    links: Links,
    /// The entered directories, outermost first, with their names.
    pub(crate) entered: Vec<(CString, OwnedFd)>,
    /// The name of the opened object, unless it is a directory.
    pub(crate) last: Option<CString>,
    /// The remaining steps; the next one is the last element.
    left: Vec<WalkStep>,
}

impl<'r> LinkWalk<'r> {
    /// Creates a walk with this link rule.
    pub(crate) fn new(root: &'r OwnedFd, links: Links) -> LinkWalk<'r> {
        LinkWalk { root, links, entered: Vec::new(), last: None, left: Vec::new() }
    }

    /// Walks along `path` and opens its target.
    pub(crate) fn open(&mut self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        self.plan(path.as_bytes())?;
        let mut links = 0;
        while let Some(step) = self.left.pop() {
            let name = match step {
                WalkStep::Belongs(owner) => {
                    belongs(self.here(), owner)?;
                    continue;
                }
                WalkStep::Enter(name) if name.as_bytes() == b".." => {
                    self.entered.pop().ok_or(Errno::XDEV)?;
                    continue;
                }
                WalkStep::Enter(name) => name,
            };
            let beginning = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let found = rustix::fs::openat(self.here(), &name, beginning, Mode::empty())?;
            let stat = rustix::fs::fstat(&found)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => self.entered.push((name, found)),
                FileType::Symlink if self.links == Links::None => return Err(Errno::LOOP),
                FileType::Symlink => {
                    links += 1;
                    let target = rustix::fs::readlinkat(&found, "", Vec::new())?;
                    if links > MOST_LINKS || target.as_bytes().starts_with(b"/") {
                        return Err(if links > MOST_LINKS { Errno::LOOP } else { Errno::XDEV });
                    }
                    if self.links == Links::SameOwner {
                        self.left.push(WalkStep::Belongs(stat.st_uid));
                    }
                    self.plan(target.as_bytes())?;
                }
                _ => {
                    let opened = self.end(&name, flags)?;
                    self.last = Some(name);
                    return Ok(opened);
                }
            }
        }
        rustix::fs::openat(self.here(), ".", flags | OFlags::CLOEXEC, Mode::empty())
    }

    fn here(&self) -> BorrowedFd<'_> {
        self.entered.last().map_or(self.root, |(_, directory)| directory).as_fd()
    }

    /// Inserts the steps of `path` before the remaining ones.
    fn plan(&mut self, path: &[u8]) -> Result<(), Errno> {
        for name in path.split(|byte| *byte == b'/').rev() {
            if !matches!(name, b"" | b".") {
                self.left.push(WalkStep::Enter(CString::new(name).map_err(|_| Errno::INVAL)?));
            }
        }
        Ok(())
    }

    /// Opens `name` here if it is the end of the walk and no directory.
    fn end(&self, name: &CString, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(self.here(), name, flags, Mode::empty())?;
        for step in &self.left {
            match step {
                WalkStep::Belongs(owner) => belongs(opened.as_fd(), *owner)?,
                WalkStep::Enter(_) => return Err(Errno::NOTDIR),
            }
        }
        Ok(opened)
    }
}

/// Checks that the object belongs to this user. Otherwise it counts as absent, as does a link that leaves the root.
fn belongs(what: BorrowedFd<'_>, owner: u32) -> Result<(), Errno> {
    if rustix::fs::fstat(what)?.st_uid == owner { Ok(()) } else { Err(Errno::LOOP) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{lchown, symlink};

    use super::*;
    use crate::files::file::{FileError, FileKind, Root};
    use crate::files::test_folder::TestFolder;

    /// A folder whose root has links of all kinds.
    fn linked(name: &str) -> TestFolder {
        let folder = TestFolder::new(&format!("links-{name}"));
        let own = "the directory is ours";
        fs::create_dir_all(folder.at("root/folder/inner")).expect(own);
        fs::write(folder.at("secret"), "secret").expect(own);
        fs::write(folder.at("root/page"), "page").expect(own);
        fs::write(folder.at("root/folder/leaf"), "leaves").expect(own);
        for (link, target) in [
            ("to-page", "page"),
            ("to-folder", "folder"),
            ("folder/up", "../page"),
            ("folder/inner/round", "../../to-folder/inner/../leaf"),
            ("chain", "to-page"),
            ("out", "../secret"),
            ("absolute", "/etc/passwd"),
            ("loop", "loop"),
            ("through-file", "page/../page"),
            ("nowhere", "nothing"),
        ] {
            symlink(target, folder.at("root").join(link)).expect(own);
        }
        folder
    }

    fn root(folder: &TestFolder, links: Links) -> Root {
        let mut root = folder.root();
        root.follow(links);
        root
    }

    #[test]
    fn no_link_is_followed_if_links_are_off() {
        let folder = linked("none");
        let root = root(&folder, Links::None);
        assert_eq!(root.look("page").map(|facts| facts.size), Ok(4));
        assert_eq!(root.look("folder/leaf").map(|facts| facts.size), Ok(6));
        for link in ["to-page", "to-folder/leaf", "folder/up", "chain", "out"] {
            assert_eq!(root.look(link), Err(FileError::Absent), "{link}");
        }
    }

    #[test]
    fn a_walk_reaches_the_same_targets_as_the_kernel() {
        let folder = linked("walk");
        let (kernel, walk) = (root(&folder, Links::Beneath), root(&folder, Links::SameOwner));
        for path in [
            "",
            "page",
            "folder",
            "to-page",
            "to-folder",
            "to-folder/leaf",
            "to-folder/inner",
            "folder/up",
            "folder/inner/round",
            "chain",
            "out",
            "absolute",
            "loop",
            "through-file",
            "nowhere",
            "to-page/x",
            "to-folder/none",
        ] {
            assert_eq!(walk.look(path), kernel.look(path), "{path}");
            let opened = |root: &Root| root.open_file(path).map(|(_, facts)| facts);
            assert_eq!(opened(&walk), opened(&kernel), "{path}");
        }
        assert_eq!(walk.look("to-folder").map(|facts| facts.kind), Ok(FileKind::Directory));
    }

    #[test]
    fn a_link_of_another_user_counts_as_absent() {
        let folder = linked("owner");
        let at = |name: &str| folder.at("root").join(name);
        // Only root can change the owner of a link.
        if lchown(at("to-page"), Some(12_345), None).is_err() {
            return;
        }
        lchown(at("to-folder"), Some(12_345), None).expect("it could be done before");
        let root = root(&folder, Links::SameOwner);
        for link in ["to-page", "chain", "to-folder", "to-folder/leaf", "folder/inner/round"] {
            assert_eq!(root.look(link), Err(FileError::Absent), "{link}");
            assert!(root.open_file(link).is_err(), "{link}");
        }
        assert_eq!(root.look("folder/up").map(|facts| facts.size), Ok(4));
        lchown(at("page"), Some(12_345), None).expect("it could be done before");
        assert_eq!(root.look("to-page").map(|facts| facts.size), Ok(4));
        assert_eq!(root.look("folder/up"), Err(FileError::Absent));
    }
}
