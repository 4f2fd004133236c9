//! Changes on disk, reported by the kernel, so that a changed file is checked at the next request and not
//! only after a second.
//!
//! A thread of each process watches the folders from which files were served, and logs their changes. A
//! worker detects new changes by a single number. A report only makes a worker check earlier. Without one,
//! because there are too many folders, the system refuses a watch, or another machine wrote the file, the
//! worker checks after a second as usual.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use tenfold_sys::eventfd::EventFd;
use tenfold_sys::inotify::{Inotify, InotifyEvent, WatchDescriptor};

use crate::files::roots::Roots;

/// Changes kept for workers that have not seen them; a worker that missed one checks everything.
const MOST_CHANGES: usize = 1024;

/// The pause between two reads of the kernel's events: it batches the events of a program that writes many
/// files.
const PAUSE: Duration = Duration::from_millis(2);

/// Watches folders, beginning with the first call of [`FolderWatch::follow`].
#[derive(Debug)]
pub(crate) struct FolderWatch {
    most_folders: usize,
    changes: Arc<ChangeLog>,
    running: OnceLock<Option<RunningWatch>>,
}

/// The changes received from the kernel.
#[derive(Debug, Default)]
struct ChangeLog {
    /// The number of all changes, readable without a lock.
    count: AtomicU64,
    log: Mutex<VecDeque<ChangeNotice>>,
    folders: Mutex<HashMap<WatchDescriptor, Arc<str>>>,
}

/// A change, as reported to workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChangeNotice {
    /// The file with this decoded path beneath the root may have changed.
    File(Arc<str>),
    /// Any file may have changed, and no folder is watched any longer.
    Everything,
}

#[derive(Debug)]
struct RunningWatch {
    inotify: Arc<Inotify>,
    stop: Arc<EventFd>,
}

impl Drop for RunningWatch {
    fn drop(&mut self) {
        self.stop.signal();
    }
}

/// The number of changes that a worker has seen, and the folders that it follows.
#[derive(Debug, Default)]
pub(crate) struct ChangeListener {
    seen: u64,
    followed: HashSet<String>,
}

impl FolderWatch {
    /// Watches at most `most_folders` folders.
    pub(crate) fn new(most_folders: usize) -> FolderWatch {
        FolderWatch { most_folders, changes: Arc::default(), running: OnceLock::new() }
    }

    /// Whether there are changes that `listener` has not seen.
    #[inline]
    pub(crate) fn has_changes(&self, listener: &ChangeListener) -> bool {
        self.changes.count.load(Ordering::Acquire) != listener.seen
    }

    /// Passes the changes that `listener` has not seen to `report`.
    #[cold]
    pub(crate) fn report(&self, listener: &mut ChangeListener, mut report: impl FnMut(&ChangeNotice)) {
        let log = lock(&self.changes.log);
        let count = self.changes.count.load(Ordering::Acquire);
        let missed = usize::try_from(count - listener.seen).unwrap_or(usize::MAX);
        listener.seen = count;
        if missed > log.len() || log.iter().rev().take(missed).any(|new| *new == ChangeNotice::Everything) {
            listener.followed.clear();
            return report(&ChangeNotice::Everything);
        }
        log.iter().rev().take(missed).for_each(report);
    }

    /// Watches the folder of `relative` and all folders above it, because renaming any of them changes the
    /// file that is found. Changes in a folder that cannot be watched are found after a second.
    pub(crate) fn follow(&self, roots: &Roots, relative: &str, listener: &mut ChangeListener) {
        let folder = relative.rsplit_once('/').map_or("", |(folder, _)| folder);
        if listener.followed.contains(folder) {
            return;
        }
        let Some(running) = self.running.get_or_init(|| start(&self.changes)) else { return };
        let ends = folder.match_indices('/').map(|(at, _)| at).chain([folder.len()]);
        for name in std::iter::once("").chain(ends.map(|end| &folder[..end])) {
            if listener.followed.contains(name) {
                continue;
            }
            let mut folders = lock(&self.changes.folders);
            // A folder that is watched already needs no further watch.
            if folders.len() >= self.most_folders && !folders.values().any(|known| **known == *name) {
                return;
            }
            let Ok(watched) = running.inotify.watch(roots.of(name), name) else { return };
            folders.insert(watched, name.into());
            // Through links, a folder can have any number of names, but it has one watch.
            if listener.followed.len() >= self.most_folders {
                listener.followed.clear();
            }
            listener.followed.insert(name.to_owned());
        }
    }
}

