//! The place where the tasks of a loop are polled: the loop itself (`reactor.rs`), or a pool of threads (`pool.rs`).

use std::future::Future;
use std::sync::Arc;
use std::task::Poll;
use std::thread;

use tenfold_http::Instant;

use super::io::{ReadinessIo, TaskLink};
use super::selector::Interest;
use crate::worker::slots::Key;
use crate::worker::tasks::{Task, Tasks};

/// The driver part of a task.
pub(crate) struct PolledTask {
    pub(super) link: Arc<TaskLink>,
    pub(super) number: i32,
}

/// The result of polling a task; a panic is an error.
pub(crate) type Polled<F> = thread::Result<Poll<<F as Future>::Output>>;

/// The result of [`Executor::poll`].
pub(crate) enum Dispatched<F: Future> {
    /// It was polled.
    Polled(Polled<F>),
    /// Another thread has the task; it comes back as [`Returned`].
    Away,
    /// The queue of tasks that wait to be polled is full.
    Refused,
}

/// A task that another thread polled.
pub(crate) struct Returned<F: Future> {
    pub(crate) key: Key,
    pub(crate) number: u32,
    pub(crate) task: Box<Task<F, ReadinessIo, PolledTask>>,
    pub(crate) polled: Polled<F>,
    /// The interest with which the thread renewed the connection's registration; if `None`, the loop has to
    /// renew it.
    pub(crate) rearmed: Option<Interest>,
}

pub(crate) trait Executor<F: Future> {
    /// Whether other threads can poll tasks.
    const AWAY: bool;

    /// Polls task `number` of connection `key`, or gives it to another thread. `registered`: whether the
    /// connection is registered with the selector.
    fn poll(
        &mut self,
        tasks: &mut Tasks<F, ReadinessIo, PolledTask>,
        key: Key,
        number: u32,
        registered: bool,
    ) -> Dispatched<F>;

    /// Prepares for a sleep until this time. Returns whether the loop may sleep.
    fn fall_asleep(&mut self, _until: Instant) -> bool {
        true
    }

    /// Moves the returned tasks into `into`, which is empty.
    fn take_returned(&mut self, _into: &mut Vec<Returned<F>>) {}
}
