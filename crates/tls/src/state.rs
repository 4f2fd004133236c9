//! The folder of keys and certificates. Only its owner can enter it, and files are replaced atomically.

mod way;

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use self::way::trusted_way;

/// The most bytes of a file.
const MAX_FILE: u64 = 1 << 20;

/// The file that is locked.
const LOCK: &str = "lock";

/// An open folder with mode 0700 that belongs to the user of this process. All operations use its descriptor,
/// and none follows a symbolic link in it.
#[derive(Debug)]
pub struct StateFolder {
    folder: OwnedFd,
    path: PathBuf,
}

/// The lock of a folder, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct FolderLock {
    file: OwnedFd,
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // A child that is just being started may have inherited the descriptor, which would keep the lock.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

/// The users that can read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrecy {
    /// Only the owner: 0600.
    Private,
    /// All users that can enter the folder: 0644.
    Public,
}

impl StateFolder {
    /// Opens a folder, and creates it if necessary. Only root and the user of this process may be able to
    /// change the folders and links of its path, because another user could substitute a folder.
    pub fn open(path: &Path) -> io::Result<StateFolder> {
        let refused = |why: &str| {
            let path = path.display();
            io::Error::other(format!("cannot use state folder {path}: {why}"))
        };
        let failed = |error: io::Error| refused(&error.to_string());
        // The path must not depend on the working directory, which may change.
        let path = &std::path::absolute(path).map_err(failed)?;
        let refuses = || refused("the path has no folder name; add one");
        let (parent, name) = path.parent().zip(path.file_name()).ok_or_else(refuses)?;
        let parent = trusted_way(parent).map_err(failed)?;
        DirBuilder::new().recursive(true).mode(0o755).create(&parent).map_err(failed)?;
        // In a sticky folder, another user may have created a parent meanwhile.
        let path = &trusted_way(&parent).map_err(failed)?.join(name);
        match rustix::fs::mkdir(path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(failed(error.into())),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return Err(refused("it is a symbolic link or not a folder; name the folder itself"));
            }
            Err(error) => return Err(failed(error.into())),
        };
        let status = rustix::fs::fstat(&folder).map_err(|error| failed(error.into()))?;
        if status.st_uid != rustix::process::geteuid().as_raw() {
            return Err(refused("it belongs to another user; change its owner, or name another folder"));
        }
        if Mode::from_raw_mode(status.st_mode).intersects(Mode::RWXG | Mode::RWXO) {
            return Err(refused(
                "other users can enter it, although it has private keys; run `chmod 700` on it",
            ));
        }
        Ok(StateFolder { folder, path: path.to_owned() })
    }

    /// Returns the path of a file in the folder, for messages and other programs.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Reads a file; `None` if it does not exist.
    pub fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        // Without NONBLOCK, opening a pipe would wait.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.folder, checked(name), flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(self.failed("read", name, error.into())),
        };
        if !file.metadata().is_ok_and(|facts| facts.is_file()) {
            return Err(self.failed("read", name, io::Error::other("it is not a regular file")));
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE).read_to_end(&mut bytes).map_err(|error| self.failed("read", name, error))?;
        Ok(Some(bytes))
    }

    /// Replaces a file atomically and durably: after any interruption, the old or the new file exists. The
    /// lock ensures a single writer.
    pub fn write(&self, _: &FolderLock, name: &str, bytes: &[u8], secrecy: Secrecy) -> io::Result<()> {
        let new = format!(".{}.new", checked(name));
        let written = self.write_new(&new, bytes, secrecy);
        let renamed = written.and_then(|()| {
            rustix::fs::renameat(&self.folder, &new, &self.folder, name)?;
            Ok(rustix::fs::fsync(&self.folder)?)
        });
        if renamed.is_err() {
            // The new file may not exist.
            let _ = rustix::fs::unlinkat(&self.folder, &new, AtFlags::empty());
        }
        renamed.map_err(|error| self.failed("write", name, error))
    }

    fn write_new(&self, new: &str, bytes: &[u8], secrecy: Secrecy) -> io::Result<()> {
        // An interrupted process may have left it.
        match rustix::fs::unlinkat(&self.folder, new, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut mode = Mode::RUSR | Mode::WUSR;
        if secrecy == Secrecy::Public {
            mode |= Mode::RGRP | Mode::ROTH;
        }
        let mut file = File::from(rustix::fs::openat(&self.folder, new, flags, mode)?);
        file.write_all(bytes)?;
        file.sync_all()
    }

    /// Removes a file, if it exists.
    pub fn remove(&self, _: &FolderLock, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.folder, checked(name), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(self.failed("remove", name, error.into())),
        }
    }

    /// Returns the names of all files, without the temporary files of interrupted processes.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let list = || -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in Dir::read_from(self.folder.as_fd())? {
                let entry = entry?;
                names.extend(
                    entry.file_name().to_str().ok().filter(|name| !name.starts_with('.')).map(str::to_owned),
                );
            }
            Ok(names)
        };
        list().map_err(|error| self.failed("list", "", error))
    }

    /// Takes the lock; `None` if another process holds it.
    pub fn lock(&self) -> io::Result<Option<FolderLock>> {
        let file = self.open_lock()?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(FolderLock { file })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(self.failed("lock", LOCK, error.into())),
        }
    }

    fn open_lock(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.folder, LOCK, flags, Mode::RUSR | Mode::WUSR);
        opened.map_err(|error| self.failed("open", LOCK, error.into()))
    }

    fn failed(&self, attempted: &str, name: &str, error: io::Error) -> io::Error {
        let path = self.path.join(name);
        io::Error::new(error.kind(), format!("cannot {attempted} {}: {error}", path.display()))
    }
}

