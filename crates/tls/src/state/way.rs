//! The path to a folder, which only root and this user may control.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::io::Errno;

/// The most links in a path (`man 7 path_resolution`).
const MAX_LINKS: usize = 40;

/// Resolves the links of an absolute path, whose last names may not exist yet. Fails if a user other than
/// root and the user of this process can change the path.
pub(super) fn trusted_way(path: &Path) -> io::Result<PathBuf> {
    let names = |path: &Path| path.components().rev().map(|name| name.as_os_str().to_owned()).collect();
    let (mut way, mut links, mut left): (_, _, Vec<OsString>) = (PathBuf::new(), 0, names(path));
    while let Some(name) = left.pop() {
        if name == ".." {
            way.pop();
            continue;
        }
        let next = way.join(&name);
        let facts = match next.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(next.join(left.iter().rev().collect::<PathBuf>()));
            }
            facts => facts?,
        };
        let is_link = facts.is_symlink();
        if is_link && is_trusted(&facts) && !is_planted(&way, &facts)? {
            links += 1;
            if links > MAX_LINKS {
                return Err(Errno::LOOP.into());
            }
            left.extend::<Vec<_>>(names(&fs::read_link(&next)?));
        } else if is_link || is_open_to_others(&facts) {
            return Err(io::Error::other(format!(
                "another user can change {} and redirect it; use a path whose folders belong to root or to this user",
                next.display()
            )));
        } else {
            way = next;
        }
    }
    Ok(way)
}

/// Whether root or the user of this process owns a file.
fn is_trusted(facts: &Metadata) -> bool {
    [0, rustix::process::geteuid().as_raw()].contains(&facts.uid())
}

/// Whether a link may be a second name of another link. In a sticky folder, other users can create one,
/// unless the system forbids it (`fs.protected_hardlinks`).
fn is_planted(folder: &Path, link: &Metadata) -> io::Result<bool> {
    let others = Mode::WGRP | Mode::WOTH;
    Ok(link.nlink() > 1 && Mode::from_raw_mode(folder.symlink_metadata()?.mode()).intersects(others))
}

/// Whether another user can rename the entries of a folder. In a sticky folder, users can rename only their
/// own entries.
fn is_open_to_others(folder: &Metadata) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    // A group is often private to its user.
    let others = if is_root && folder.gid() != 0 { Mode::WGRP | Mode::WOTH } else { Mode::WOTH };
    let mode = Mode::from_raw_mode(folder.mode());
    !is_trusted(folder) || (mode.intersects(others) && !mode.contains(Mode::SVTX))
}
