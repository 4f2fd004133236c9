//! The tasks of a worker: connections that are being served.
//!
//! Each activation creates a task, and most end in their first poll, so storage, waker and boxed `Io` are reused. Tasks
//! beyond a small reserve are freed, so memory follows the number of active connections.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tenfold_http::{Instant, Io, Next, clock};

use super::inbox::{Inbox, TaskWaker};
use super::slots::Key;
use crate::protocol::Protocol;

/// The result of an activation.
pub(crate) struct Finished<I, T> {
    pub(crate) io: Box<I>,
    pub(crate) memory: T,
    pub(crate) next: Next,
    /// Whether serving it panicked.
    pub(crate) panicked: bool,
}

/// Begins activations: [`activation`] with the protocol of a worker, or [`activation_anywhere`].
pub(crate) trait Start<I, T>: Fn(Box<I>, T) -> Self::Future {
    type Future: Future<Output = Finished<I, T>>;
}

impl<I, T, F: Future<Output = Finished<I, T>>, M: Fn(Box<I>, T) -> F> Start<I, T> for M {
    type Future = F;
}

/// Serves `io` for one activation, until the connection is idle again.
pub(crate) async fn activation<I: Io, P: Protocol>(
    mut io: Box<I>,
    mut memory: P::State,
    protocol: &P,
) -> Finished<I, P::State> {
    let next = protocol.serve(&mut *io, &mut memory).await;
    Finished { io, memory, next, panicked: false }
}

/// The same for a connection that several threads serve in turn. A panic keeps the `Io`: if another thread closed the
/// socket, a new connection could get its number before the loop removes this connection.
pub(crate) async fn activation_anywhere<I: Io + Send, P: Protocol>(
    mut io: Box<I>,
    mut memory: P::State,
    protocol: &P,
) -> Finished<I, P::State> {
    let next = {
        let mut serving = pin!(protocol.serve_anywhere(&mut *io, &mut memory));
        poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| serving.as_mut().poll(cx))) {
            Ok(polled) => polled.map(Some),
            Err(_) => Poll::Ready(None),
        })
        .await
    };
    Finished { io, memory, next: next.unwrap_or(Next::Close), panicked: next.is_none() }
}

/// The most unused tasks that are kept: more than a healthy loop ever starts at once.
const STOCK: usize = 64;
/// The number of freed tasks after which the heap is trimmed immediately.
const TRIM_AFTER: usize = 1024;
/// The time after which the heap is trimmed even if fewer tasks were freed.
const TRIM_WITHIN: Duration = Duration::from_millis(500);

/// A connection that is being served.
pub(crate) struct Task<F, I, A> {
    /// Pinned separately, so that the other fields stay accessible. The next future replaces a finished one.
    future: Pin<Box<Option<F>>>,
    waker: Waker,
    target: Arc<TaskWaker>,
    /// The `Io` for the next activation; `None` during an activation.
    io: Option<Box<I>>,
    /// The driver's part of the `Io`. The future owns the rest during an activation.
    attached: Option<A>,
}

impl<F: Future, I, A> Task<F, I, A> {
    /// Polls the task, which must have begun.
    #[inline]
    pub(crate) fn poll(&mut self) -> Poll<F::Output> {
        let future = self.future.as_mut().as_pin_mut().expect("a task that is polled has begun");
        future.poll(&mut Context::from_waker(&self.waker))
    }

    /// Returns the driver's part of a task that has begun.
    #[inline]
    pub(crate) fn attached(&self) -> &A {
        self.attached.as_ref().expect("a task that has begun has its attachment")
    }
}

/// All tasks of a worker, by their numbers.
pub(crate) struct Tasks<F, I, A> {
    tasks: Vec<Option<Box<Task<F, I, A>>>>,
    /// Numbers of unused tasks, the most recently used on top, because it is still in the cache.
    stock: Vec<u32>,
    /// Numbers without a task.
    hollow: Vec<u32>,
    inbox: Arc<Inbox>,
    /// Tasks freed since the heap was trimmed.
    freed: usize,
    /// The time of the next trim.
    trims: Instant,
}

impl<F: Future, I, A> Tasks<F, I, A> {
    pub(crate) fn new(inbox: Arc<Inbox>) -> Tasks<F, I, A> {
        let (tasks, stock, hollow) = (Vec::new(), Vec::new(), Vec::new());
        Tasks { tasks, stock, hollow, inbox, freed: 0, trims: Instant::NEVER }
    }

    /// Starts a task for connection `key`. `start` gets a used `Io` and its driver part, or neither. It returns the
    /// future that serves the connection, and stores the driver part of the `Io`.
    #[inline]
    pub(crate) fn begin(&mut self, key: Key, start: impl FnOnce(Option<Box<I>>, &mut Option<A>) -> F) -> u32 {
        let number = self.stock.pop().unwrap_or_else(|| self.make());
        let task = self.tasks[number as usize].as_mut().expect("a number in stock has its task");
        task.target.assign(key);
        let future = start(task.io.take(), &mut task.attached);
        task.future.set(Some(future));
        number
    }

