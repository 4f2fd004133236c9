//! The identity of a file or directory, and of the directories above one.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Stat};
use rustix::io::Errno;

/// The most directories above a root that are looked at: a path of `PATH_MAX` bytes has fewer.
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

/// The directories above this one, the nearest first, and whether all of them could be seen.
pub(crate) fn directories_above(directory: &OwnedFd) -> (Vec<Identity>, bool) {
    let (mut found, mut path) = (Vec::new(), String::from(".."));
    let Ok(mut below) = identity(directory) else { return (found, false) };
    while found.len() < MOST_ABOVE {
        match rustix::fs::statat(directory, &path, AtFlags::empty()).as_ref().map(Identity::of) {
            // Only the directory of the whole system is its own parent.
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
