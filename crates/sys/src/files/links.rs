//! Symbolic links beneath a root, filtered by owner.
//!
//! The kernel follows every link or no link, and beneath a directory no absolute link. For the owner rule and for absolute
//! links, this module walks a path name by name, with a descriptor for each directory. So a rename during the walk cannot
//! redirect it. If the text of an absolute link begins with a path of the root, the walk continues at the root. Other
//! absolute links count as absent. The walk never opens a directory above the root.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// The symbolic links that are followed. Links that leave the root are never followed.
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

/// A walk along a path beneath a root.
pub(crate) struct LinkWalk<'r> {
    root: &'r OwnedFd,
    /// The absolute paths of the root.
    paths: &'r [PathBuf],
    links: Links,
    /// The entered directories, outermost first, with their names.
    pub(crate) entered: Vec<(CString, OwnedFd)>,
    /// The name of the opened object, unless it is a directory.
    pub(crate) last: Option<CString>,
    /// The remaining steps; the next one is the last element.
    left: Vec<WalkStep>,
}

impl<'r> LinkWalk<'r> {
    /// Creates a walk with this link rule, beneath the root that has these absolute paths.
    pub(crate) fn new(root: &'r OwnedFd, paths: &'r [PathBuf], links: Links) -> LinkWalk<'r> {
        LinkWalk { root, paths, links, entered: Vec::new(), last: None, left: Vec::new() }
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
                    if links > MOST_LINKS {
                        return Err(Errno::LOOP);
                    }
                    if self.links == Links::SameOwner {
                        self.left.push(WalkStep::Belongs(stat.st_uid));
                    }
                    let target = Path::new(OsStr::from_bytes(target.as_bytes()));
                    let mut beneath = target;
                    if target.is_absolute() {
                        let own = self.paths.iter().find_map(|path| target.strip_prefix(path).ok());
                        beneath = own.ok_or(Errno::XDEV)?;
                        self.entered.clear();
                    }
                    self.plan(beneath.as_os_str().as_bytes())?;
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
        let ours = "the directory is ours";
        let own =
            |name: &str| folder.at("root").join(name).display().to_string().trim_end_matches('/').to_owned();
        fs::create_dir_all(folder.at("root/folder/inner")).expect(ours);
        fs::write(folder.at("secret"), "secret").expect(ours);
        fs::write(folder.at("root/page"), "page").expect(ours);
        fs::write(folder.at("root/folder/leaf"), "leaves").expect(ours);
        for (link, target) in [
            ("to-page", "page"),
            ("to-folder", "folder"),
            ("folder/up", "../page"),
            ("folder/inner/round", "../../to-folder/inner/../leaf"),
            ("chain", "to-page"),
            ("out", "../secret"),
            ("absolute", "/etc/passwd"),
            ("absolute-own", &own("page")),
            ("absolute-folder", &own("to-folder/inner")),
            ("folder/absolute-dots", &own("folder/../page")),
            ("absolute-root", &own("")),
            ("absolute-out", &own("../secret")),
            ("absolute-beside", &format!("{}2/page", own(""))),
            ("absolute-into-out", &own("out")),
            ("loop", "loop"),
            ("through-file", "page/../page"),
            ("nowhere", "nothing"),
        ] {
            symlink(target, folder.at("root").join(link)).expect(ours);
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
            assert_eq!(root.look(link), Err(FileError::Link), "{link}");
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
            "absolute-own",
            "absolute-folder",
            "absolute-folder/round",
            "folder/absolute-dots",
            "absolute-root",
            "absolute-root/folder/leaf",
            "absolute-out",
            "absolute-beside",
            "absolute-into-out",
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
    fn an_absolute_link_to_a_target_beneath_the_root_is_followed() {
        let folder = linked("absolute");
        symlink("root", folder.at("current")).expect("the directory is ours");
        let current = folder.at("current");
        symlink(current.join("folder"), folder.at("root/by-name")).expect("the directory is ours");
        for links in [Links::Beneath, Links::SameOwner] {
            let mut root = Root::open(&current).expect("a link leads to it");
            root.follow(links);
            let size = |path: &str| root.look(path).map(|facts| facts.size);
            assert_eq!((size("absolute-own"), size("folder/absolute-dots")), (Ok(4), Ok(4)), "{links:?}");
            assert_eq!((size("by-name/leaf"), size("absolute-folder/round")), (Ok(6), Ok(6)), "{links:?}");
            assert_eq!(root.look("absolute-root").map(|facts| facts.kind), Ok(FileKind::Directory));
            for out in ["absolute", "absolute-out", "absolute-beside", "absolute-into-out"] {
                assert_eq!(size(out), Err(FileError::Link), "{links:?} {out}");
            }
            let place = root.resolved_path("absolute-folder/../leaf");
            assert_eq!(place, root.resolved_path("folder/leaf"), "{links:?}");
        }
        assert_eq!(root(&folder, Links::None).look("absolute-own"), Err(FileError::Link));
    }

    #[test]
    fn h75_a_link_of_another_user_counts_as_absent() {
        let folder = linked("owner");
        let at = |name: &str| folder.at("root").join(name);
        // Only root can change the owner of a link.
        if lchown(at("to-page"), Some(12_345), None).is_err() {
            return;
        }
        lchown(at("to-folder"), Some(12_345), None).expect("it could be done before");
        let root = root(&folder, Links::SameOwner);
        for link in ["to-page", "chain", "to-folder", "to-folder/leaf", "folder/inner/round"] {
            assert_eq!(root.look(link), Err(FileError::Link), "{link}");
            assert!(root.open_file(link).is_err(), "{link}");
        }
        assert_eq!(root.look("folder/up").map(|facts| facts.size), Ok(4));
        lchown(at("page"), Some(12_345), None).expect("it could be done before");
        assert_eq!(root.look("to-page").map(|facts| facts.size), Ok(4));
        assert_eq!(root.look("folder/up"), Err(FileError::Link));
    }
}
