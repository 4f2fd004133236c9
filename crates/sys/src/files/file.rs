//! Files beneath one directory, and never outside of it.
//!
//! The kernel confines the lookup: `openat2` with `RESOLVE_BENEATH` resolves a whole path, links included. It fails if
//! any step would leave the directory, whatever is renamed meanwhile (`man 2 openat2`).

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use rustix::io::ReadWriteFlags;

use crate::files::identity::{Identity, identity, location_of};
use crate::files::links::{LinkWalk, Links};
use crate::files::location::open_directory;

/// A directory and everything beneath it.
///
/// An `O_PATH` descriptor holds it, so it can be opened before privileges are dropped. It stays the same directory if
/// another directory gets its name.
#[derive(Debug)]
pub struct Root {
    pub(crate) directory: OwnedFd,
    pub(crate) path: PathBuf,
    /// The absolute paths by which links lead to it: without links, and as it was opened.
    paths: Vec<PathBuf>,
    /// The lowest descriptor number for files.
    lowest: RawFd,
    pub(crate) links: Links,
    /// The directories above it when it was opened, because seeing them may require privileges.
    pub(crate) above: Vec<Identity>,
    /// Their names and its own, starting at the root of the file system, if all of them are known.
    pub(crate) names: Vec<String>,
    /// The identities of the remembered names.
    pub(crate) remembered: Vec<(String, Identity)>,
    remote: bool,
}

/// File systems that wait for another machine or for a process, by their numbers (`man 2 statfs`): NFS, SMB, CIFS, Ceph,
/// AFS, FUSE.
const REMOTE: [i64; 6] = [0x6969, 0xFE53_4D42, 0xFF53_4D42, 0x00C3_6400, 0x5346_414F, 0x6573_5546];

impl Root {
    /// Opens the directory at `path` and checks that the kernel can confine path resolution to it. A process of root
    /// follows only links of root and of the directory's owner.
    pub fn open(path: &Path) -> Result<Root, RootError> {
        let wrong = |what, error| RootError { path: path.to_owned(), what, error };
        let directory = open_directory(path).map_err(|error| wrong("open", error))?;
        let (above, names) = location_of(&directory, path);
        let remote = rustix::fs::fstatfs(&directory).is_ok_and(|system| REMOTE.contains(&system.f_type));
        let paths = [fs::canonicalize(path), std::path::absolute(path)].into_iter().flatten().collect();
        let root = Root {
            directory,
            path: path.to_owned(),
            paths,
            lowest: 0,
            links: Links::Beneath,
            above,
            names,
            remembered: Vec::new(),
            remote,
        };
        match root.resolve("", OFlags::PATH) {
            Ok(_) => Ok(root),
            Err(errno) => Err(wrong("resolve paths beneath", errno.into())),
        }
    }

    /// The path by which it was opened, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path by which it was opened still leads to it.
    ///
    /// # Errors
    /// The error of `stat(2)`: nothing may have the name.
    pub fn has_its_name(&self) -> io::Result<bool> {
        let named = Identity::of(&rustix::fs::stat(&self.path)?);
        Ok(named == identity(&self.directory)?)
    }

    /// Whether it is on a file system that waits for another machine or for a process.
    pub fn is_remote(&self) -> bool {
        self.remote
    }

    /// Gives files descriptors from `lowest` on, if the limit allows it: lower numbers are reserved for users that need
    /// them, such as `select(2)`.
    pub fn keep_files_above(&mut self, lowest: RawFd) {
        self.lowest = lowest;
    }

    /// Sets which links are followed. The default is all that stay beneath the root.
    pub fn follow(&mut self, links: Links) {
        self.links = links;
    }

    /// The facts of `relative`, without an open, which would affect devices and FIFOs. The empty path is the root.
    pub fn look(&self, relative: &str) -> Result<FileStat, FileError> {
        let found = self.resolve(relative, OFlags::PATH)?;
        Ok(FileStat::of(&rustix::fs::fstat(found)?))
    }

    /// Opens `relative` for reading, without waiting. Check the returned facts: an earlier [`Root::look`] may have seen
    /// another file.
    pub fn open_file(&self, relative: &str) -> Result<(File, FileStat), FileError> {
        let found = self.resolve(relative, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let facts = FileStat::of(&rustix::fs::fstat(&found)?);
        if self.lowest <= found.as_raw_fd() {
            return Ok((File::from(found), facts));
        }
        let moved = rustix::io::fcntl_dupfd_cloexec(&found, self.lowest);
        Ok((File::from(moved.unwrap_or(found)), facts))
    }

    /// A walk name by name, for links that the kernel does not follow.
    pub(crate) fn walk(&self) -> LinkWalk<'_> {
        LinkWalk::new(&self.directory, &self.paths, self.links)
    }

