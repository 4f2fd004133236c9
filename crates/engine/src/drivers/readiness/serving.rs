//! Serving: starts a task for a connection, polls it, and registers the interest that it waits for.

use std::task::Poll;
use std::time::Duration;

use tenfold_http::Next;
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::socket::Socket;

use super::executor::{Dispatched, Executor, Polled, PolledTask};
use super::io::{ReadinessIo, Signals};
use super::reactor::{BOTH, Reactor, Registered};
use super::selector::Interest;
use crate::drivers::linger;
use crate::protocol::{self, Protocol};
use crate::worker::retirement::idle_until;
use crate::worker::slots::{Key, SlotState};
use crate::worker::tasks::{Finished, Start};
use crate::worker::tick::{SlotContents, Tick, TickParts, take_up};

/// The interval between reads of an error queue that the mechanism does not report.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

impl<P, M, E> Reactor<'_, P, M, E>
where
    P: Protocol,
    M: Start<ReadinessIo, P::State>,
    E: Executor<M::Future>,
{
    /// Gives connection `key` a task, and serves it.
    pub(super) fn activate(&mut self, key: Key, ready: Signals) {
        let Some(slot) = self.connections.find(key) else { return };
        let Some(SlotContents { socket, peer, listener, memory }) = take_up(slot) else { return };
        let ready = if slot.driver.half_closed { ready | Signals::ENDED } else { ready };
        let (plan, readers, start, number) = (self.plan, &self.readers, &self.start, socket.number());
        let task = self.tasks.begin(key, |used, kept| {
            let mut io = used.unwrap_or_else(|| Box::new(ReadinessIo::new(plan, readers)));
            io.begin(socket, peer, listener, ready);
            match kept {
                Some(active) => active.number = number,
                None => *kept = Some(PolledTask { link: io.link().clone(), number }),
            }
            start(io, memory)
        });
        slot.state = SlotState::Active { task };
        self.poll(key, task);
    }

    /// Polls the task of connection `key`, on this thread or on another one. Does nothing if a thread already has it.
    pub(super) fn poll(&mut self, key: Key, task: u32) {
        let mut registered = true;
        if E::AWAY {
            if self.tasks.is_lent(task) {
                return;
            }
            registered = self.suspend(key, task);
        }
        self.tasks.attached(task).link.begin_poll(self.plan.bounds.turn_bytes);
        match self.executor.poll(&mut self.tasks, key, task, registered) {
            Dispatched::Polled(polled) => self.polled(key, task, polled),
            Dispatched::Away => {}
            Dispatched::Refused => {
                self.protocol.observe(protocol::Event::TooMany);
                self.abandon(key, task);
            }
        }
    }

    /// Prevents events of connection `key` while another thread has its task. If an event ends a registration, the
    /// current one is void. Returns whether the connection stays registered.
    pub(super) fn suspend(&mut self, key: Key, task: u32) -> bool {
        let Some(slot) = self.connections.find(key) else { return false };
        if slot.driver.interest.is_none() {
            return false;
        }
        slot.driver.interest = self.reporting.one_shot.then_some(Interest::NONE);
        if !self.reporting.one_shot {
            self.selector.forget(self.tasks.attached(task).number);
        }
        self.reporting.one_shot
    }

    /// Handles the result of polling the task of connection `key`.
    pub(super) fn polled(&mut self, key: Key, task: u32, polled: Polled<M::Future>) {
        match polled {
            Ok(Poll::Pending) => {
                let link = &self.tasks.attached(task).link;
                self.worked |= link.is_ready(Signals::MOVED);
                link.clear_ready(Signals::MOVED);
                self.wait(key, task);
            }
            Ok(Poll::Ready(finished)) => self.finished(key, task, finished),
            Err(_) => {
                self.protocol.observe(protocol::Event::Panicked);
                self.abandon(key, task);
            }
        }
    }

    /// The task of connection `key` waits: registers its interest.
    pub(super) fn wait(&mut self, key: Key, task: u32) {
        let active = self.tasks.attached(task);
        let (wants, mut deadline, number) = (active.link.wants(), active.link.deadline(), active.number);
        if wants.contains(Signals::AGAIN) {
            self.again.push(key);
            return;
        }
        if wants.contains(Signals::FAULT) && (self.reporting.one_shot || !self.reporting.errors) {
            deadline = deadline.min(tenfold_http::clock::now() + LOOK_AGAIN);
        }
        if self.listen_for(key, number, wants.interest()) {
            self.connections.set_deadline(key, deadline);
        } else {
            self.abandon(key, task);
        }
    }

    /// Registers connection `key` for `interest`. Returns false if no memory is left, or no watches (`man 7 epoll`,
    /// `max_user_watches`).
    pub(super) fn listen_for(&mut self, key: Key, number: i32, interest: Interest) -> bool {
        let edge = self.reporting.edge;
        let Some(slot) = self.connections.find(key) else { return false };
        // An edge-triggered registration stays. The first one is for reading; writing is added when a connection first
        // waits for room.
        let had = slot.driver.interest;
        let write = interest.write || edge && had.is_some_and(|had| had.write);
        let wanted = Interest { read: interest.read || edge, write };
        if slot.driver.interest.replace(wanted) == Some(wanted) {
            return true;
        }
        let result = match had {
            None => self.selector.watch(number, key.word(), wanted),
            Some(_) => self.selector.change(number, key.word(), wanted),
        };
        if result.is_err() {
            self.protocol.observe(protocol::Event::Exhausted);
        }
        result.is_ok()
    }

    /// The task of connection `key` has finished its activation.
    pub(super) fn finished(&mut self, key: Key, task: u32, finished: Finished<ReadinessIo, P::State>) {
        let Finished { mut io, memory, next, panicked } = finished;
        if panicked {
            self.protocol.observe(protocol::Event::Panicked);
        }
        let sent = io.core.sent;
        let (unread, moved) = (io.link().is_ready(Signals::READ), io.link().is_ready(Signals::MOVED));
        let ended = io.link().is_ready(Signals::ENDED);
        self.worked |= moved;
        if sent > 0 {
            let protocol = self.protocol;
            protocol.observe(protocol::Event::Sent(sent));
            io.core.files.report(|event| protocol.observe(event));
        }
        let socket = io.core.end();
        self.tasks.end(task, Some(io));
        let Some(slot) = self.connections.find(key) else { return };
        let number = socket.as_ref().map_or(-1, Socket::number);
        slot.socket = socket;
        slot.memory = memory;
        if ended {
            slot.driver.half_closed = true;
        }
        match next {
            Next::Close => self.close(key),
            Next::Park(by) => {
                slot.state = SlotState::Parked;
                if sent > 0 && !slot.served && P::has_answered(&slot.memory) {
                    slot.served = true;
                }
                // A draining worker closes idle connections once, and this one was active at that time.
                let phase = lifecycle::phase();
                if slot.served && phase >= Phase::Draining {
                    return self.close_idle(key);
                }
                // It was woken without work, so it stays idle with its old deadline.
                let by = idle_until(if moved { by } else { by.min(slot.deadline) }, phase);
                if !self.listen_for(key, number, Interest::READ) {
                    return self.close_idle(key);
                }
                self.connections.set_deadline(key, by);
                if unread && self.reporting.edge {
                    self.again.push(key);
                }
            }
            Next::Linger => {
                let begun = linger::now();
                slot.state = SlotState::Lingering { begun };
                if !self.listen_for(key, number, Interest::READ) {
                    return self.close(key);
                }
                self.connections.set_deadline(key, linger::deadline(begun, &self.plan.bounds));
                self.linger(key);
            }
        }
    }
}

