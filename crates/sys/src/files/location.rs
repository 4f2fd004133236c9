//! Names in directories, resolved without the links of other users.
//!
//! If a process of root opens a path, it follows every link in the path, also a link in another user's folder. Such a link
//! can make root create, append to or chown any file (CVE-2016-1247). So this module walks a path name by name, with a
//! descriptor for each directory. It follows a link only if root or the user of this process owns the link. On the way to a
//! folder of files for everybody, it also follows links of the owner of the folder. It follows a link with several names
//! only in a folder where no other user can create names: a system can allow other users to hard-link a link of root.

use std::ffi::{CString, OsStr};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, PROC_SUPER_MAGIC, RenameFlags, Stat, fstat, fstatfs, openat,
    readlinkat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::files::identity::Identity;
use crate::files::links::MOST_LINKS;

/// A name in a directory that is held open. The name may be absent.
#[derive(Debug)]
pub struct Location {
    directory: OwnedFd,
    name: CString,
    /// The number of links followed so far.
    links: usize,
    /// Whether the name is a procfs link to an open file: only the kernel can follow it.
    is_magic: bool,
}

impl Location {
    /// Finds the directory that contains the last name of `path`. The last name is not followed.
    pub fn find(path: &Path) -> io::Result<Location> {
        walk(path.as_os_str().as_bytes(), None, 0, LastName::Kept, &mut expect_trusted)
    }

    /// Follows the name while it is a link.
    pub fn follow(self) -> io::Result<Location> {
        walk(self.name.as_bytes(), Some(self.directory), self.links, LastName::Followed, &mut expect_trusted)
    }

    /// The directory, and the name in it.
    pub(super) fn into_parts(self) -> (OwnedFd, CString) {
        (self.directory, self.name)
    }

    /// Opens the file for appending. It follows no link and does not wait for the reader of a pipe. `create` is the
    /// mode of a new file, if the name is absent.
    ///
    /// # Errors
    /// The error of `openat(2)`: `FilesystemLoop` for a link.
    pub fn append(&self, create: Option<u32>) -> io::Result<File> {
        let mut flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        flags.set(OFlags::NOFOLLOW, !self.is_magic);
        flags.set(OFlags::CREATE, create.is_some());
        let mode = Mode::from_raw_mode(create.unwrap_or(0));
        Ok(File::from(openat(&self.directory, &self.name, flags, mode)?))
    }

    /// Reads the regular file with this name, of at most `most` bytes. It follows no link and does not wait for the
    /// writer of a pipe.
    ///
    /// # Errors
    /// The error of `openat(2)` or `read(2)`, `FileTooLarge`, or it is not a regular file. If other users can create names
    /// in the directory, the file must have one name and those users must be able to read it: they can have linked or moved
    /// it there.
    pub fn read(&self, most: u64) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(openat(&self.directory, &self.name, flags, Mode::empty())?);
        let facts = file.metadata()?;
        if !facts.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let around = fstat(&self.directory)?;
        if !is_closed(&around, &facts) {
            self.expect_only_name_of(&file)?;
            if !is_readable_by_movers(&around, &facts) {
                return Err(maybe_moved(
                    &facts,
                    "put it into a folder that only root or the file's owner can write",
                ));
            }
        }
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
    }

    /// Checks that `file`, which was opened by this name, has no other name. The second name may be a hard link to any file
    /// of root, if the system allows other users to make it.
    ///
    /// One `fstatat(2)` returns the file of the name and the number of its names. `fstat(2)` would miss a name that was
    /// removed after the open. A procfs link is not a name of the file, and other users cannot make it.
    ///
    /// # Errors
    /// `PermissionDenied` if it has another name, or the error of `fstatat(2)`.
    pub fn expect_only_name_of(&self, file: &File) -> io::Result<()> {
        let opened = fstat(file)?;
        let named = match self.is_magic {
            true => opened,
            false => statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)?,
        };
        if named.st_nlink <= 1 && Identity::of(&named) == Identity::of(&opened) {
            return Ok(());
        }
        let why = "it has several names, so it may be another's file; name a file with one name";
        Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
    }

    /// Checks that user `heir` may become the owner of a file: another user may have moved a secret file here. An empty file,
    /// or a file of `heir`, contains no secret for that user.
    ///
    /// # Errors
    /// `PermissionDenied` if others than root and its owner can create names in its directory, or the error of `fstat(2)`.
    pub fn expect_not_moved(&self, file: &File, heir: u32) -> io::Result<()> {
        let facts = file.metadata()?;
        if facts.uid() == heir || facts.len() == 0 || is_closed(&fstat(&self.directory)?, &facts) {
            return Ok(());
        }
        Err(maybe_moved(&facts, &format!("give it to user {heir}, or name another file")))
    }

    /// Renames the file within its directory without replacing another.
    ///
    /// # Errors
    /// The error of `renameat2(2)`: `AlreadyExists` if the name is taken.
    pub fn rename(&self, to: &OsStr) -> io::Result<()> {
        rename_within(self.directory.as_fd(), OsStr::from_bytes(self.name.as_bytes()), to)
    }

    /// The identity of the socket with this name; `None` if it is absent or no socket.
    pub fn socket(&self) -> io::Result<Option<Identity>> {
        match statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Socket => {
                Ok(Some(Identity::of(&stat)))
            }
            Ok(_) | Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the name.
    pub fn remove(&self) -> io::Result<()> {
        Ok(unlinkat(&self.directory, &self.name, AtFlags::empty())?)
    }
}

