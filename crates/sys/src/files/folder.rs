//! A folder that a descriptor holds, also if its name changes, and the files in it. No call follows a link to a file, or
//! a link of another user to the folder.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::fs::{Access, AtFlags, Gid, Mode, OFlags, Uid, accessat, chownat, openat, unlinkat};

use crate::files::location::{Location, rename_within};

/// An open folder, usable only for looking up its files.
#[derive(Debug)]
pub struct OpenFolder(File);

impl OpenFolder {
    /// Opens the folder that contains the last name of `path`. Returns it and that name.
    ///
    /// # Errors
    /// See [`Location::find`]: `PermissionDenied` for a link of another user.
    pub fn around(path: &Path) -> io::Result<(OpenFolder, OsString)> {
        let (folder, name) = Location::find(path)?.into_parts();
        Ok((OpenFolder(folder.into()), OsString::from_vec(name.into_bytes())))
    }

    /// Owner, mode and kind of the folder.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.0.metadata()
    }

    /// Opens a file for its metadata only, so devices and pipes are not affected.
    pub fn look(&self, name: &OsStr) -> io::Result<File> {
        Ok(openat(&self.0, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?.into())
    }

    /// Creates an empty file that only its owner can read and write.
    ///
    /// # Errors
    /// The error of `openat(2)`: `AlreadyExists` if the name is taken.
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.0, name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Opens a file for reading. It does not wait for the writer of a pipe.
    ///
    /// # Errors
    /// The error of `openat(2)`: `FilesystemLoop` for a link.
    pub fn read(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.0, name, flags, Mode::empty())?.into())
    }

    /// Renames a file within the folder without replacing another.
    ///
    /// # Errors
    /// The error of `renameat2(2)`: `AlreadyExists` if the name is taken.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        rename_within(self.0.as_fd(), from, to)
    }

    /// Removes a name.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Checks that this process can create files in the folder.
    pub fn allows_new_files(&self) -> io::Result<()> {
        Ok(accessat(&self.0, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty())?)
    }

    /// Checks that this process can read and write a file.
    pub fn allows_writing(&self, name: &OsStr) -> io::Result<()> {
        Ok(accessat(&self.0, name, Access::READ_OK | Access::WRITE_OK, AtFlags::empty())?)
    }
}

/// Whether any process has the file open for writing. The kernel grants a read lease on a file only without writers
/// (F_SETLEASE in `man 2 fcntl`). `file` must be open for reading only.
///
/// # Errors
/// The error of `fcntl(2)`: the file system has no leases, or this process is not the file's owner.
pub fn has_writers(file: &File) -> io::Result<bool> {
    let lease = |kind: libc::c_int| {
        // SAFETY: the command takes a number and touches no memory; the descriptor is a live one.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) }
    };
    if lease(libc::F_RDLCK) == 0 {
        lease(libc::F_UNLCK);
        return Ok(false);
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
        error => Err(error),
    }
}

/// Changes the owner of a file that [`OpenFolder::look`] opened.
pub fn give(file: &File, user: u32, group: u32) -> io::Result<()> {
    Ok(chownat(file, "", Some(Uid::from_raw(user)), Some(Gid::from_raw(group)), AtFlags::EMPTY_PATH)?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn writers_of_a_file_are_noticed_until_they_close_it() {
        let path = std::env::temp_dir().join(format!("tenfold-writers-{}", std::process::id()));
        fs::write(&path, "x").expect("a temporary folder");
        let (reader, writer) =
            (File::open(&path).expect("ours"), File::options().append(true).open(&path).expect("ours"));
        // A file system without leases fails.
        if let Ok(has) = has_writers(&reader) {
            assert!(has, "a writer is there");
            drop(writer);
            assert!(!has_writers(&reader).expect("it was answered before"), "no writer is left");
            // The lease was returned, so no open waits for it.
            File::options().append(true).open(&path).expect("ours");
        }
        fs::remove_file(&path).expect("ours");
    }
}
