//! Serving: starts a task for a connection, polls it, and submits the operations that it waits for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::Poll;

use tenfold_http::{Instant, IoError, Next};
use tenfold_sys::lifecycle;

use super::event_loop::{CompletionLoop, LAST_SENDS, RingTask};
use super::io::RingIo;
use super::link::{RingLink, Wants};
use super::ring::OperationQueue;
use super::state::{InFlight, Operations, Past};
use super::tag::{OperationKind, tag};
use crate::drivers::linger;
use crate::protocol::{Event, Protocol};
use crate::worker::retirement::idle_until;
use crate::worker::slots::{Key, SlotState};
use crate::worker::tasks::{Finished, Start};
use crate::worker::tick::{SlotContents, Tick, TickParts, take_up};

impl<R: OperationQueue, P: Protocol, M: Start<RingIo<R::Buffer>, P::State>> CompletionLoop<'_, R, P, M> {
    /// Starts a task for connection `key` with the received bytes: `inbox`, then `buffer`.
    pub(super) fn activate(&mut self, key: Key, buffer: Option<R::Buffer>, inbox: Vec<u8>) {
        let Some(slot) = self.connections.find(key) else { return };
        let Some(SlotContents { socket, peer, listener, memory }) = take_up(slot) else { return };
        let Operations { sending, past, .. } = slot.driver;
        let (plan, readers, start, number) = (self.plan, &self.readers, &self.start, socket.number());
        let task = self.tasks.begin(key, |used, kept| {
            let mut io = used.unwrap_or_else(|| Box::new(RingIo::new(plan, readers)));
            io.begin(socket, peer, listener, sending);
            let link = io.link();
            link.current.replace(buffer);
            link.inbox.replace(inbox);
            link.ended.set(past.contains(Past::ENDED));
            link.failed.set(past.contains(Past::FAILED).then_some(IoError::Gone));
            match kept {
                Some(active) => active.number = number,
                None => *kept = Some(RingTask { link: link.clone(), number }),
            }
            start(io, memory)
        });
        slot.state = SlotState::Active { task };
        self.poll(key, task);
    }

    pub(super) fn poll(&mut self, key: Key, task: u32) {
        let link = self.tasks.attached(task).link.clone();
        if link.spare.borrow().is_empty() {
            link.spare.borrow_mut().extend(self.spare.pop());
        }
        link.begin_poll();
        let polled = catch_unwind(AssertUnwindSafe(|| self.tasks.poll(task)));
        link.end_poll();
        match polled {
            Ok(Poll::Pending) => self.wait(key, &link),
            Ok(Poll::Ready(finished)) => self.finished(key, task, &link, finished),
            Err(_) => {
                self.tasks.end(task, None);
                self.protocol.observe(Event::Panicked);
                self.panicked(key, &link);
            }
        }
    }

    /// Closes connection `key`, whose task has panicked. Its socket is closed only when no operation uses it, because
    /// its number may then belong to another connection.
    fn panicked(&mut self, key: Key, link: &RingLink<R::Buffer>) {
        let Some(slot) = self.connections.find(key) else { return };
        slot.socket = link.abandoned.take();
        slot.state = SlotState::Parked;
        self.close(key);
    }

    /// The task of connection `key` waits: submits its output, and starts the operations that it waits for.
    fn wait(&mut self, key: Key, link: &Rc<RingLink<R::Buffer>>) {
        self.hand_over(key, link, false);
        self.receive_for_task(key, link);
        if link.wants(Wants::AGAIN) {
            return self.again.push(key);
        }
        let number = self.number(key);
        if link.wants(Wants::WRITABLE) {
            let Some(slot) = self.connections.find(key) else { return };
            if !slot.driver.in_flight.contains(InFlight::POLLING) {
                slot.driver.in_flight |= InFlight::POLLING;
                self.ring.poll_write(number, tag(OperationKind::Poll, key));
            }
        }
        if let Some(read) = link.file_read.take() {
            self.ring.read(read.file, read.offset, read.memory, tag(OperationKind::Read, key));
        }
        self.connections.set_deadline(key, link.deadline().unwrap_or(Instant::NEVER));
    }

    /// The task of connection `key` has finished its activation.
    fn finished(
        &mut self,
        key: Key,
        task: u32,
        link: &Rc<RingLink<R::Buffer>>,
        finished: Finished<RingIo<R::Buffer>, P::State>,
    ) {
        let Finished { mut io, memory, next, .. } = finished;
        let (calls, resets, protocol) = (io.core.sent, io.resets(), self.protocol);
        io.core.files.report(|event| protocol.observe(event));
        let socket = io.end();
        let unread = std::mem::take(&mut *link.inbox.borrow_mut());
        if calls > 0 {
            self.protocol.observe(Event::Sent(calls));
        }
        let served = calls > 0 || link.sent.get() > 0 || !link.outgoing.borrow().is_empty();
        let Some(slot) = self.connections.find(key) else { return };
        slot.socket = socket;
        slot.memory = memory;
        slot.state = SlotState::Parked;
        if served && P::has_answered(&slot.memory) {
            slot.served = true;
        }
        if resets {
            slot.driver.past |= Past::RESET;
        }
        let quiet = slot.driver.in_flight == InFlight::default() && slot.driver.sending == 0;
        // If a wait has expired, its deadline holds; otherwise the last bytes get some time.
        let deadline = link.deadline().unwrap_or_else(|| tenfold_http::clock::now() + LAST_SENDS);
        if next == Next::Close && quiet {
            self.close_behind(key, link, deadline);
            return self.tasks.end(task, Some(io));
        }
        self.hand_over(key, link, false);
        self.tasks.end(task, Some(io));
        match next {
            Next::Close => self.close_gently(key, deadline),
            Next::Park(by) => {
                self.connections.set_deadline(key, idle_until(by, lifecycle::phase()));
                if !unread.is_empty() {
                    return self.activate(key, None, unread);
                }
                self.receive(key);
                let over = self
                    .connections
                    .find(key)
                    .is_some_and(|slot| slot.driver.past.intersects(Past::ENDED | Past::FAILED));
                if over {
                    self.close_gently(key, by.max(tenfold_http::clock::now() + LAST_SENDS));
                }
            }
            Next::Linger => {
                let Some(slot) = self.connections.find(key) else { return };
                let begun = linger::now();
                slot.state = SlotState::Lingering { begun };
                slot.driver.past |= Past::LINGERED;
                let ended = slot.driver.past.contains(Past::ENDED);
                self.connections.set_deadline(key, linger::deadline(begun, &self.plan.bounds));
                if ended { self.close(key) } else { self.discard_input(key) }
            }
        }
    }
}

impl<R: OperationQueue, P: Protocol, M: Start<RingIo<R::Buffer>, P::State>> Tick
    for CompletionLoop<'_, R, P, M>
{
    type Memory = P::State;
    type Driver = Operations;
    type Future = M::Future;
    type Io = RingIo<R::Buffer>;
    type Kept = RingTask<R::Buffer>;

    #[inline]
    fn parts(&mut self) -> TickParts<'_, Self> {
        let CompletionLoop { connections, tasks, again, inbox, .. } = self;
        TickParts { connections, tasks, again, inbox }
    }

    #[inline]
    fn serve_on(&mut self, key: Key, task: u32) {
        self.poll(key, task);
    }

    fn give_up(&mut self, key: Key, state: SlotState) {
        if state != SlotState::Parked {
            return self.close(key);
        }
        // Otherwise, the last response is not sent completely.
        if self.connections.find(key).is_some_and(|slot| slot.driver.sending == 0) {
            self.protocol.observe(Event::Expired);
        }
        self.close_idle(key, tenfold_http::clock::now() + LAST_SENDS);
    }
}