/// Whether only root, this process and the owner of a file can create names in the directory around it.
fn is_closed(around: &Stat, facts: &Metadata) -> bool {
    [0, geteuid().as_raw(), facts.uid()].contains(&around.st_uid) && around.st_mode & WRITABLE_BY_OTHERS == 0
}

/// Whether the users who can create names in the directory around a file may read the file, wherever it was before. If the
/// owner of the directory is not root, a group that can write counts as the group of one user. The mode says nothing about
/// other groups: it shows the mask of an access list in place of the group's bits (`man 5 acl`).
fn is_readable_by_movers(around: &Stat, facts: &Metadata) -> bool {
    let is_of_one_user = facts.uid() == around.st_uid && facts.uid() != 0 && around.st_mode & 0o002 == 0;
    is_of_one_user || facts.mode() & 0o004 != 0
}

fn maybe_moved(facts: &Metadata, remedy: &str) -> io::Error {
    let owner = facts.uid();
    let why = format!(
        "it belongs to user {owner}, and others can move files to its folder, even such as they may not read; {remedy}"
    );
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// Reads a regular file of text, of at most `most` bytes, through no link of another user. It waits for no pipe.
///
/// # Errors
/// Those of [`Location::find`] and [`Location::read`], and `InvalidData` if it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let bytes = Location::find(path)?.follow()?.read(most)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

/// Renames a file within a directory without replacing another.
pub(super) fn rename_within(within: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> io::Result<()> {
    match renameat_with(within, from, within, to, RenameFlags::NOREPLACE) {
        // This file system, such as NFS, does not support RENAME_NOREPLACE.
        Err(Errno::INVAL) => match statat(within, to, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(rustix::fs::renameat(within, from, within, to)?),
            Ok(_) => Err(Errno::EXIST.into()),
            Err(error) => Err(error.into()),
        },
        result => Ok(result?),
    }
}

/// Opens the directory at `path`. A process of root follows links only if they belong to root or to the owner of the
/// directory: with the rights of root, a link of another user would lead through closed folders.
pub(super) fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    let mut foreign = Vec::new();
    let mut note = |directory: &OwnedFd, link: &Stat, name: &CString| {
        foreign.extend(expect_own(link, name).err().map(|why| (link.st_uid, why)));
        if geteuid().is_root() { expect_not_planted(directory, link, name) } else { Ok(()) }
    };
    let Location { directory, name, .. } =
        walk(path.as_os_str().as_bytes(), None, 0, LastName::Entered, &mut note)?;
    let directory = openat(directory, &name, PASSING | OFlags::DIRECTORY, Mode::empty())?;
    let owner = fstat(&directory)?.st_uid;
    match foreign.into_iter().find(|(user, _)| *user != owner) {
        Some((_, why)) if geteuid().is_root() => Err(why),
        _ => Ok(directory),
    }
}

/// The treatment of the last name of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastName {
    /// It stays a name, even of a link.
    Kept,
    /// It stays a name; links are followed.
    Followed,
    /// It is entered like the others; the name of the result is `.`.
    Entered,
}