impl<P, M, E> Tick for Reactor<'_, P, M, E>
where
    P: Protocol,
    M: Start<ReadinessIo, P::State>,
    E: Executor<M::Future>,
{
    type Memory = P::State;
    type Driver = Registered;
    type Future = M::Future;
    type Io = ReadinessIo;
    type Kept = PolledTask;

    #[inline]
    fn parts(&mut self) -> TickParts<'_, Self> {
        let Reactor { connections, tasks, again, inbox, .. } = self;
        TickParts { connections, tasks, again, inbox }
    }

    #[inline]
    fn serve_on(&mut self, key: Key, task: u32) {
        self.poll(key, task);
    }

    #[inline]
    fn is_away(&mut self, key: Key, task: u32) -> bool {
        let away = E::AWAY && self.tasks.is_lent(task);
        if away {
            self.missed.push(key);
        }
        away
    }

    fn go_on_without_task(&mut self, key: Key, state: SlotState) {
        match state {
            SlotState::Parked => self.activate(key, BOTH),
            SlotState::Lingering { .. } => self.linger(key),
            SlotState::Active { .. } | SlotState::Free { .. } | SlotState::Closing { .. } => {}
        }
    }

    fn give_up(&mut self, key: Key, state: SlotState) {
        if state == SlotState::Parked {
            self.protocol.observe(protocol::Event::Expired);
        }
        self.close_idle(key);
    }
}
