//! How a task is woken: its key goes into its worker's inbox, once, from whatever thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;

use tenfold_sys::eventfd::EventFd;

use crate::slots::Key;

/// The keys of a worker's woken tasks. Bounded by its connections: a task is in it at most once.
pub(crate) struct Inbox {
    keys: Mutex<Vec<Key>>,
    /// Whether there may be keys: what the worker asks each turn, without the lock.
    filled: AtomicBool,
    /// Whether the worker waits, so that it has to be told.
    asleep: AtomicBool,
    event: EventFd,
}

impl Inbox {
    pub(crate) fn new() -> std::io::Result<Inbox> {
        Ok(Inbox {
            keys: Mutex::new(Vec::new()),
            filled: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            event: EventFd::new()?,
        })
    }

    pub(crate) fn event(&self) -> &EventFd {
        &self.event
    }

    /// The worker is about to wait: from here on it is told of a key. Says whether it may.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        !self.filled.load(Ordering::SeqCst)
    }

    /// The worker has waited. Says whether there are keys.
    pub(crate) fn wake_up(&self) -> bool {
        self.asleep.store(false, Ordering::Relaxed);
        self.filled.load(Ordering::Acquire)
    }

    /// Moves the keys into `into`, which is empty.
    pub(crate) fn take(&self, into: &mut Vec<Key>) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        self.filled.store(false, Ordering::SeqCst);
        std::mem::swap(&mut *keys, into);
    }

    fn put(&self, key: Key) {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).push(key);
        self.filled.store(true, Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.event.signal();
        }
    }
}

/// A task's waker. It outlives the connection that its task serves, and is used again for another one:
/// the key says for which it is meant.
pub(crate) struct TaskWaker {
    inbox: Arc<Inbox>,
    key: AtomicU64,
    /// Whether the key is in the inbox.
    queued: AtomicBool,
}

impl TaskWaker {
    pub(crate) fn new(inbox: Arc<Inbox>) -> TaskWaker {
        TaskWaker { inbox, key: AtomicU64::new(u64::MAX), queued: AtomicBool::new(false) }
    }

    /// From here on it wakes the task of `key`.
    pub(crate) fn assign(&self, key: Key) {
        self.key.store(key.word(), Ordering::Relaxed);
        self.queued.store(false, Ordering::Release);
    }

    /// The key was taken from the inbox. Who wakes from here on puts it there again; what those did who
    /// woke before, and found it there, is seen by the poll that follows.
    pub(crate) fn taken(&self) {
        self.queued.swap(false, Ordering::AcqRel);
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            self.inbox.put(Key::from_word(self.key.load(Ordering::Relaxed)));
        }
    }
}
