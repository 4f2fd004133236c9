//! Changes in directories, as the kernel reports them (`man 7 inotify`).
//!
//! It reports changes made on this machine through the file system of the directory. It misses changes that another
//! machine makes on a network file system.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use crate::files::file::Root;
use crate::readiness::eventfd::EventFd;

/// The buffer for the events of one read: enough for hundreds of names.
const BUFFER: usize = 16 * 1024;

/// An inotify instance, which watches directories.
#[derive(Debug)]
pub struct Inotify(OwnedFd);

/// A watch of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WatchDescriptor(i32);

/// A change in a watched directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InotifyEvent<'a> {
    /// The file of this name was written, created, removed or renamed, or has other attributes.
    File(WatchDescriptor, &'a [u8]),
    /// So was a directory in it, or the directory itself: paths through it may lead elsewhere now.
    Directory(WatchDescriptor),
    /// The watch has ended.
    Ended(WatchDescriptor),
    /// The event queue overflowed: anything may have changed.
    Overflow,
}

impl Inotify {
    /// Creates an instance without watches.
    ///
    /// # Errors
    /// The error of `inotify_init1(2)`: EMFILE if the user has reached the limit of the system
    /// (`fs.inotify.max_user_instances`).
    pub fn new() -> io::Result<Inotify> {
        Ok(Inotify(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?))
    }

    /// Watches the directory `relative` beneath `root`. Repeated calls return the same watch.
    ///
    /// # Errors
    /// It is no directory, or may not be read; ENOSPC if the user has reached the limit of the system
    /// (`fs.inotify.max_user_watches`).
    pub fn watch(&self, root: &Root, relative: &str) -> io::Result<WatchDescriptor> {
        let directory = root.resolve(relative, OFlags::PATH | OFlags::DIRECTORY)?;
        // The call requires a name; this one leads to the directory that was resolved beneath the root.
        let name = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let what = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::MODIFY
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ATTRIB
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR
            | WatchFlags::EXCL_UNLINK;
        Ok(WatchDescriptor(inotify::add_watch(&self.0, name, what)?))
    }

    /// Ends a watch. Ended watches are ignored.
    pub fn unwatch(&self, watched: WatchDescriptor) {
        let _ = inotify::remove_watch(&self.0, watched.0);
    }

    /// Waits for changes and reports all of them. Returns false when `stop` is signalled.
    pub fn wait(&self, stop: &EventFd, mut tell: impl FnMut(InotifyEvent<'_>)) -> io::Result<bool> {
        let mut both = [PollFd::new(stop, PollFlags::IN), PollFd::new(&self.0, PollFlags::IN)];
        match poll(&mut both, None) {
            Err(Errno::INTR) => return Ok(true),
            result => result?,
        };
        if !both[0].revents().is_empty() {
            return Ok(false);
        }
        let mut buffer = [const { std::mem::MaybeUninit::uninit() }; BUFFER];
        let mut reader = Reader::new(&self.0, &mut buffer);
        loop {
            match reader.next() {
                Ok(event) => {
                    let (watched, flags) = (WatchDescriptor(event.wd()), event.events());
                    let itself = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT;
                    tell(match event.file_name() {
                        _ if flags.contains(ReadFlags::QUEUE_OVERFLOW) => InotifyEvent::Overflow,
                        _ if flags.contains(ReadFlags::IGNORED) => InotifyEvent::Ended(watched),
                        _ if flags.intersects(itself | ReadFlags::ISDIR) => InotifyEvent::Directory(watched),
                        Some(name) => InotifyEvent::File(watched, name.to_bytes()),
                        None => InotifyEvent::Directory(watched),
                    });
                }
                Err(Errno::AGAIN | Errno::INTR) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn changes_are_reported_with_names_and_a_wait_can_be_stopped() {
        let path = std::env::temp_dir().join(format!("tenfold-inotify-{}", std::process::id()));
        fs::create_dir_all(path.join("inner")).expect("a temporary directory can be made");
        let root = Root::open(&path).expect("it was just made");
        let (inotify, stop) =
            (Inotify::new().expect("there are instances"), EventFd::new().expect("there are descriptors"));
        let inner = inotify.watch(&root, "inner").expect("it can be watched");
        assert_eq!(inotify.watch(&root, "inner").expect("it can be watched"), inner);
        assert!(inotify.watch(&root, "none").is_err());
        let heard = || {
            let (mut files, mut others) = (Vec::new(), Vec::new());
            let why = inotify.wait(&stop, |change| match change {
                InotifyEvent::File(watched, name) => files.push((watched, name.to_vec())),
                InotifyEvent::Directory(watched) => others.push(watched),
                other => panic!("{other:?}"),
            });
            assert!(why.expect("it can be waited for"));
            files.dedup();
            (files, others)
        };
        fs::write(path.join("inner/file"), "content").expect("our own folder");
        assert_eq!(heard(), (vec![(inner, b"file".to_vec())], vec![]));
        fs::create_dir(path.join("inner/folder")).expect("our own folder");
        assert_eq!(heard(), (vec![], vec![inner]));
        fs::rename(path.join("inner"), path.join("other")).expect("our own folder");
        assert_eq!(heard(), (vec![], vec![inner]));
        stop.signal();
        assert!(!inotify.wait(&stop, |_| ()).expect("it can be waited for"));
        fs::remove_dir_all(&path).expect("our own folder");
    }
}
