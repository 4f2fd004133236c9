//! The queues between a loop and a pool of threads: a bounded [`JobQueue`] to the threads, and a [`Mailbox`] to the
//! loop.
//!
//! No job is lost and no thread spins: a thread sleeps while the queue is empty, and a sleeping loop is woken
//! only for messages that no other event announces.

use std::collections::VecDeque;
use std::time::Duration;

use tenfold_http::{Instant, clock};

use super::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The queue of a pool's jobs, with a bound on jobs that no thread has taken.
pub(crate) struct JobQueue<J> {
    state: Mutex<Jobs<J>>,
    filled: Condvar,
    bound: usize,
}

struct Jobs<J> {
    waiting: VecDeque<J>,
    /// The number of sleeping threads. Without one, a notification needs no system call.
    idle: usize,
    closed: bool,
}

/// The result of taking a job from the queue.
pub(crate) enum NextJob<J> {
    Job(J),
    /// No job came in time.
    Nothing,
    /// The queue is closed.
    Over,
}

impl<J> JobQueue<J> {
    /// A queue in which at most `bound` jobs wait.
    pub(crate) fn new(bound: usize) -> JobQueue<J> {
        let state = Jobs { waiting: VecDeque::new(), idle: 0, closed: false };
        JobQueue { state: Mutex::new(state), filled: Condvar::new(), bound }
    }

    fn lock(&self) -> MutexGuard<'_, Jobs<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands `job` to the pool.
    ///
    /// # Errors
    /// The job, if the queue is full or closed.
    pub(crate) fn put(&self, job: J) -> Result<(), J> {
        let mut state = self.lock();
        if state.closed || state.waiting.len() >= self.bound {
            return Err(job);
        }
        state.waiting.push_back(job);
        if state.idle > 0 {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Takes the next job; waits for it, at most for `patience`. Closing the queue drops the jobs that still
    /// wait.
    pub(crate) fn take(&self, patience: Option<Duration>) -> NextJob<J> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return NextJob::Over;
            }
            if let Some(job) = state.waiting.pop_front() {
                return NextJob::Job(job);
            }
            state.idle += 1;
            let timed_out;
            (state, timed_out) = match patience {
                None => (self.filled.wait(state).unwrap_or_else(PoisonError::into_inner), false),
                Some(patience) => {
                    let woken = self.filled.wait_timeout(state, patience);
                    let (state, waited) = woken.unwrap_or_else(PoisonError::into_inner);
                    (state, waited.timed_out())
                }
            };
            state.idle -= 1;
            if timed_out && state.waiting.is_empty() && !state.closed {
                return NextJob::Nothing;
            }
        }
    }

    /// Takes jobs until the queue is closed. `act` does a job, if it gets one, and returns the latest time of its next
    /// call.
    pub(crate) fn work(&self, mut act: impl FnMut(Option<J>) -> Instant) {
        // A thread without jobs has nothing to write.
        let mut until = Instant::NEVER;
        loop {
            let patience = (until != Instant::NEVER).then(|| until.since(clock::now()));
            until = match self.take(patience) {
                NextJob::Job(job) => act(Some(job)),
                NextJob::Nothing => act(None),
                NextJob::Over => return,
            };
        }
    }

    /// Closes the queue for threads that wait for a job or ask for one later.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
    }
}

/// The queue of results from the pool's threads to the loop.
pub(crate) struct Mailbox<R>(Mutex<Messages<R>>);

struct Messages<R> {
    messages: Vec<R>,
    /// The time at which a sleeping loop wakes by itself; `None` if the loop is awake.
    asleep_until: Option<Instant>,
}

/// The loop needs the message immediately.
pub(crate) const IMMEDIATELY: Instant = Instant(0);

impl<R> Mailbox<R> {
    /// An empty mailbox.
    pub(crate) fn new() -> Mailbox<R> {
        Mailbox(Mutex::new(Messages { messages: Vec::new(), asleep_until: None }))
    }

    fn lock(&self) -> MutexGuard<'_, Messages<R>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the message that `seal` returns. `seal` also registers the connection's next event, and returns the
    /// time by which the loop needs the message. The lock ensures that the loop sees the message before the event.
    /// Returns whether the caller has to wake the loop.
    #[must_use]
    pub(crate) fn put(&self, seal: impl FnOnce() -> (R, Instant)) -> bool {
        let mut state = self.lock();
        let (message, by) = seal();
        state.messages.push(message);
        let wakes = state.asleep_until.is_some_and(|until| by <= until);
        if wakes {
            // One wake-up is enough: from here on, the loop counts as awake.
            state.asleep_until = None;
        }
        wakes
    }

    /// Prepares for a sleep until this time; with `NEVER`, until any message. Returns whether the loop may sleep,
    /// which requires that there is no message.
    pub(crate) fn fall_asleep(&self, until: Instant) -> bool {
        let mut state = self.lock();
        if !state.messages.is_empty() {
            return false;
        }
        state.asleep_until = Some(until);
        true
    }

    /// The loop is awake: moves the messages into `into`, which is empty.
    pub(crate) fn take(&self, into: &mut Vec<R>) {
        let mut state = self.lock();
        state.asleep_until = None;
        std::mem::swap(&mut state.messages, into);
    }
}
