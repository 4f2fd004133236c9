//! The identity of a file or directory, and of the directories above one.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Stat};
use rustix::io::Errno;

/// The most directories above a root that are examined: a path of `PATH_MAX` bytes has fewer.
const MOST_ABOVE: usize = 2048;

/// The device and inode of a file or directory, which are the same under all of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl Identity {
    pub(super) fn of(stat: &Stat) -> Identity {
        Identity { device: stat.st_dev, inode: stat.st_ino }
    }
}

/// The directories above the `directory` at `path`, as [`directories_above`] returns them, and the names that lead to
/// it from the root of the file system. The names are empty if they cannot be found.
pub(super) fn location_of(directory: &OwnedFd, path: &Path) -> (Vec<Identity>, Vec<String>) {
    let (above, complete) = directories_above(directory);
    let path = fs::canonicalize(path).unwrap_or_default();
    let names: Vec<_> = path.iter().skip(1).map(OsStr::to_string_lossy).map(String::from).collect();
    let belong = complete && names.len() == above.len();
    (above, if belong { names } else { Vec::new() })
}

/// The directories above this one, nearest first, and whether all of them were visible.
pub(super) fn directories_above(directory: &OwnedFd) -> (Vec<Identity>, bool) {
    let (mut found, mut path) = (Vec::new(), String::from(".."));
    let Ok(mut below) = identity(directory) else { return (found, false) };
    while found.len() < MOST_ABOVE {
        match rustix::fs::statat(directory, &path, AtFlags::empty()).as_ref().map(Identity::of) {
            // Only the root of the file system is its own parent.
            Ok(above) if above == below => return (found, true),
            Ok(above) => {
                found.push(above);
                below = above;
            }
            Err(_) => return (found, false),
        }
        path.push_str("/..");
    }
    (found, false)
}

pub(super) fn identity(of: &OwnedFd) -> Result<Identity, Errno> {
    rustix::fs::fstat(of).as_ref().map(Identity::of).map_err(|errno| *errno)
}
