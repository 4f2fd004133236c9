//! The loop: waits, dispatches events to their connections, accepts, and ends its tick.

use std::future::Future;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tenfold_http::Instant;
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::socket::Socket;

use super::accept::{AT_ONCE, Acceptor, FIRST_SPECIAL, HANDED, INBOX, LIFECYCLE, special};
use super::executor::{Dispatched, Executor, PolledTask, Returned};
use super::io::{ReadinessIo, Signals};
use super::selector::{Interest, Reporting, Selector};
use crate::dispatch::offload::OffloadPool;
use crate::drivers::prefetch;
use crate::plan::Plan;
use crate::protocol::{self, Protocol};
use crate::worker::connections::ConnectionTable;
use crate::worker::inbox::Inbox;
use crate::worker::intake::{Intake, of_accepted};
use crate::worker::shortage::pause_where_short;
use crate::worker::slots::{Key, Slot, SlotState};
use crate::worker::tasks::{Start, Tasks, activation};
use crate::worker::tick::{Tick, read_clock};

/// The driver's part of a slot.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Registered {
    /// The interest that the selector knows; none if the connection is not registered.
    pub(super) interest: Option<Interest>,
    /// The peer has ended its output; edge triggering reports that only once.
    pub(super) half_closed: bool,
}

/// Both directions.
pub(super) const BOTH: Signals = Signals::READ.union(Signals::WRITE);

pub(super) struct Reactor<'a, P: Protocol, M: Start<ReadinessIo, P::State>, E> {
    pub(super) selector: Box<dyn Selector>,
    pub(super) reporting: Reporting,
    pub(super) connections: ConnectionTable<P::State, Registered>,
    pub(super) tasks: Tasks<M::Future, ReadinessIo, PolledTask>,
    /// Connections that are served again before the next wait.
    pub(super) again: Vec<Key>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) plan: &'a Plan,
    pub(super) protocol: &'a P,
    pub(super) start: M,
    /// Whether this tick accepted, received or sent anything: see [`Selector::turn_over`].
    pub(super) worked: bool,
    /// Polls the tasks.
    pub(super) executor: E,
    /// Reads files that are not in memory.
    pub(super) readers: OffloadPool,
    /// Connections that were woken while their tasks were away.
    pub(super) missed: Vec<Key>,
    /// The phase that idle connections are in.
    phase: Phase,
}

