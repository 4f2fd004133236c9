//! Work that must not happen on a loop: a bounded lane of threads, whose results wake the task that
//! waits.
//!
//! A blocking model has no loop to keep free: there the work is done in place, by so many at once as the
//! lane is wide.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use crate::plan::Plan;

type Job = Box<dyn FnOnce() + Send>;

/// Where work goes: to threads, or into place. Cloned for whoever gives it work; threads end with the
/// last clone.
#[derive(Clone)]
pub struct Lane(Arc<Way>);

enum Way {
    Threads { width: usize, queue: usize, sender: OnceLock<SyncSender<Job>> },
    InPlace { free: Mutex<usize>, changed: Condvar },
}

/// The lane has as much to do as it may have: answer 503 with `Retry-After`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("as much work is waiting as may wait")
    }
}

impl std::error::Error for Busy {}

impl Lane {
    /// A lane of `width` threads before which at most `queue` jobs wait; for a blocking model, the right
    /// of `width` at once to work in place. Threads begin with the first job, so that the process may
    /// still be forked before.
    pub fn new(plan: &Plan, width: usize, queue: usize) -> Lane {
        let width = width.max(1);
        Lane(Arc::new(match plan.blocking() {
            true => Way::InPlace { free: Mutex::new(width), changed: Condvar::new() },
            false => Way::Threads { width, queue, sender: OnceLock::new() },
        }))
    }

    /// Does `work` off the loop. The future is ready when it is done, with nothing if it panicked.
    /// Dropping the future does not stop work that has begun.
    ///
    /// # Errors
    /// [`Busy`] when the queue is full.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Coming<T>, Busy> {
        let place = Arc::new(Mutex::new(Place { value: None, over: false, waker: None }));
        let promise = Promise(place.clone());
        let job: Job = Box::new(move || {
            let value = work();
            promise.lock().value = Some(value);
        });
        match &*self.0 {
            Way::InPlace { free, changed } => in_place(free, changed, job),
            Way::Threads { width, queue, sender } => {
                let sender = sender.get_or_init(|| start(*width, *queue));
                sender.try_send(job).map_err(|error| match error {
                    TrySendError::Full(_) | TrySendError::Disconnected(_) => Busy,
                })?;
            }
        }
        Ok(Coming(place))
    }
}

fn in_place(free: &Mutex<usize>, changed: &Condvar, job: Job) {
    let mut left = free.lock().unwrap_or_else(PoisonError::into_inner);
    while *left == 0 {
        left = changed.wait(left).unwrap_or_else(PoisonError::into_inner);
    }
    *left -= 1;
    drop(left);
    let _ = catch_unwind(AssertUnwindSafe(job));
    *free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    changed.notify_one();
}

/// Starts threads, as many as the system gives; without any, every job finds the lane closed.
fn start(width: usize, queue: usize) -> SyncSender<Job> {
    let (sender, receiver) = sync_channel(queue);
    let receiver = Arc::new(Mutex::new(receiver));
    for number in 0..width {
        let receiver = receiver.clone();
        let _ = thread::Builder::new().name(format!("offload-{number}")).spawn(move || work(&receiver));
    }
    sender
}

fn work(receiver: &Mutex<Receiver<Job>>) {
    loop {
        let job = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        // What panicked is told by the promise, which is dropped.
        let _ = catch_unwind(AssertUnwindSafe(job));
    }
}

struct Place<T> {
    value: Option<T>,
    over: bool,
    waker: Option<Waker>,
}

/// The worker's side of a result: when it is dropped, the work is over, one way or another.
struct Promise<T>(Arc<Mutex<Place<T>>>);

impl<T> Promise<T> {
    fn lock(&self) -> std::sync::MutexGuard<'_, Place<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        let waker = {
            let mut place = self.lock();
            place.over = true;
            place.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The result of work that was given to a [`Lane`].
pub struct Coming<T>(Arc<Mutex<Place<T>>>);

impl<T> Future for Coming<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if place.over {
            return Poll::Ready(place.value.take());
        }
        match &mut place.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}
