//! A folder by a descriptor that stays on it, whatever happens to its name, and the files in it. No link to a file is
//! followed, and no link of another user to the folder.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::fs::{Access, AtFlags, Gid, Mode, OFlags, Uid, accessat, chownat, openat};

use crate::files::location::Location;

/// An open folder, which grants nothing but looking files up in it.
#[derive(Debug)]
pub struct Folder(File);

impl Folder {
    /// Opens the folder that the last name of `path` is in. Returns it and that name.
    ///
    /// # Errors
    /// As [`Location::find`]: `PermissionDenied` for a link of another user.
    pub fn around(path: &Path) -> io::Result<(Folder, OsString)> {
        let (folder, name) = Location::find(path)?.into_parts();
        Ok((Folder(folder.into()), OsString::from_vec(name.into_bytes())))
    }

    /// Owner, mode and kind of the folder.
    ///
    /// # Errors
    /// What `fstat(2)` says.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.0.metadata()
    }

    /// Opens a file only to look at it: nothing happens to a device or a pipe.
    ///
    /// # Errors
    /// What `openat(2)` says.
    pub fn look(&self, name: &OsStr) -> io::Result<File> {
        Ok(openat(&self.0, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?.into())
    }

    /// Makes an empty file that only its owner can read and write.
    ///
    /// # Errors
    /// What `openat(2)` says: `AlreadyExists` if the name is taken.
    pub fn create(&self, name: &OsStr) -> io::Result<()> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.0, name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(())
    }

    /// Checks that this process can make files in the folder.
    ///
    /// # Errors
    /// What `faccessat(2)` says.
    pub fn allows_new_files(&self) -> io::Result<()> {
        Ok(accessat(&self.0, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty())?)
    }

    /// Checks that this process can read and write a file.
    ///
    /// # Errors
    /// What `faccessat(2)` says.
    pub fn allows_writing(&self, name: &OsStr) -> io::Result<()> {
        Ok(accessat(&self.0, name, Access::READ_OK | Access::WRITE_OK, AtFlags::empty())?)
    }
}

/// Gives a file that [`Folder::look`] opened to another user.
///
/// # Errors
/// What `fchownat(2)` says.
pub fn give(file: &File, user: u32, group: u32) -> io::Result<()> {
    Ok(chownat(file, "", Some(Uid::from_raw(user)), Some(Gid::from_raw(group)), AtFlags::EMPTY_PATH)?)
}