impl<'a, P, M, E> Reactor<'a, P, M, E>
where
    P: Protocol,
    M: Start<ReadinessIo, P::State>,
    E: Executor<M::Future>,
{
    pub(super) fn new(
        selector: Box<dyn Selector>,
        plan: &'a Plan,
        inbox: Arc<Inbox>,
        protocol: &'a P,
        start: M,
        executor: E,
    ) -> Reactor<'a, P, M, E> {
        Reactor {
            reporting: selector.reporting(),
            selector,
            connections: ConnectionTable::new(plan, read_clock()),
            tasks: Tasks::new(inbox.clone()),
            again: Vec::new(),
            inbox,
            plan,
            protocol,
            start,
            worked: false,
            executor,
            readers: prefetch::readers(plan),
            missed: Vec::new(),
            phase: Phase::Serving,
        }
    }

    pub(super) fn serve(&mut self, intake: &Intake<'_>) -> Result<(), String> {
        let mut acceptor = Acceptor::new(intake, self.plan.accept);
        let failed = |error| format!("cannot wait for events: {error}");
        let watch = lifecycle::PhaseWatch::new().map_err(failed)?;
        self.selector.watch_event(watch.event().number(), special(LIFECYCLE)).map_err(failed)?;
        self.selector.watch_event(self.inbox.event().number(), special(INBOX)).map_err(failed)?;
        acceptor.begin(self.selector.as_mut(), read_clock(), self.protocol)?;
        let (mut events, mut keys, mut returned) = (Vec::new(), Vec::new(), Vec::new());
        let mut reported = Vec::new();
        self.protocol.begin();
        loop {
            match lifecycle::phase() {
                Phase::Serving => {}
                phase @ (Phase::Retiring | Phase::Draining) if self.leave(&mut acceptor, phase) => {}
                _ => break,
            }
            let timeout = self.timeout(&acceptor);
            let waited = self.selector.wait(timeout, &mut events);
            waited.or_else(|error| pause_where_short(error, self.protocol)).map_err(failed)?;
            let woken = self.inbox.wake_up();
            let now = read_clock();
            if E::AWAY {
                self.take_back(&mut returned);
            }
            for event in events.drain(..) {
                match Key::from_word(event.key) {
                    Key { index: INBOX, .. } => self.inbox.event().clear(),
                    Key { index: LIFECYCLE, .. } => watch.event().clear(),
                    Key { index: HANDED, .. } => acceptor.handed(),
                    Key { index, .. } if index >= FIRST_SPECIAL => {
                        acceptor.ready((index - FIRST_SPECIAL) as usize)
                    }
                    // Handled after accepting: a thread may take the task, and then the connection does not count as
                    // idle.
                    key if E::AWAY => reported.push((key, Signals::from(event))),
                    key => self.event(key, Signals::from(event)),
                }
            }
            if now >= acceptor.due {
                self.accept(&mut acceptor, now)?;
            }
            reported.drain(..).for_each(|(key, ready)| self.event(key, ready));
            self.end_tick(woken, now, &mut keys);
            if !self.reporting.events {
                self.selector.turn_over(std::mem::take(&mut self.worked));
            }
        }
        read_clock();
        self.protocol.drain();
        Ok(())
    }

    /// The longest permitted next wait, in milliseconds. From now on, wakers wake the loop.
    fn timeout(&mut self, acceptor: &Acceptor<'_>) -> Option<u32> {
        let due = self.protocol.before_wait(true);
        let until = self.idle_until(due).filter(|_| acceptor.due != AT_ONCE);
        let Some(by) = until.map(|until| until.min(acceptor.due)) else {
            return Some(0);
        };
        if E::AWAY {
            // A draining worker closes each connection that becomes idle, so it handles every task that comes back.
            let hears_all = !self.missed.is_empty() || lifecycle::phase() != Phase::Serving;
            let until = if hears_all { Instant::NEVER } else { by };
            if !self.executor.fall_asleep(until) {
                return Some(0);
            }
        }
        (by != Instant::NEVER).then(|| {
            // One more millisecond, because the clock counts whole milliseconds.
            let wait = by.since(tenfold_http::clock::now()).as_millis() + 1;
            u32::try_from(wait).unwrap_or(u32::MAX)
        })
    }

    /// Performs one step of leaving. Returns whether connections remain.
    fn leave(&mut self, acceptor: &mut Acceptor<'_>, phase: Phase) -> bool {
        acceptor.close(self.selector.as_mut());
        if std::mem::replace(&mut self.phase, phase) != phase {
            match phase {
                Phase::Draining => {
                    let is_idle = |slot: &Slot<_, _>| slot.state == SlotState::Parked && slot.served;
                    self.connections.keys(is_idle).into_iter().for_each(|key| self.close_idle(key));
                }
                _ => self.connections.retire(),
            }
        }
        self.connections.count() > 0 || acceptor.expects()
    }

    fn accept(&mut self, acceptor: &mut Acceptor<'_>, now: Instant) -> Result<(), String> {
        acceptor.resume(self.selector.as_mut(), now, self.protocol)?;
        while let Some((socket, peer, listener)) =
            acceptor.next(self.selector.as_mut(), now, self.protocol)?
        {
            let Some(socket) = self.admit(socket, peer) else { continue };
            self.worked = true;
            self.protocol.observe(protocol::Event::Accepted);
            let key = self.connections.insert(socket, peer, listener);
            // Its request has usually arrived already, so a receive is tried before the registration.
            self.activate(key, BOTH);
        }
        Ok(())
    }

    /// Returns an accepted socket if the worker serves its connection: within the bound, or in place of an evicted
    /// connection.
    fn admit(&mut self, socket: Socket, peer: Option<SocketAddr>) -> Option<Socket> {
        let fits = self.selector.admits(socket.number());
        if E::AWAY && self.connections.count() >= self.plan.bounds.connections {
            // Threads may have served many connections of this batch. These count as idle when the loop has their tasks
            // back.
            self.take_back(&mut Vec::new());
        }
        if fits && self.connections.count() < self.plan.bounds.connections {
            return self.protocol.admit(&of_accepted(peer)).then_some(socket);
        }
        let Some(evicted) = self.connections.longest_idle(self.protocol, |_| true) else {
            self.protocol.observe(protocol::Event::TooMany);
            return None;
        };
        if !self.protocol.admit(&of_accepted(peer)) {
            return None;
        }
        self.protocol.observe(protocol::Event::Evicted);
        self.close_idle(evicted);
        // The evicted connection's descriptor number is free now, and the selector accepts that number.
        let socket = if fits { Some(socket) } else { socket.renumber().ok() };
        let socket = socket.filter(|socket| self.selector.admits(socket.number()));
        if socket.is_none() {
            self.protocol.on_close(|| of_accepted(peer));
            self.protocol.observe(protocol::Event::TooMany);
        }
        socket
    }

    /// Handles an event of connection `key`.
    fn event(&mut self, key: Key, ready: Signals) {
        let Some(slot) = self.connections.find(key) else { return };
        if self.reporting.one_shot {
            slot.driver.interest = Some(Interest::NONE);
        }
        match slot.state {
            SlotState::Parked if ready.intersects(Signals::READ | Signals::GONE) => {
                self.activate(key, ready | BOTH);
            }
            SlotState::Lingering { .. } => self.linger(key),
            SlotState::Active { task } => {
                // The thread that serves it renews its registration.
                if E::AWAY && self.tasks.is_lent(task) {
                    return;
                }
                let link = &self.tasks.attached(task).link;
                link.add_ready(ready);
                if ready.intersects(link.wants() | Signals::GONE) {
                    self.poll(key, task);
                } else if self.reporting.one_shot && !link.wants().contains(Signals::AGAIN) {
                    self.wait(key, task);
                }
            }
            SlotState::Parked | SlotState::Free { .. } | SlotState::Closing { .. } => {}
        }
        if self.reporting.one_shot {
            self.listen_on(key);
        }
    }

    /// Renews the registration of connection `key`, which is idle or drained, after an event ended it.
    fn listen_on(&mut self, key: Key) {
        let Some(slot) = self.connections.find(key) else { return };
        if matches!(slot.state, SlotState::Parked | SlotState::Lingering { .. }) {
            let number = slot.socket.as_ref().map_or(-1, Socket::number);
            if !self.listen_for(key, number, Interest::READ) {
                self.close_idle(key);
            }
        }
    }

    /// Takes returned tasks, and continues with them.
    fn take_back(&mut self, returned: &mut Vec<Returned<M::Future>>) {
        self.executor.take_returned(returned);
        for Returned { key, number, task, polled, rearmed } in returned.drain(..) {
            self.tasks.give_back(number, task);
            if let (Some(interest), Some(slot)) = (rearmed, self.connections.find(key)) {
                slot.driver.interest = Some(interest);
            }
            self.polled(key, number, polled);
        }
        for key in std::mem::take(&mut self.missed) {
            self.woken(key);
        }
    }
}

/// The loop polls its tasks itself.
struct InPlace;

impl<F: Future> Executor<F> for InPlace {
    const AWAY: bool = false;

    #[inline]
    fn poll(
        &mut self,
        tasks: &mut Tasks<F, ReadinessIo, PolledTask>,
        _key: Key,
        number: u32,
        _registered: bool,
    ) -> Dispatched<F> {
        Dispatched::Polled(catch_unwind(AssertUnwindSafe(|| tasks.poll(number))))
    }
}

/// Runs the loop on `selector` until the server leaves. It polls its tasks itself.
pub(super) fn serve_in_place<P: Protocol>(
    selector: Box<dyn Selector>,
    plan: &Plan,
    intake: &Intake<'_>,
    protocol: &P,
) -> Result<(), String> {
    let inbox = Inbox::new()?;
    let start = |io, memory| activation::<ReadinessIo, P>(io, memory, protocol);
    Reactor::new(selector, plan, inbox, protocol, start, InPlace).serve(intake)
}