    pub(crate) fn resolve(&self, relative: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        // The kernel fails with EAGAIN if something was renamed while it resolved a `..` in a link.
        const TRIES: usize = 8;
        let path = if relative.is_empty() { "." } else { relative };
        let mut confined = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        if self.links != Links::Beneath {
            confined |= ResolveFlags::NO_SYMLINKS;
        }
        let mut tried = 1;
        loop {
            let flags = flags | OFlags::CLOEXEC;
            match rustix::fs::openat2(&self.directory, path, flags, Mode::empty(), confined) {
                Err(Errno::AGAIN | Errno::INTR) if tried < TRIES => tried += 1,
                Err(Errno::LOOP) if self.links == Links::SameOwner => return self.walk().open(path, flags),
                // The kernel confines absolute links by refusing them (EXDEV).
                Err(Errno::XDEV) if self.links == Links::Beneath => return self.walk().open(path, flags),
                result => return result,
            }
        }
    }
}

/// The facts of a file, as `fstat(2)` returns them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// The kind of file.
    pub kind: FileKind,
    /// Bytes of content.
    pub size: u64,
    /// The last change of its content; every user with write access can set it.
    pub modified: Timestamp,
    /// The last change of its content or its attributes; it cannot be set.
    pub changed: Timestamp,
    /// The device it is on.
    pub device: u64,
    /// Its number on that device.
    pub inode: u64,
}

impl FileStat {
    /// The identity of the file, which is the same under all of its names.
    pub fn identity(&self) -> Identity {
        Identity { device: self.device, inode: self.inode }
    }

    pub(crate) fn of(stat: &Stat) -> FileStat {
        FileStat {
            kind: match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => FileKind::File,
                FileType::Directory => FileKind::Directory,
                _ => FileKind::Special,
            },
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: Timestamp { seconds: stat.st_mtime, nanoseconds: stat.st_mtime_nsec as u32 },
            changed: Timestamp { seconds: stat.st_ctime, nanoseconds: stat.st_ctime_nsec as u32 },
            device: stat.st_dev,
            inode: stat.st_ino,
        }
    }
}

/// The kinds of files that a server distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A device, a FIFO or a socket.
    Special,
}

/// A time as the file system stores it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Seconds since 1970 (UTC); negative before.
    pub seconds: i64,
    /// Nanoseconds after the second.
    pub nanoseconds: u32,
}

/// The current facts of an open file.
pub fn facts(file: &File) -> Result<FileStat, FileError> {
    Ok(FileStat::of(&rustix::fs::fstat(file)?))
}

/// Reads a whole file of exactly `size` bytes. `None` if it is shorter or longer by now.
pub fn read_whole(file: &File, size: usize) -> io::Result<Option<Vec<u8>>> {
    // The extra byte detects a file that has grown, without another call.
    let mut bytes = vec![0; size + 1];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(size);
    Ok((filled == size).then_some(bytes))
}

/// Reads cached bytes of a file at `offset`, without waiting for a disk (`man 2 preadv2`, RWF_NOWAIT). Returns `None`
/// if the page cache has none there, or if the file system cannot tell.
pub fn read_cached(file: &File, into: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
    let mut slices = [io::IoSliceMut::new(into)];
    match rustix::io::preadv2(file, &mut slices, offset, ReadWriteFlags::NOWAIT) {
        Ok(count) => Ok(Some(count)),
        Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::INTR) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether the page cache has the byte at `offset` of a file, or the file has no such byte. `None` if the file system
/// cannot tell without waiting for a disk.
pub fn is_cached(file: &File, offset: u64) -> Option<bool> {
    let mut byte = [0];
    match rustix::io::preadv2(file, &mut [io::IoSliceMut::new(&mut byte)], offset, ReadWriteFlags::NOWAIT) {
        Ok(_) => Some(true),
        Err(Errno::AGAIN) => Some(false),
        Err(_) => None,
    }
}

/// The reason why a path beneath a root could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileError {
    /// The name does not exist.
    Absent,
    /// A link leads out of the root or in a circle, or is not followed. The name counts as absent.
    Link,
    /// The file exists, but this process may not read it, or it cannot be opened for reading.
    Forbidden,
    /// The process or the system has no descriptors or memory left, or a lease holds the file.
    Exhausted(i32),
    /// Another failure of the system, by its error number (`man 3 errno`).
    System(i32),
}

impl From<Errno> for FileError {
    fn from(errno: Errno) -> FileError {
        match errno {
            // EINVAL: an impossible name.
            Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::INVAL => FileError::Absent,
            // EXDEV: a link, or `..`, leads out of the root.
            Errno::LOOP | Errno::XDEV => FileError::Link,
            Errno::ACCESS | Errno::PERM | Errno::NXIO | Errno::NODEV => FileError::Forbidden,
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => {
                FileError::Exhausted(errno.raw_os_error())
            }
            other => FileError::System(other.raw_os_error()),
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Absent => f.write_str("no such file beneath the root"),
            FileError::Link => f.write_str("a link leaves the root, or is not followed"),
            FileError::Forbidden => f.write_str("no permission to read the file"),
            FileError::Exhausted(number) | FileError::System(number) => {
                io::Error::from_raw_os_error(*number).fmt(f)
            }
        }
    }
}