/// Starts the thread; returns None if the system lacks the resources.
fn start(changes: &Arc<ChangeLog>) -> Option<RunningWatch> {
    let inotify = Arc::new(Inotify::new().ok()?);
    let stop = Arc::new(EventFd::new().ok()?);
    let running = RunningWatch { inotify: Arc::clone(&inotify), stop: Arc::clone(&stop) };
    let changes = Arc::clone(changes);
    let listen = move || {
        let mut new = Vec::new();
        while let Ok(true) = inotify.wait(&stop, |event| changes.translate(event, &mut new)) {
            changes.append(&mut new, &inotify);
            thread::sleep(PAUSE);
        }
    };
    thread::Builder::new().name("watch".into()).spawn(listen).ok()?;
    Some(running)
}

impl ChangeLog {
    fn translate(&self, event: InotifyEvent<'_>, new: &mut Vec<ChangeNotice>) {
        let notice = match event {
            InotifyEvent::File(watched, name) => {
                let folders = lock(&self.folders);
                match (folders.get(&watched), std::str::from_utf8(name)) {
                    (Some(folder), Ok(name)) if folder.is_empty() => ChangeNotice::File(name.into()),
                    (Some(folder), Ok(name)) => ChangeNotice::File(format!("{folder}/{name}").into()),
                    // No URL means this name, or its watch has ended.
                    _ => return,
                }
            }
            InotifyEvent::Directory(watched) if !lock(&self.folders).contains_key(&watched) => return,
            InotifyEvent::Directory(_) | InotifyEvent::Overflow => ChangeNotice::Everything,
            InotifyEvent::Ended(watched) => {
                lock(&self.folders).remove(&watched);
                return;
            }
        };
        if new.last() != Some(&notice) {
            new.push(notice);
        }
    }

    /// Appends the changes to the log. If folders have changed, their names may be wrong, so all watches end;
    /// workers request them again.
    fn append(&self, new: &mut Vec<ChangeNotice>, inotify: &Inotify) {
        if new.is_empty() {
            return;
        }
        if new.contains(&ChangeNotice::Everything) {
            lock(&self.folders).drain().for_each(|(watched, _)| inotify.unwatch(watched));
        }
        let mut log = lock(&self.log);
        let count = new.len() as u64;
        log.extend(new.drain(..));
        let past = log.len().saturating_sub(MOST_CHANGES);
        log.drain(..past);
        self.count.fetch_add(count, Ordering::Release);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tenfold_sys::file::Root;

    use super::*;

    #[test]
    fn names_of_one_folder_do_not_fill_the_memory() {
        const MOST: usize = 4;
        let folder = std::env::temp_dir().join(format!("tenfold-watch-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("there is room");
        for name in ["a", "b"] {
            symlink(".", folder.join(name)).expect("our own folder");
        }
        let roots = Roots::new(Root::open(&folder).expect("it was made"), None);
        let (watch, mut listener) = (FolderWatch::new(MOST), ChangeListener::default());
        for number in 0..64_u32 {
            let name = |bit: u32| if number >> bit & 1_u32 == 0 { "a/" } else { "b/" };
            let path: String = (0..6).map(name).chain(["file"]).collect();
            watch.follow(&roots, &path, &mut listener);
            assert!(listener.followed.len() <= MOST, "{} names", listener.followed.len());
        }
        assert!(!listener.followed.is_empty(), "at least one folder is watched");
        std::fs::remove_dir_all(&folder).expect("our own folder");
    }
}