    /// Whether a task is running, so that a waker may have an effect.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.tasks.len() > self.stock.len() + self.hollow.len()
    }

    /// Returns the driver's part of task `number`, which has begun.
    #[inline]
    pub(crate) fn attached(&self, number: u32) -> &A {
        self.tasks[number as usize].as_ref().expect("a task that has begun is there").attached()
    }

    fn make(&mut self) -> u32 {
        let target = Arc::new(TaskWaker::new(self.inbox.clone()));
        let waker = Waker::from(target.clone());
        let task = Box::new(Task { future: Box::pin(None), waker, target, io: None, attached: None });
        match self.hollow.pop() {
            Some(number) => {
                self.tasks[number as usize] = Some(task);
                number
            }
            None => {
                self.tasks.push(Some(task));
                u32::try_from(self.tasks.len() - 1).expect("tasks are fewer than 2^32")
            }
        }
    }

    /// Polls task `number`.
    pub(crate) fn poll(&mut self, number: u32) -> Poll<F::Output> {
        self.tasks[number as usize].as_mut().expect("a task that is polled is there").poll()
    }

    /// Lends task `number` to another thread, which polls it.
    pub(crate) fn lend(&mut self, number: u32) -> Box<Task<F, I, A>> {
        self.tasks[number as usize].take().expect("a task is lent to one at a time")
    }

    /// Whether task `number`, which has begun, is lent.
    #[inline]
    pub(crate) fn is_lent(&self, number: u32) -> bool {
        self.tasks[number as usize].is_none()
    }

    /// Takes task `number` back.
    pub(crate) fn give_back(&mut self, number: u32, task: Box<Task<F, I, A>>) {
        self.tasks[number as usize] = Some(task);
    }

    /// The key of task `number` was taken from the inbox.
    pub(crate) fn woken(&self, number: u32) {
        if let Some(task) = &self.tasks[number as usize] {
            task.target.taken();
        }
    }

    /// Frees task `number`, and keeps its `Io` for reuse if there is one.
    #[inline]
    pub(crate) fn end(&mut self, number: u32, io: Option<Box<I>>) {
        if self.stock.len() >= STOCK {
            self.tasks[number as usize] = None;
            self.hollow.push(number);
            if self.freed == 0 {
                self.trims = clock::now() + TRIM_WITHIN;
            }
            self.freed += 1;
            return;
        }
        let task = self.tasks[number as usize].as_mut().expect("a task that ends is there");
        if io.is_none() {
            task.future.set(None);
            task.attached = None;
        }
        task.io = io;
        self.stock.push(number);
    }

    /// The time of the next [`Tasks::trim`], if one is due.
    #[inline]
    pub(crate) fn trims(&self) -> Instant {
        self.trims
    }

    /// Returns freed memory to the system after a burst.
    #[inline]
    pub(crate) fn trim(&mut self, now: Instant) {
        if self.freed >= TRIM_AFTER || now >= self.trims {
            (self.freed, self.trims) = (0, Instant::NEVER);
            tenfold_sys::memory::trim();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Ready, pending, ready};
    use std::rc::Rc;

    use super::*;

    fn key(index: u32) -> Key {
        Key { index, epoch: 1 }
    }

    fn tasks<F: Future, I>() -> Tasks<F, I, u32> {
        Tasks::new(Inbox::new().expect("descriptors"))
    }

    #[test]
    fn a_task_that_has_ended_lends_its_io_to_the_next() {
        let mut tasks = tasks::<Ready<u8>, &str>();
        let first = tasks.begin(key(1), |io, kept| {
            assert_eq!((io, kept.replace(10)), (None, None));
            ready(1)
        });
        assert!(tasks.any());
        assert_eq!(tasks.poll(first), Poll::Ready(1));
        tasks.end(first, Some(Box::new("used")));
        assert!(!tasks.any());
        let second = tasks.begin(key(2), |io, kept| {
            assert_eq!((io, *kept), (Some(Box::new("used")), Some(10)));
            ready(2)
        });
        assert_eq!((first, tasks.poll(second), *tasks.attached(second)), (second, Poll::Ready(2), 10));
    }

    #[test]
    fn a_task_that_is_given_up_drops_what_it_holds_at_once() {
        let (mut tasks, held) = (tasks(), Rc::new(()));
        let hold = |held: Rc<()>| async move {
            pending::<()>().await;
            drop(held);
        };
        let task = tasks.begin(key(1), |_: Option<Box<()>>, kept| {
            *kept = Some(0);
            hold(held.clone())
        });
        assert!(tasks.poll(task).is_pending());
        assert_eq!(Rc::strong_count(&held), 2);
        tasks.end(task, None);
        assert_eq!(Rc::strong_count(&held), 1);
        tasks.begin(key(2), |io, kept| {
            assert_eq!((io, *kept), (None, None), "nor is anything of it used again");
            hold(held.clone())
        });
    }

    #[test]
    fn past_a_small_stock_tasks_are_freed_and_their_numbers_used_again() {
        let mut tasks = tasks::<Ready<()>, u8>();
        for _ in 0..3 {
            let begun: Vec<_> =
                (0..STOCK as u32 + 50).map(|at| tasks.begin(key(at), |_, _| ready(()))).collect();
            for &task in &begun {
                assert!(tasks.poll(task).is_ready());
                tasks.end(task, Some(Box::new(1)));
            }
            assert_eq!(tasks.stock.len(), STOCK);
            assert_eq!(tasks.tasks.iter().flatten().count(), STOCK);
            assert_eq!(tasks.tasks.len(), STOCK + 50);
        }
    }

    #[test]
    fn a_key_that_was_taken_can_be_put_again() {
        let mut tasks = tasks();
        let task = tasks.begin(key(1), |_: Option<Box<()>>, _| pending::<()>());
        let (waker, mut keys) = (tasks.tasks[0].as_ref().expect("it has begun").waker.clone(), Vec::new());
        for _ in 0..2 {
            waker.wake_by_ref();
            tasks.inbox.take(&mut keys);
            assert_eq!(std::mem::take(&mut keys), [key(1)]);
            tasks.woken(task);
        }
    }
}
