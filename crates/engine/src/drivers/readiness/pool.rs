//! Dispatch `reactor`: the loop waits, and threads of a pool poll the tasks: a thread receives, processes and sends.
//!
//! One thread at a time serves a connection: its registration ends with its event, or before a thread gets its task. If
//! the mechanism allows it, the thread renews the registration, and the loop keeps sleeping. Otherwise the thread wakes
//! the loop, which renews the registration.
//!
//! The loop gets the task back before an event of its connection: the thread registers and puts the task into
//! the mailbox under one lock, and the loop empties the mailbox before it handles events.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::thread;

use tenfold_http::{Instant, Next};

use super::executor::{Dispatched, Executor, PolledTask, Returned};
use super::io::{ReadinessIo, Signals};
use super::reactor::Reactor;
use super::selector::{Interest, Rearm, Selector};
use crate::dispatch::queue::{IMMEDIATELY, JobQueue, Mailbox};
use crate::plan::Plan;
use crate::protocol::Protocol;
use crate::worker::inbox::Inbox;
use crate::worker::intake::Intake;
use crate::worker::slots::Key;
use crate::worker::tasks::{Finished, Start, Task, Tasks, activation_anywhere};
use crate::worker::tick::read_clock;

/// Runs the loop on `selector` until the server leaves; a pool of threads polls its tasks.
pub(super) fn serve_by_pool<P: Protocol>(
    selector: Box<dyn Selector>,
    plan: &Plan,
    intake: &Intake<'_>,
    protocol: &P,
) -> Result<(), String> {
    let inbox = Inbox::new()?;
    let start = |io, memory| activation_anywhere::<ReadinessIo, P>(io, memory, protocol);
    let rearm = if selector.reporting().one_shot { selector.rearm() } else { None };
    let pool = TaskPool {
        queue: JobQueue::new(plan.bounds.pool_queue),
        mailbox: Mailbox::new(),
        inbox: inbox.clone(),
        rearm,
    };
    let reactor = Reactor::new(selector, plan, inbox, protocol, start, &pool);
    pool.run(plan, intake, protocol, reactor)
}

/// The state that the loop and its threads share.
struct TaskPool<F: Future> {
    queue: JobQueue<PollJob<F>>,
    mailbox: Mailbox<Returned<F>>,
    inbox: Arc<Inbox>,
    rearm: Option<Arc<dyn Rearm>>,
}

/// A task that is ready.
struct PollJob<F: Future> {
    key: Key,
    number: u32,
    task: Box<Task<F, ReadinessIo, PolledTask>>,
    registered: bool,
}

impl<F, T> TaskPool<F>
where
    F: Future<Output = Finished<ReadinessIo, T>> + Send,
    T: Default + Send,
{
    fn run<P, M>(
        &self,
        plan: &Plan,
        intake: &Intake<'_>,
        protocol: &P,
        mut reactor: Reactor<'_, P, M, &TaskPool<F>>,
    ) -> Result<(), String>
    where
        P: Protocol<State = T>,
        M: Start<ReadinessIo, T, Future = F>,
    {
        thread::scope(|scope| {
            let _over = Over(&self.queue);
            for number in 0..plan.bounds.pool_threads {
                thread::Builder::new()
                    .name(format!("reactor-{number}"))
                    .spawn_scoped(scope, move || self.work(protocol))
                    .map_err(|error| format!("cannot start thread {number} of the pool: {error}"))?;
            }
            reactor.serve(intake)
        })
    }

    /// Runs a thread of the pool until the loop has ended.
    fn work<P: Protocol>(&self, protocol: &P) {
        self.queue.work(|job| {
            read_clock();
            if let Some(job) = job {
                self.poll(job);
            }
            protocol.before_wait(false)
        });
        read_clock();
        protocol.drain();
    }

    fn poll(&self, job: PollJob<F>) {
        let PollJob { key, number, mut task, registered } = job;
        let mut polled = catch_unwind(AssertUnwindSafe(|| task.poll()));
        if let Ok(Poll::Ready(finished)) = &mut polled {
            // The lent buffer belongs to this thread.
            finished.io.give_back_memory();
        }
        let wakes = self.mailbox.put(|| {
            let rearm = self.rearm.as_deref().filter(|_| registered);
            let rearmed = rearm.and_then(|rearm| begin_anew(rearm, key, task.attached(), &polled));
            let (rearmed, by) = rearmed.map_or((None, IMMEDIATELY), |(interest, by)| (Some(interest), by));
            (Returned { key, number, task, polled, rearmed }, by)
        });
        if wakes {
            self.inbox.event().signal();
        }
    }
}

/// Registers a waiting connection for its interest. Returns the interest and the deadline. If this function
/// does not register, the loop does so, or does the other work of the connection.
fn begin_anew<I, T>(
    rearm: &dyn Rearm,
    key: Key,
    active: &PolledTask,
    polled: &thread::Result<Poll<Finished<I, T>>>,
) -> Option<(Interest, Instant)> {
    let (interest, by) = match polled {
        Ok(Poll::Pending) if !active.link.wants().intersects(Signals::AGAIN | Signals::FAULT) => {
            (active.link.wants().interest(), active.link.deadline())
        }
        Ok(Poll::Ready(Finished { next: Next::Park(by), .. })) => (Interest::READ, *by),
        _ => return None,
    };
    rearm.rearm(active.number, key.word(), interest).ok().map(|()| (interest, by))
}

impl<F: Future> Executor<F> for &TaskPool<F> {
    const AWAY: bool = true;

    fn poll(
        &mut self,
        tasks: &mut Tasks<F, ReadinessIo, PolledTask>,
        key: Key,
        number: u32,
        registered: bool,
    ) -> Dispatched<F> {
        let task = tasks.lend(number);
        match self.queue.put(PollJob { key, number, task, registered }) {
            Ok(()) => Dispatched::Away,
            Err(job) => {
                tasks.give_back(number, job.task);
                Dispatched::Refused
            }
        }
    }

    fn fall_asleep(&mut self, until: Instant) -> bool {
        self.mailbox.fall_asleep(until)
    }

    fn take_returned(&mut self, into: &mut Vec<Returned<F>>) {
        self.mailbox.take(into);
    }
}

/// Ends the pool, however the loop ends.
struct Over<'a, F: Future>(&'a JobQueue<PollJob<F>>);

impl<F: Future> Drop for Over<'_, F> {
    fn drop(&mut self) {
        self.0.close();
    }
}