/// Walks `path`, from `start` if given. `trusts` decides about links.
fn walk(
    path: &[u8],
    start: Option<OwnedFd>,
    mut links: usize,
    last: LastName,
    trusts: &mut dyn FnMut(&OwnedFd, &Stat, &CString) -> io::Result<()>,
) -> io::Result<Location> {
    let mut left = Vec::new();
    let mut directory = match start {
        Some(start) if !path.starts_with(b"/") => start,
        _ => beginning(path)?,
    };
    plan(path, &mut left)?;
    while let Some(name) = left.pop() {
        let is_last = left.is_empty() && last != LastName::Entered;
        if is_last && last == LastName::Kept {
            return Ok(Location { directory, name, links, is_magic: false });
        }
        let found = match pass(&directory, &name) {
            Err(Errno::NOENT) if is_last => return Ok(Location { directory, name, links, is_magic: false }),
            found => found?,
        };
        let stat = fstat(&found)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => {
                trusts(&directory, &stat, &name)?;
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::LOOP.into());
                }
                let may_be_magic = left.is_empty() || last == LastName::Entered;
                let is_magic = may_be_magic && fstatfs(&found)?.f_type == PROC_SUPER_MAGIC;
                if is_magic && is_last {
                    return Ok(Location { directory, name, links, is_magic });
                }
                if is_magic {
                    let followed = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                    directory = openat(&directory, &name, followed, Mode::empty())?;
                    continue;
                }
                let target = readlinkat(&found, "", Vec::new())?;
                if target.as_bytes().starts_with(b"/") {
                    directory = beginning(target.as_bytes())?;
                }
                plan(target.as_bytes(), &mut left)?;
            }
            _ if is_last => return Ok(Location { directory, name, links, is_magic: false }),
            _ => directory = found,
        }
    }
    match last {
        LastName::Entered => Ok(Location { directory, name: c".".to_owned(), links, is_magic: false }),
        _ => Err(Errno::ISDIR.into()),
    }
}

/// Opens one name without following it. Only the name of a directory is mounted when it is opened (`man 8 automount`).
fn pass(directory: &OwnedFd, name: &CString) -> Result<OwnedFd, Errno> {
    match openat(directory, name, PASSING | OFlags::DIRECTORY, Mode::empty()) {
        Err(Errno::NOTDIR) => openat(directory, name, PASSING, Mode::empty()),
        found => found,
    }
}

/// Opens directories of a path without following links.
const PASSING: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn beginning(path: &[u8]) -> io::Result<OwnedFd> {
    let at = if path.starts_with(b"/") { "/" } else { "." };
    Ok(openat(CWD, at, PASSING | OFlags::DIRECTORY, Mode::empty())?)
}

/// Inserts the names of `path` before the remaining ones; the next one is the last element.
fn plan(path: &[u8], left: &mut Vec<CString>) -> io::Result<()> {
    for name in path.split(|byte| *byte == b'/').rev() {
        if !matches!(name, b"" | b".") {
            left.push(CString::new(name)?);
        }
    }
    Ok(())
}

fn expect_trusted(directory: &OwnedFd, link: &Stat, name: &CString) -> io::Result<()> {
    expect_own(link, name)?;
    expect_not_planted(directory, link, name)
}

