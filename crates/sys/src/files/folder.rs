//! A folder that a descriptor holds, also if its name changes, and the files in it. No call follows a link to a file, or
//! a link of another user to the folder.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::fs::{Access, AtFlags, Gid, Mode, OFlags, Uid, accessat, chownat, openat, unlinkat};

use crate::files::location::Location;

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

/// Changes the owner of a file that [`OpenFolder::look`] opened.
pub fn give(file: &File, user: u32, group: u32) -> io::Result<()> {
    Ok(chownat(file, "", Some(Uid::from_raw(user)), Some(Gid::from_raw(group)), AtFlags::EMPTY_PATH)?)
}