/// Checks that `name` cannot lead outside the folder. Names consist of digests and constants.
fn checked(name: &str) -> &str {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    assert!(
        name.chars().all(is_plain) && !name.starts_with('.') && !name.is_empty(),
        "{name:?} is a plain name"
    );
    name
}

#[cfg(test)]
pub(crate) mod scratch {
    use super::*;
    use std::fs;

    /// A temporary folder for a test. Dropping it removes the folder.
    pub(crate) struct ScratchState(pub(crate) PathBuf);

    impl ScratchState {
        pub(crate) fn new(name: &str) -> ScratchState {
            let unique = format!("tenfold-tls-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(unique);
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).expect("a folder of our own");
            ScratchState(path)
        }

        pub(crate) fn folder(&self) -> StateFolder {
            StateFolder::open(&self.0.join("state")).expect("a folder of our own")
        }
    }

    impl Drop for ScratchState {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::scratch::ScratchState;
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_with_its_mode() {
        let scratch = ScratchState::new("replace");
        let folder = scratch.folder();
        let lock = folder.lock().expect("no error").expect("it is free");
        let mode = |name: &str| {
            fs::metadata(folder.path_of(name)).expect("it is there").permissions().mode() & 0o777
        };
        folder.write(&lock, "key.pem", b"one", Secrecy::Private).expect("room");
        folder.write(&lock, "root.pem", b"root", Secrecy::Public).expect("room");
        assert_eq!((mode("key.pem"), mode("root.pem"), mode("")), (0o600, 0o644, 0o700));
        // An interrupted write of an earlier process.
        fs::write(folder.path_of(".key.pem.new"), b"half").expect("our own folder");
        assert_eq!(folder.read("key.pem").expect("no error").as_deref(), Some(&b"one"[..]));
        folder.write(&lock, "key.pem", b"two", Secrecy::Private).expect("room");
        assert_eq!(folder.read("key.pem").expect("no error").as_deref(), Some(&b"two"[..]));
        let mut names = folder.names().expect("no error");
        names.sort();
        assert_eq!(names, ["key.pem", "lock", "root.pem"]);
        folder.remove(&lock, "key.pem").expect("it is there");
        folder.remove(&lock, "key.pem").expect("its absence is no error");
        assert!(folder.read("key.pem").expect("no error").is_none());
    }

    #[test]
    fn a_write_that_fails_leaves_the_old_file() {
        let scratch = ScratchState::new("full");
        let folder = scratch.folder();
        let lock = folder.lock().expect("no error").expect("it is free");
        folder.write(&lock, "key.pem", b"one", Secrecy::Private).expect("room");
        // A folder blocks the new file's name, and has the effect of a full disk.
        fs::create_dir(folder.path_of(".key.pem.new")).expect("our own folder");
        let error =
            folder.write(&lock, "key.pem", b"two", Secrecy::Private).expect_err("in the way").to_string();
        assert!(error.starts_with("cannot write ") && error.contains("key.pem: "), "{error}");
        assert_eq!(folder.read("key.pem").expect("no error").as_deref(), Some(&b"one"[..]));
    }

