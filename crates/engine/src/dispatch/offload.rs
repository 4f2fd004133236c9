//! Work off the loop: a bounded pool of threads, whose results wake the waiting task.
//!
//! A blocking model does the work on the thread of the connection, within the same limit of concurrency.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use crate::plan::Plan;

type OffloadJob = Box<dyn FnOnce() + Send>;

/// The longest wait of a thread of a blocking model for permission to work.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Runs jobs on threads of its own, or on the caller's thread. Each submitter has a clone; the threads end with the
/// last clone.
#[derive(Clone)]
pub struct OffloadPool(Arc<OffloadMode>);

enum OffloadMode {
    Threads { width: usize, queue: usize, sender: OnceLock<SyncSender<OffloadJob>> },
    InPlace { free: Mutex<usize>, changed: Condvar },
}

/// The offload queue is full: answer 503 with `Retry-After`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFull;

impl OffloadPool {
    /// A pool of `width` threads with a queue of at most `queue` jobs. In a blocking model, `width` threads may work
    /// concurrently. Pool threads start with the first job, so that the process can fork before.
    pub fn new(plan: &Plan, width: usize, queue: usize) -> OffloadPool {
        let width = width.max(1);
        OffloadPool(Arc::new(match plan.blocking() {
            true => OffloadMode::InPlace { free: Mutex::new(width), changed: Condvar::new() },
            false => OffloadMode::Threads { width, queue, sender: OnceLock::new() },
        }))
    }

    /// Does `work` off the loop. The future returns its result, or `None` if the work panicked. Dropping the future
    /// does not stop the work.
    ///
    /// # Errors
    /// [`QueueFull`] when the queue is full, or the system gives no thread.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<OffloadResult<T>, QueueFull> {
        let (promise, coming) = promise();
        self.submit(Box::new(move || promise.keep(work())))?;
        Ok(coming)
    }

    /// As [`OffloadPool::run`], but work that has not begun ends with its future. Otherwise a client could fill the
    /// queue with one connection at a time.
    ///
    /// # Errors
    /// See [`OffloadPool::run`].
    pub fn run_awaited<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<OffloadResult<T>, QueueFull> {
        let (promise, coming) = promise();
        self.submit(Box::new(move || {
            if promise.is_awaited() {
                promise.keep(work());
            }
        }))?;
        Ok(coming)
    }

    fn submit(&self, job: OffloadJob) -> Result<(), QueueFull> {
        match &*self.0 {
            OffloadMode::InPlace { free, changed } => in_place(free, changed, job),
            OffloadMode::Threads { width, queue, sender } => {
                let sender = match sender.get() {
                    Some(sender) => sender,
                    None => {
                        let started = start(*width, *queue).ok_or(QueueFull)?;
                        sender.get_or_init(|| started)
                    }
                };
                sender.try_send(job).map_err(|error| match error {
                    TrySendError::Full(_) | TrySendError::Disconnected(_) => QueueFull,
                })
            }
        }
    }
}

fn in_place(free: &Mutex<usize>, changed: &Condvar, job: OffloadJob) -> Result<(), QueueFull> {
    let left = free.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = changed.wait_timeout_while(left, LONGEST_WAIT, |left| *left == 0);
    let (mut left, _) = waited.unwrap_or_else(PoisonError::into_inner);
    *left = left.checked_sub(1).ok_or(QueueFull)?;
    drop(left);
    let _ = catch_unwind(AssertUnwindSafe(job));
    *free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    changed.notify_one();
    Ok(())
}

/// Starts threads, up to the limit of the system (`man 3 pthread_create`, EAGAIN). `None` if no thread could start; the
/// next job tries again.
fn start(width: usize, queue: usize) -> Option<SyncSender<OffloadJob>> {
    let (sender, receiver) = sync_channel(queue);
    let receiver = Arc::new(Mutex::new(receiver));
    let begins = |number: usize| {
        let receiver = receiver.clone();
        thread::Builder::new().name(format!("offload-{number}")).spawn(move || work(&receiver)).is_ok()
    };
    let started = (0..width).filter(|number| begins(*number)).count();
    (started > 0).then_some(sender)
}

fn work(receiver: &Mutex<Receiver<OffloadJob>>) {
    loop {
        let job = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        // The panic drops the promise, which reports it.
        let _ = catch_unwind(AssertUnwindSafe(job));
    }
}

struct PromiseState<T> {
    value: Option<T>,
    over: bool,
    waker: Option<Waker>,
}

/// A result that a task waits for: the side of the worker, and the side of the task.
pub fn promise<T>() -> (Promise<T>, OffloadResult<T>) {
    let place = Arc::new(Mutex::new(PromiseState { value: None, over: false, waker: None }));
    (Promise(place.clone()), OffloadResult(place))
}

/// The worker's side of a result. Its drop ends the wait.
pub struct Promise<T>(Arc<Mutex<PromiseState<T>>>);

impl<T> Promise<T> {
    /// Stores the result and wakes the task.
    pub fn keep(self, value: T) {
        self.lock().value = Some(value);
    }

