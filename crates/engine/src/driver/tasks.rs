//! The tasks of a worker: connections that are being served.
//!
//! A task is made for each activation, and most end in their first poll; so its storage, its waker and
//! its boxed `Io` are used again. Those past a small stock are freed: memory follows work.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tenfold_http::{Io, Next};

use crate::inbox::{Inbox, TaskWaker};
use crate::protocol::Protocol;
use crate::slots::Key;

/// What an activation gives back.
pub(crate) struct Finished<I, T> {
    pub(crate) io: Box<I>,
    pub(crate) memory: T,
    pub(crate) next: Next,
}

/// Serves `io` once, from its activation to the next rest.
pub(crate) async fn activation<I: Io, P: Protocol>(
    mut io: Box<I>,
    mut memory: P::State,
    protocol: &P,
) -> Finished<I, P::State> {
    let next = protocol.serve(&mut *io, &mut memory).await;
    Finished { io, memory, next }
}

/// Tasks that are kept for the next connection: more than are ever begun at once on a healthy loop.
const STOCK: usize = 64;
/// Freed tasks after which the heap is trimmed.
const TRIM_AFTER: usize = 1024;

struct Task<F, I> {
    /// Pinned by itself, so that the rest can be reached. Finished futures are dropped by the next one.
    future: Pin<Box<Option<F>>>,
    waker: Waker,
    target: Arc<TaskWaker>,
    /// The `Io` of the next activation, while there is none.
    io: Option<Box<I>>,
}

/// All tasks of a worker, by their numbers.
pub(crate) struct Tasks<F, I> {
    tasks: Vec<Option<Box<Task<F, I>>>>,
    /// Numbers of tasks that are kept, the last used on top: it is still in the cache.
    stock: Vec<u32>,
    /// Numbers without a task.
    hollow: Vec<u32>,
    inbox: Arc<Inbox>,
    freed: usize,
}

impl<F: Future, I> Tasks<F, I> {
    pub(crate) fn new(inbox: Arc<Inbox>) -> Tasks<F, I> {
        Tasks { tasks: Vec::new(), stock: Vec::new(), hollow: Vec::new(), inbox, freed: 0 }
    }

    /// Takes a task for the connection `key`: `prepare` gets a used `Io`, or none, and gives the one to
    /// serve; `start` makes the future of it.
    pub(crate) fn begin(&mut self, key: Key, start: impl FnOnce(Option<Box<I>>) -> F) -> u32 {
        let number = self.stock.pop().unwrap_or_else(|| self.make());
        let task = self.tasks[number as usize].as_mut().expect("a number in stock has its task");
        task.target.assign(key);
        let io = task.io.take();
        task.future.set(Some(start(io)));
        number
    }

    fn make(&mut self) -> u32 {
        let target = Arc::new(TaskWaker::new(self.inbox.clone()));
        let waker = Waker::from(target.clone());
        let task = Box::new(Task { future: Box::pin(None), waker, target, io: None });
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
        let task = self.tasks[number as usize].as_mut().expect("a task that is polled is there");
        let future = task.future.as_mut().as_pin_mut().expect("a task that is polled has begun");
        future.poll(&mut Context::from_waker(&task.waker))
    }

    /// The key of task `number` was taken from the inbox.
    pub(crate) fn woken(&self, number: u32) {
        if let Some(task) = &self.tasks[number as usize] {
            task.target.taken();
        }
    }

    /// Gives task `number` back, with its `Io` where it is to be used again.
    pub(crate) fn end(&mut self, number: u32, io: Option<Box<I>>) {
        if self.stock.len() >= STOCK {
            self.tasks[number as usize] = None;
            self.hollow.push(number);
            self.freed += 1;
            return;
        }
        let task = self.tasks[number as usize].as_mut().expect("a task that ends is there");
        if io.is_none() {
            task.future.set(None);
        }
        task.io = io;
        self.stock.push(number);
    }

    /// After a burst: gives what was freed back to the system.
    pub(crate) fn trim(&mut self) {
        if self.freed >= TRIM_AFTER {
            self.freed = 0;
            tenfold_sys::memory::trim();
        }
    }
}
