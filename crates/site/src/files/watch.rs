//! Changes on disk, reported by the kernel: a file that was changed is looked at again at the next request,
//! and not only when a second has passed.
//!
//! A thread of each process hears of changes in the folders from which something was served, and writes them
//! into a log. A worker sees by one number whether there is something new in it. Telling only ever makes a
//! worker look earlier: if nothing is reported, because there are more folders than may be watched, because the
//! system gives no more watches, or because another machine wrote the file, it looks after a second as always.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use tenfold_sys::eventfd::EventFd;
use tenfold_sys::inotify::{Inotify, InotifyEvent, WakeReason, WatchDescriptor};

use crate::files::roots::Roots;

/// Changes that are kept for workers that have not seen them; a worker that missed one looks at everything.
const MOST_CHANGES: usize = 1024;

/// Between two reads of the kernel's events: a program that writes many files is heard in few batches.
const PAUSE: Duration = Duration::from_millis(2);

/// Watches folders, from the first that is asked for on.
#[derive(Debug)]
pub(crate) struct FolderWatch {
    most_folders: usize,
    heard: Arc<News>,
    running: OnceLock<Option<RunningWatch>>,
}

/// The changes that were heard of.
#[derive(Debug, Default)]
struct News {
    /// The number of all changes, readable without a lock.
    count: AtomicU64,
    log: Mutex<VecDeque<ChangeNotice>>,
    folders: Mutex<HashMap<WatchDescriptor, Arc<str>>>,
}

/// A change, as workers hear of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChangeNotice {
    /// The file with this decoded path beneath the root.
    File(Arc<str>),
    /// Anything may be another than before, and nothing is watched any more.
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

/// The changes that a worker has heard of, and the folders that it follows.
#[derive(Debug, Default)]
pub(crate) struct ChangeListener {
    heard: u64,
    followed: HashSet<String>,
}

impl FolderWatch {
    /// Watches at most so many folders. Nothing begins before the first.
    pub(crate) fn new(most_folders: usize) -> FolderWatch {
        FolderWatch { most_folders, heard: Arc::default(), running: OnceLock::new() }
    }

    /// Whether there is something that `listener` has not heard.
    #[inline]
    pub(crate) fn has_news(&self, listener: &ChangeListener) -> bool {
        self.heard.count.load(Ordering::Acquire) != listener.heard
    }

    /// Reports the changes that `listener` has not heard of.
    #[cold]
    pub(crate) fn tell(&self, listener: &mut ChangeListener, mut hear: impl FnMut(&ChangeNotice)) {
        let log = lock(&self.heard.log);
        let count = self.heard.count.load(Ordering::Acquire);
        let missed = usize::try_from(count - listener.heard).unwrap_or(usize::MAX);
        listener.heard = count;
        if missed > log.len() || log.iter().rev().take(missed).any(|told| *told == ChangeNotice::Everything) {
            listener.followed.clear();
            return hear(&ChangeNotice::Everything);
        }
        log.iter().rev().take(missed).for_each(hear);
    }

    /// Watches the folder of `relative`, and those above it, because a rename of any of them changes the file that
    /// is found. A folder that cannot be watched is left to the look after a second.
    pub(crate) fn follow(&self, roots: &Roots, relative: &str, listener: &mut ChangeListener) {
        let folder = relative.rsplit_once('/').map_or("", |(folder, _)| folder);
        if listener.followed.contains(folder) {
            return;
        }
        let Some(running) = self.running.get_or_init(|| start(&self.heard)) else { return };
        let ends = folder.match_indices('/').map(|(at, _)| at).chain([folder.len()]);
        for name in std::iter::once("").chain(ends.map(|end| &folder[..end])) {
            if listener.followed.contains(name) {
                continue;
            }
            let mut folders = lock(&self.heard.folders);
            // Those that are watched already cost nothing more.
            if folders.len() >= self.most_folders && !folders.values().any(|known| **known == *name) {
                return;
            }
            let Ok(watched) = running.inotify.watch(roots.of(name), name) else { return };
            folders.insert(watched, name.into());
            // Links give a folder any number of names, and one watch.
            if listener.followed.len() >= self.most_folders {
                listener.followed.clear();
            }
            listener.followed.insert(name.to_owned());
        }
    }
}

/// Begins to listen; none if the system lacks the resources.
fn start(heard: &Arc<News>) -> Option<RunningWatch> {
    let inotify = Arc::new(Inotify::new().ok()?);
    let stop = Arc::new(EventFd::new().ok()?);
    let running = RunningWatch { inotify: Arc::clone(&inotify), stop: Arc::clone(&stop) };
    let heard = Arc::clone(heard);
    let listen = move || {
        let mut told = Vec::new();
        while let Ok(WakeReason::Changes) = inotify.wait(&stop, |change| heard.understand(change, &mut told))
        {
            heard.write(&mut told, &inotify);
            thread::sleep(PAUSE);
        }
    };
    thread::Builder::new().name("watch".into()).spawn(listen).ok()?;
    Some(running)
}

impl News {
    fn understand(&self, change: InotifyEvent<'_>, told: &mut Vec<ChangeNotice>) {
        let new = match change {
            InotifyEvent::File(watched, name) => {
                let folders = lock(&self.folders);
                match (folders.get(&watched), std::str::from_utf8(name)) {
                    (Some(folder), Ok(name)) if folder.is_empty() => ChangeNotice::File(name.into()),
                    (Some(folder), Ok(name)) => ChangeNotice::File(format!("{folder}/{name}").into()),
                    // No address means it, or its watch has ended.
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
        if told.last() != Some(&new) {
            told.push(new);
        }
    }

    /// Writes the changes into the log. If folders have changed, all watches end: their names may be
    /// others now. Workers ask for them again.
    fn write(&self, told: &mut Vec<ChangeNotice>, inotify: &Inotify) {
        if told.is_empty() {
            return;
        }
        if told.contains(&ChangeNotice::Everything) {
            lock(&self.folders).drain().for_each(|(watched, _)| inotify.unwatch(watched));
        }
        let mut log = lock(&self.log);
        let count = told.len() as u64;
        log.extend(told.drain(..));
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
        let roots = Roots::new(Root::open(&folder).expect("it was made"));
        let (watch, mut listener) = (FolderWatch::new(MOST), ChangeListener::default());
        for number in 0..64_u32 {
            let name = |bit: u32| if number >> bit & 1_u32 == 0 { "a/" } else { "b/" };
            let path: String = (0..6).map(name).chain(["file"]).collect();
            watch.follow(&roots, &path, &mut listener);
            assert!(listener.followed.len() <= MOST, "{} names", listener.followed.len());
        }
        assert!(!listener.followed.is_empty(), "it watches");
        std::fs::remove_dir_all(&folder).expect("our own folder");
    }
}