    /// Whether a task waits for the result.
    fn is_awaited(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, PromiseState<T>> {
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

/// The future result of work of an [`OffloadPool`].
pub struct OffloadResult<T>(Arc<Mutex<PromiseState<T>>>);

impl<T> Future for OffloadResult<T> {
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;
    use std::task::Wake;
    use std::time::Instant;

    use super::*;
    use crate::plan::Bounds;
    use crate::plan::choice::{Engine, Sender};

    struct Count(AtomicUsize, thread::Thread);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
            self.1.unpark();
        }
    }

    fn lane(engine: Engine, width: usize, queue: usize) -> OffloadPool {
        let plan = Plan::new(engine, None, Some(1), Sender::Auto, None, Bounds::default());
        OffloadPool::new(&plan.expect("the plan is legal"), width, queue)
    }

    /// Waits for a result. Returns it with the number of wake-ups.
    fn wait<T>(coming: OffloadResult<T>) -> (Option<T>, usize) {
        let count = Arc::new(Count(AtomicUsize::new(0), thread::current()));
        let waker = Waker::from(count.clone());
        let (mut coming, begun) = (Box::pin(coming), Instant::now());
        loop {
            match coming.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(value) => return (value, count.0.load(Ordering::SeqCst)),
                Poll::Pending => thread::park_timeout(Duration::from_secs(1)),
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "no result has come");
        }
    }

    #[test]
    fn work_is_done_on_other_threads_which_begin_with_the_first() {
        let lane = lane(Engine::Epoll, 2, 4);
        let OffloadMode::Threads { sender, .. } = &*lane.0 else { panic!("a loop is kept free by threads") };
        assert!(sender.get().is_none(), "a process with a lane can still be forked");
        let here = thread::current().id();
        let coming = lane.run(move || (thread::current().id() != here).then_some(7)).expect("there is room");
        assert_eq!(wait(coming).0, Some(Some(7)));
    }

    #[test]
    fn work_past_the_queue_is_refused_and_the_rest_is_done() {
        let (lane, (open, gate)) = (lane(Engine::Epoll, 1, 3), channel::<()>());
        let (begun, begins) = channel();
        let first = lane.run(move || {
            begun.send(()).expect("it is waited for");
            gate.recv().expect("it is opened");
        });
        begins.recv().expect("the first job begins");
        let waiting: Vec<_> = (0..3).map(|number| lane.run(move || number).expect("it may wait")).collect();
        assert!(lane.run(|| ()).is_err(), "three wait already");
        open.send(()).expect("the first job waits for it");
        assert!(wait(first.expect("there was room")).0.is_some());
        assert!(waiting.into_iter().map(|coming| wait(coming).0).eq((0..3).map(Some)));
        assert!(lane.run(|| ()).is_ok(), "there is room again");
    }

    #[test]
    fn work_that_panics_wakes_who_waits_and_takes_no_thread_along() {
        for engine in [Engine::Epoll, Engine::Naive] {
            let lane = lane(engine, 1, 8);
            for _ in 0..3 {
                let coming = lane.run(|| -> u32 { std::panic::resume_unwind(Box::new("asked for")) });
                assert_eq!(wait(coming.expect("there is room")).0, None);
            }
            assert_eq!(wait(lane.run(|| 5).expect("there is room")).0, Some(5));
        }
    }

    #[test]
    fn a_result_wakes_once_and_one_that_nobody_waits_for_harms_nobody() {
        let lane = lane(Engine::Epoll, 1, 8);
        for time in 0..50 {
            drop(lane.run(|| vec![1; 100]).expect("there is room"));
            // The result comes before the first poll, or after it.
            let coming = lane.run(move || thread::sleep(Duration::from_millis(time % 3)));
            let (value, woken) = wait(coming.expect("there is room"));
            assert!(value.is_some() && woken <= 1, "woken {woken} times");
        }
    }

    #[test]
    fn work_that_nobody_waits_for_is_done_only_where_it_was_asked_for_so() {
        let (lane, (open, gate)) = (lane(Engine::Epoll, 1, 8), channel::<()>());
        let first = lane.run_awaited(move || gate.recv().expect("it is opened")).expect("there is room");
        let done = Arc::new(AtomicUsize::new(0));
        let count = |by: usize| {
            let done = done.clone();
            move || done.fetch_add(by, Ordering::SeqCst)
        };
        drop(lane.run_awaited(count(1)).expect("there is room"));
        drop(lane.run(count(10)).expect("there is room"));
        let last = lane.run_awaited(count(100)).expect("there is room");
        open.send(()).expect("the first job waits for it");
        assert!(wait(first).0.is_some());
        assert_eq!(wait(last).0, Some(10), "it comes behind the others");
        assert_eq!(done.load(Ordering::SeqCst), 110);
    }

    #[test]
    fn a_blocking_model_works_in_place_and_so_many_at_once() {
        let (lane, here) = (lane(Engine::Naive, 2, 1), thread::current().id());
        let coming = lane.run(move || thread::current().id() == here).expect("a place is free");
        assert_eq!(wait(coming).0, Some(true));
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (now, most) = (Arc::new(now), Arc::new(most));
        thread::scope(|scope| {
            for _ in 0..6 {
                let (lane, now, most) = (lane.clone(), now.clone(), most.clone());
                scope.spawn(move || {
                    let work = move || {
                        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        // The others come meanwhile.
                        thread::sleep(Duration::from_millis(10));
                        now.fetch_sub(1, Ordering::SeqCst);
                    };
                    assert!(wait(lane.run(work).expect("a place is free")).0.is_some());
                });
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn threads_end_with_the_lane() {
        thread_local! {
            /// Dropped when its thread ends.
            static LIFE: RefCell<Option<std::sync::mpsc::Sender<()>>> = const { RefCell::new(None) };
        }
        let (lane, (life, end)) = (lane(Engine::Epoll, 1, 4), channel());
        let other = lane.clone();
        let coming = lane.run(move || LIFE.set(Some(life))).expect("there is room");
        assert!(wait(coming).0.is_some());
        drop(lane);
        assert!(wait(other.run(|| ()).expect("there is room")).0.is_some(), "a clone keeps the threads");
        drop(other);
        let ended = end.recv_timeout(Duration::from_secs(20));
        assert_eq!(ended, Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
    }
}