/// Checks that a link belongs to root or to the user of this process.
fn expect_own(link: &Stat, name: &CString) -> io::Result<()> {
    let owner = link.st_uid;
    if owner == 0 || owner == geteuid().as_raw() {
        return Ok(());
    }
    let name = name.to_string_lossy();
    let why = format!("{name} is a link of user {owner}, who may lead it anywhere; name the path without it");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// Checks that a link has one name, if other users can create names in its directory. One `fstatat(2)` returns the link and
/// the number of its names: see [`Location::expect_only_name_of`].
fn expect_not_planted(directory: &OwnedFd, link: &Stat, name: &CString) -> io::Result<()> {
    let around = fstat(directory)?;
    let is_own = [0, geteuid().as_raw(), link.st_uid].contains(&around.st_uid);
    if is_own && around.st_mode & WRITABLE_BY_OTHERS == 0 {
        return Ok(());
    }
    let named = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if named.st_nlink <= 1 && Identity::of(&named) == Identity::of(link) {
        return Ok(());
    }
    let name = name.to_string_lossy();
    let why = format!(
        "{name} is one of several names of a link, in a folder where others can create names; name the path without it"
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// The mode bits of a folder in which others can create names.
const WRITABLE_BY_OTHERS: u32 = 0o022;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;
    use crate::files::test_folder::TestFolder;

    #[test]
    fn h75_a_second_name_is_not_followed_or_read_where_others_can_write() {
        let folder = TestFolder::new("planted-name");
        let [own, secrets, link, open] = ["", "secrets", "link", "open"].map(|name| folder.at(name));
        for (path, mode) in [(&own, 0o755), (&secrets, 0o755), (&open, 0o777)] {
            fs::create_dir_all(path).expect("our own folder");
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("our own folder");
        }
        fs::write(secrets.join("log"), "kept").expect("our own folder");
        symlink(&secrets, &link).expect("our own folder");
        Location::find(&link.join("log")).expect("it has one name");
        rustix::fs::linkat(CWD, &link, CWD, open.join("link"), AtFlags::empty()).expect("our own link");
        Location::find(&link.join("log")).expect("nobody else creates names in its folder");
        let why = Location::find(&open.join("link").join("log")).expect_err("it may be planted");
        assert_eq!(why.kind(), io::ErrorKind::PermissionDenied);
        if geteuid().is_root() {
            open_directory(&open.join("link")).expect_err("it may be planted");
        }
        fs::hard_link(secrets.join("log"), open.join("log")).expect("our own folder");
        let read = |path: std::path::PathBuf| Location::find(&path).and_then(|location| location.read(10));
        assert_eq!(read(secrets.join("log")).expect("nobody else can write here"), b"kept");
        read(open.join("log")).expect_err("it may be planted");
        fs::remove_file(&link).expect("our own folder");
        Location::find(&open.join("link").join("log")).expect("its only name");
    }

    #[test]
    fn h75_a_moved_file_is_not_read_or_given_away() {
        const OTHER: u32 = 12_345;
        let folder = TestFolder::new("moved");
        fs::create_dir(folder.at("site")).expect("our own folder");
        let moved = folder.at("site").join("style.css");
        let place = |bytes: &str, mode: u32| {
            fs::write(&moved, bytes).expect("our own folder");
            fs::set_permissions(&moved, fs::Permissions::from_mode(mode)).expect("our own file");
        };
        place("kept", 0o600);
        // Only root can give a folder away.
        if chown(folder.at("site"), Some(OTHER), None).is_err() {
            return;
        }
        let find = || Location::find(&moved).expect("the folder is there");
        let given = || find().expect_not_moved(&File::open(&moved).expect("it is there"), OTHER);
        let why = find().read(10).expect_err("the owner of the folder may not read it").to_string();
        assert!(why.contains("it belongs to user 0, and others can move files to its folder"), "{why}");
        let why = given().expect_err("it has content").to_string();
        assert!(why.contains("give it to user 12345, or name another file"), "{why}");
        place("", 0o600);
        given().expect("it tells nothing");
        place("kept", 0o604);
        assert_eq!(find().read(10).expect("everybody may read it"), b"kept");
        chown(&moved, Some(OTHER), None).expect("it could be done before");
        place("kept", 0o600);
        assert_eq!(find().read(10).expect("it belongs to the owner of the folder"), b"kept");
        given().expect("it belongs to that user");
        // The owner and the mode of the folder, and the owner of the file, which has mode 640; the group of both is 0.
        for (folder_owner, folder_mode, owner, is_read) in [
            (0, 0o755, OTHER, true),
            (0, 0o775, OTHER, false),
            (0, 0o775, 0, false),
            (0, 0o1777, 0, false),
            (OTHER, 0o755, 0, false),
            (OTHER, 0o775, 0, false),
            (OTHER, 0o775, OTHER, true),
            (OTHER, 0o777, OTHER, false),
        ] {
            place("kept", 0o640);
            chown(&moved, Some(owner), Some(0)).expect("it could be done before");
            chown(folder.at("site"), Some(folder_owner), Some(0)).expect("it could be done before");
            let mode = fs::Permissions::from_mode(folder_mode);
            fs::set_permissions(folder.at("site"), mode).expect("root may set it");
            let read = find().read(10);
            assert_eq!(read.is_ok(), is_read, "{folder_owner} {folder_mode:o}, {owner}: {read:?}");
        }
    }

    #[test]
    fn a_second_name_is_found_although_it_was_removed_after_the_open() {
        let folder = TestFolder::new("only-name");
        let [log, victim] = ["log", "victim"].map(|name| folder.at(name));
        let location = Location::find(&log).expect("the folder is there");
        let own = location.append(Some(0o600)).expect("created");
        location.expect_only_name_of(&own).expect("its only name");
        fs::remove_file(&log).expect("our own folder");
        fs::write(&victim, "kept").expect("our own folder");
        fs::hard_link(&victim, &log).expect("our own folder");
        let opened = location.append(None).expect("it can be written");
        location.expect_only_name_of(&opened).expect_err("it has two names");
        fs::remove_file(&log).expect("our own folder");
        location.expect_only_name_of(&opened).expect_err("the victim's name is left");
        location.append(Some(0o600)).expect("created");
        location.expect_only_name_of(&opened).expect_err("the name is that of another file");
    }
}