    #[test]
    fn a_lock_excludes_other_locks() {
        let scratch = ScratchState::new("lock");
        let (first, second) = (scratch.folder(), scratch.folder());
        let lock = first.lock().expect("no error").expect("it is free");
        assert!(second.lock().expect("no error").is_none());
        drop(lock);
        assert!(second.lock().expect("no error").is_some());
    }

    #[test]
    fn links_and_open_folders_are_refused() {
        let scratch = ScratchState::new("links");
        let folder = scratch.folder();
        let target = scratch.0.join("target");
        fs::write(&target, b"secret").expect("our own folder");
        symlink(&target, folder.path_of("key.pem")).expect("our own folder");
        assert!(folder.read("key.pem").is_err());
        let lock = folder.lock().expect("no error").expect("it is free");
        folder.write(&lock, "key.pem", b"new", Secrecy::Private).expect("the link is replaced");
        assert_eq!(fs::read(&target).expect("it is there"), b"secret");
        let refusal = |path: &Path| StateFolder::open(path).expect_err("refused").to_string();
        rustix::fs::mkfifoat(rustix::fs::CWD, folder.path_of("pipe"), Mode::RUSR).expect("our own folder");
        assert!(folder.read("pipe").expect_err("refused").to_string().contains("not a regular file"));
        symlink(scratch.0.join("state"), scratch.0.join("link")).expect("our own folder");
        assert!(refusal(&scratch.0.join("link")).contains("it is a symbolic link"));
        assert!(refusal(&target).contains("not a folder"));
        fs::set_permissions(scratch.0.join("state"), fs::Permissions::from_mode(0o750))
            .expect("our own folder");
        assert!(refusal(&scratch.0.join("state")).contains("other users can enter it"));
    }

    #[test]
    fn h75_a_way_that_others_can_change_is_refused() {
        let scratch = ScratchState::new("way");
        let (open, state) = (scratch.0.join("open"), scratch.0.join("open/of/state"));
        fs::create_dir(&open).expect("our own folder");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("our own folder");
        let refusal = StateFolder::open(&state).expect_err("refused").to_string();
        assert!(refusal.contains("another user can change") && refusal.contains("/open "), "{refusal}");
        assert!(!open.join("of").exists(), "a folder was made on the way");
        symlink(&open, scratch.0.join("way")).expect("our own folder");
        let refused = |path: &str| StateFolder::open(&scratch.0.join(path)).is_err();
        assert!(refused("way/state"), "a link leads through the open folder");
        // A link in the open folder leads to a safe folder, and another link outside leads to that link.
        fs::create_dir(scratch.0.join("safe")).expect("our own folder");
        symlink(scratch.0.join("safe"), open.join("between")).expect("our own folder");
        symlink("open/between", scratch.0.join("first")).expect("our own folder");
        assert!(refused("first/state"));
        symlink("safe", scratch.0.join("straight")).expect("our own folder");
        let state = StateFolder::open(&scratch.0.join("straight/state")).expect("our own link");
        let real = fs::canonicalize(scratch.0.join("safe/state/key.pem").parent().expect("a folder"));
        assert_eq!(
            state.path_of("key.pem"),
            real.expect("it was made").join("key.pem"),
            "links are resolved"
        );
        // In a sticky folder, other users could add a second name to our link.
        let (straight, sticky) = (scratch.0.join("straight"), scratch.0.join("sticky"));
        fs::create_dir(&sticky).expect("our own folder");
        fs::set_permissions(&sticky, fs::Permissions::from_mode(0o1777)).expect("our own folder");
        let cwd = rustix::fs::CWD;
        rustix::fs::linkat(cwd, &straight, cwd, sticky.join("planted"), AtFlags::empty()).expect("our link");
        assert!(refused("sticky/planted/state"));
        fs::remove_file(&straight).expect("our own folder");
        StateFolder::open(&sticky.join("planted/state")).expect("the link has no other name");
        symlink("safe", &straight).expect("our own folder");
        let (one, two) = (scratch.0.join("one"), scratch.0.join("two"));
        symlink(&two, &one).and_then(|()| symlink(&one, &two)).expect("our own folder");
        assert!(refused("one/state"), "a loop of links");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).expect("our own folder");
        StateFolder::open(&open.join("of/state"))
            .expect("in a sticky folder, others cannot rename our entries");
    }
}
