//! Wakers: any thread can put a task's key into the inbox of its worker. An inbox has each key at most once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;

use tenfold_sys::eventfd::EventFd;

use super::slots::Key;

/// The keys of a worker's woken tasks. The number of connections bounds it, because each task is in it at most once.
pub(crate) struct Inbox {
    keys: Mutex<Vec<Key>>,
    /// Whether there may be keys. The worker checks this each tick, without the lock.
    filled: AtomicBool,
    /// Whether the worker sleeps, so that a new key has to wake it.
    asleep: AtomicBool,
    event: EventFd,
}

impl Inbox {
    pub(crate) fn new() -> Result<Arc<Inbox>, String> {
        let event = EventFd::new().map_err(|error| format!("cannot make an eventfd: {error}"))?;
        let (filled, asleep) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Arc::new(Inbox { keys: Mutex::new(Vec::new()), filled, asleep, event }))
    }

    pub(crate) fn event(&self) -> &EventFd {
        &self.event
    }

    /// Prepares for a sleep: from now on, a new key wakes the worker. Returns whether the worker may sleep. Without an
    /// active task (`any` is false), no wake-up matters, and the fence is omitted.
    #[inline]
    pub(crate) fn fall_asleep(&self, any: bool) -> bool {
        let order = if any { Ordering::SeqCst } else { Ordering::Relaxed };
        self.asleep.store(true, order);
        !self.filled.load(Ordering::SeqCst)
    }

    /// Ends a sleep. Returns whether there are keys.
    #[inline]
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

/// A task's waker. It outlives a connection and serves the next connection of its task; the key identifies the
/// connection.
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

    /// Makes this waker wake the task of `key`.
    #[inline]
    pub(crate) fn assign(&self, key: Key) {
        self.key.store(key.word(), Ordering::Relaxed);
        self.queued.store(false, Ordering::Release);
    }

    /// The key was taken from the inbox. A later wake-up adds it again. The poll that follows sees the effects of
    /// earlier wake-ups, which found the key in the inbox.
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

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn key(index: u32) -> Key {
        Key { index, epoch: 7 }
    }

    fn taken(inbox: &Inbox) -> Vec<Key> {
        let mut keys = Vec::new();
        inbox.take(&mut keys);
        keys
    }

    fn assigned(inbox: &Arc<Inbox>, index: u32) -> Arc<TaskWaker> {
        let waker = Arc::new(TaskWaker::new(inbox.clone()));
        waker.assign(key(index));
        waker
    }

    #[test]
    fn a_task_is_in_the_inbox_once_however_often_it_is_woken() {
        let inbox = Inbox::new().expect("descriptors");
        let wakers: Vec<_> = (0..4).map(|index| assigned(&inbox, index)).collect();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..1000).for_each(|_| wakers.iter().for_each(Wake::wake_by_ref)));
            }
        });
        let mut keys = taken(&inbox);
        keys.sort_unstable_by_key(|key| key.index);
        assert_eq!(keys, [key(0), key(1), key(2), key(3)]);
        wakers.iter().for_each(Wake::wake_by_ref);
        assert_eq!(taken(&inbox), [], "who was taken has yet to be polled");
        wakers[2].taken();
        wakers.iter().for_each(Wake::wake_by_ref);
        assert_eq!(taken(&inbox), [key(2)]);
    }

    #[test]
    fn a_waker_that_is_used_again_wakes_its_new_task() {
        let inbox = Inbox::new().expect("descriptors");
        let waker = assigned(&inbox, 1);
        waker.wake_by_ref();
        assert_eq!(taken(&inbox), [key(1)]);
        // The task ended before its key was handled.
        waker.assign(key(2));
        waker.wake_by_ref();
        assert_eq!(taken(&inbox), [key(2)]);
    }

    #[test]
    fn a_worker_with_keys_does_not_fall_asleep() {
        let inbox = Inbox::new().expect("descriptors");
        assert!(inbox.fall_asleep(true));
        assert!(!inbox.wake_up());
        assigned(&inbox, 1).wake();
        assert!(!inbox.fall_asleep(true));
        assert!(inbox.wake_up());
        assert_eq!(taken(&inbox), [key(1)]);
        assert!(inbox.fall_asleep(true));
    }

    /// A worker that sleeps whenever possible, and a thread that wakes it after every poll.
    #[test]
    fn no_wake_is_lost_between_a_look_and_the_sleep() {
        const TIMES: usize = 20_000;
        let inbox = Inbox::new().expect("descriptors");
        let (waker, polled) = (assigned(&inbox, 1), Arc::new(AtomicU64::new(0)));
        let (others, seen) = (waker.clone(), polled.clone());
        let waking = thread::spawn(move || {
            for time in 0..TIMES as u64 {
                others.wake_by_ref();
                while seen.load(Ordering::Acquire) == time {
                    thread::yield_now();
                }
            }
        });
        let mut keys = Vec::new();
        for _ in 0..TIMES {
            while !inbox.wake_up() {
                if inbox.fall_asleep(true) {
                    sleep(&inbox);
                }
            }
            inbox.take(&mut keys);
            assert_eq!(std::mem::take(&mut keys), [key(1)]);
            waker.taken();
            polled.fetch_add(1, Ordering::Release);
        }
        waking.join().expect("every wake was heard");
    }

    fn sleep(inbox: &Inbox) {
        let mut list = tenfold_sys::poll::PollList::new();
        list.set(inbox.event().number(), 0, true, false);
        let mut heard = false;
        list.wait(Some(20_000), |_| heard = true).expect("an eventfd can be waited for");
        assert!(heard, "a worker that sleeps is told");
        inbox.event().clear();
    }
}