/// The reason why a directory cannot be a [`Root`].
#[derive(Debug)]
pub struct RootError {
    path: PathBuf,
    what: &'static str,
    pub(crate) error: io::Error,
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

impl fmt::Display for RootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RootError { path, what, error } = self;
        write!(f, "cannot {what} the root folder {}: {error}", path.display())?;
        let Some(errno) = Errno::from_io_error(error) else { return Ok(()) };
        match errno {
            Errno::NOENT => f.write_str("; create it, or name another folder"),
            Errno::NOTDIR => {
                f.write_str("; name the folder of the site (a configuration file follows --config)")
            }
            Errno::ACCESS => {
                f.write_str("; grant search permission on it and its parents to the user of the server")
            }
            Errno::NOSYS | Errno::PERM => {
                f.write_str("; the system call openat2 is required: Linux 5.6, and a sandbox that allows it")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::test_folder::TestFolder;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_is_opened_with_its_facts() {
        let folder = TestFolder::new("file-facts");
        fs::write(folder.at("root/page"), b"12345").expect("the directory is ours");
        let (file, facts) = folder.root().open_file("page").expect("the file is there");
        assert_eq!((facts.kind, facts.size), (FileKind::File, 5));
        assert_eq!(facts, folder.root().look("page").expect("the file is there"));
        assert_eq!(read_whole(&file, 5).expect("it can be read").as_deref(), Some(&b"12345"[..]));
        assert_eq!(folder.root().look("").map(|facts| facts.kind), Ok(FileKind::Directory));
    }

    #[test]
    fn files_leave_the_lower_descriptors_to_others() {
        let folder = TestFolder::new("file-above");
        fs::write(folder.at("root/a"), "content").expect("our own folder");
        let mut root = folder.root();
        root.keep_files_above(100);
        let (file, _) = root.open_file("a").expect("it is there");
        assert!(file.as_raw_fd() >= 100);
        assert_eq!(read_whole(&file, 7).expect("it can be read"), Some(b"content".to_vec()));
        root.keep_files_above(i32::MAX);
        assert!(root.open_file("a").is_ok(), "a number that is not to be had is done without");
    }

    #[test]
    fn a_file_of_another_size_is_not_read_as_whole() {
        let folder = TestFolder::new("file-size");
        fs::write(folder.at("root/page"), b"12345").expect("the directory is ours");
        let (file, _) = folder.root().open_file("page").expect("the file is there");
        assert_eq!(read_whole(&file, 4).expect("it can be read"), None);
        assert_eq!(read_whole(&file, 6).expect("it can be read"), None);
    }

    #[test]
    fn h44_a_link_that_leaves_the_root_names_nothing() {
        let folder = TestFolder::new("file-links");
        fs::write(folder.at("secret"), b"secret").expect("the directory is ours");
        fs::write(folder.at("root/page"), b"page").expect("the directory is ours");
        for (link, target) in [
            ("up", "../secret".into()),
            ("absolute", folder.at("secret")),
            ("back", "../root/page".into()),
            ("magic", "/proc/self/cwd".into()),
            ("loop", "loop".into()),
        ] {
            symlink(target, folder.at("root").join(link)).expect("the directory is ours");
            assert_eq!(folder.root().look(link), Err(FileError::Link), "{link}");
        }
        for (outside, error) in [
            ("../secret", FileError::Link),
            ("..", FileError::Link),
            ("/etc/passwd", FileError::Absent),
            ("a/../../secret", FileError::Absent),
        ] {
            assert_eq!(folder.root().look(outside), Err(error), "{outside}");
        }
        symlink("page", folder.at("root/inside")).expect("the directory is ours");
        assert_eq!(folder.root().look("inside").map(|facts| facts.size), Ok(4));
    }

    #[test]
    fn a_root_loses_its_name_to_another_folder() {
        let folder = TestFolder::new("file-name");
        let root = folder.root();
        assert!(root.has_its_name().expect("it is there"));
        fs::rename(folder.at("root"), folder.at("old")).expect("the directory is ours");
        assert_eq!(root.has_its_name().map_err(|error| error.kind()), Err(io::ErrorKind::NotFound));
        symlink("old", folder.at("root")).expect("the directory is ours");
        assert!(root.has_its_name().expect("a link leads to it"));
        fs::remove_file(folder.at("root")).expect("the directory is ours");
        fs::create_dir(folder.at("root")).expect("the directory is ours");
        assert!(!root.has_its_name().expect("another folder is there"));
    }

    #[test]
    fn errors_of_a_root_name_a_remedy() {
        let folder = TestFolder::new("file-none");
        let absent = Root::open(&folder.at("nowhere")).expect_err("it is not there").to_string();
        assert!(absent.contains("nowhere") && absent.ends_with("name another folder"), "{absent}");
        fs::write(folder.at("plain"), b"").expect("the directory is ours");
        let plain = Root::open(&folder.at("plain")).expect_err("it is a file").to_string();
        assert!(plain.contains("; name the folder of the site"), "{plain}");
    }
}
