//! The readiness driver: a loop that waits for what is ready and polls the tasks that want it.
//!
//! It is generic over the mechanism ([`selector::Selector`]) and the protocol. A connection rests as a
//! slot; when something arrives it gets a task and memory, and gives them back when nothing is in hand.

pub(crate) mod accept;
mod closing;
mod executor;
pub(crate) mod io;
pub(crate) mod link;
mod pool;
pub(crate) mod selector;
mod serving;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tenfold_http::Instant;
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::socket::Socket;

use self::accept::Acceptor;
use self::executor::{Executor, InPlace, Returned};
use self::io::ReadinessIo;
use self::link::{AGAIN, GONE, Link, READ, WRITE};
pub(crate) use self::pool::serve_by_pool;
use self::selector::{NOTHING, READING, Selector, WRITING};
use super::tasks::{Finished, Tasks, activation};
use super::turn::Turns;
use super::{of_accepted, pause_where_short, read_clock};
use crate::connections::Connections;
use crate::inbox::Inbox;
use crate::models::Intake;
use crate::plan::{Dispatch, Plan};
use crate::protocol::{self, Protocol};
use crate::slots::{Key, SERVED, State};

/// Words of registrations that are no connections: their places are past every slot's.
const FIRST_SPECIAL: u32 = 0xffff_0000;
const INBOX: u32 = 0xffff_fffe;
const LIFECYCLE: u32 = 0xffff_fffd;
const HANDED: u32 = 0xffff_fffc;

/// A slot's flag beside [`SERVED`]: the peer has ended its output, which an edge-triggered mechanism says once.
const HALF_CLOSED: u8 = 2;

/// Among a slot's bits of interest: the selector knows the connection.
const REGISTERED: u8 = 0x80;
/// Where nobody says that something came into an error queue, it is looked into so often.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

fn special(place: u32) -> u64 {
    Key { index: place, generation: 0 }.word()
}

/// Runs the loop on `selector` until the server leaves.
pub(crate) fn serve<S: Selector, P: Protocol>(
    selector: S,
    plan: &Plan,
    intake: &Intake<'_>,
    protocol: &P,
) -> Result<(), String> {
    let inbox = Inbox::new().map_err(|error| format!("cannot make an eventfd: {error}"))?;
    let inbox = Arc::new(inbox);
    let start = |io, memory| activation::<ReadinessIo, P>(io, memory, protocol);
    Reactor::new(selector, plan, inbox, protocol, start, InPlace).serve(intake)
}

/// Runs the loop as the plan divides its work, on a selector for which it makes no difference.
pub(crate) fn serve_as_dispatched<S: Selector, P: Protocol>(
    selector: S,
    plan: &Plan,
    intake: &Intake<'_>,
    protocol: &P,
) -> Result<(), String> {
    match plan.dispatch {
        Dispatch::Reactor => serve_by_pool(selector, plan, intake, protocol),
        Dispatch::Inline | Dispatch::Proactor => serve(selector, plan, intake, protocol),
    }
}

/// What is registered for a task that wants `wants`.
fn interest_of(wants: u8) -> u8 {
    let mut interest = NOTHING;
    if wants & READ != 0 {
        interest |= READING;
    }
    if wants & WRITE != 0 {
        interest |= WRITING;
    }
    interest
}

/// What a task is polled for, beside its future.
struct Active {
    link: Arc<Link>,
    number: i32,
}

struct Reactor<'a, S, P: Protocol, F, M, E> {
    selector: S,
    connections: Connections<P::State>,
    tasks: Tasks<F, ReadinessIo, Active>,
    /// Connections that are served again before the next wait.
    again: Vec<Key>,
    inbox: Arc<Inbox>,
    plan: &'a Plan,
    protocol: &'a P,
    start: M,
    /// Whether anything was done in this turn; kept for selectors that ask.
    worked: bool,
    /// Who polls tasks.
    executor: E,
    /// Connections that were woken while their tasks were away.
    missed: Vec<Key>,
}

impl<'a, S, P, F, M, E> Reactor<'a, S, P, F, M, E>
where
    S: Selector,
    P: Protocol,
    F: Future<Output = Finished<ReadinessIo, P::State>>,
    M: Fn(Box<ReadinessIo>, P::State) -> F,
    E: Executor<F>,
{
    fn new(
        selector: S,
        plan: &'a Plan,
        inbox: Arc<Inbox>,
        protocol: &'a P,
        start: M,
        executor: E,
    ) -> Reactor<'a, S, P, F, M, E> {
        Reactor {
            selector,
            connections: Connections::new(plan, read_clock()),
            tasks: Tasks::new(inbox.clone()),
            again: Vec::new(),
            inbox,
            plan,
            protocol,
            start,
            worked: false,
            executor,
            missed: Vec::new(),
        }
    }

    fn serve(&mut self, intake: &Intake<'_>) -> Result<(), String> {
        let mut acceptor = Acceptor::new(intake, self.plan.accept);
        let failed = |error| format!("cannot wait for events: {error}");
        let watch = lifecycle::Watch::new().map_err(failed)?;
        self.selector.watch_event(watch.event().number(), special(LIFECYCLE)).map_err(failed)?;
        self.selector.watch_event(self.inbox.event().number(), special(INBOX)).map_err(failed)?;
        acceptor.begin(&mut self.selector, read_clock(), self.protocol)?;
        let (mut events, mut keys, mut returned) = (Vec::new(), Vec::new(), Vec::new());
        let mut reported = Vec::new();
        loop {
            match lifecycle::phase() {
                Phase::Serving => {}
                Phase::Draining if self.drain(&mut acceptor) => {}
                Phase::Draining | Phase::Stopping => break,
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
                match Key::from_word(event.word) {
                    Key { index: INBOX, .. } => self.inbox.event().clear(),
                    Key { index: LIFECYCLE, .. } => watch.event().clear(),
                    Key { index: HANDED, .. } => acceptor.handed(),
                    Key { index, .. } if index >= FIRST_SPECIAL => {
                        acceptor.ready((index - FIRST_SPECIAL) as usize)
                    }
                    // A thread takes it away, and `busy` reports each in every turn: what is idle is seen before that.
                    key if E::AWAY => reported.push((key, event.ready)),
                    key => self.event(key, event.ready),
                }
            }
            self.accept(&mut acceptor, now)?;
            reported.drain(..).for_each(|(key, ready)| self.event(key, ready));
            self.end_turn(woken, now, &mut keys);
            if S::SLEEPS {
                self.selector.turn_over(std::mem::take(&mut self.worked));
            }
        }
        read_clock();
        self.protocol.leave();
        Ok(())
    }

    /// How long the next wait may last, in milliseconds. From here on wakers tell the loop.
    fn timeout(&mut self, acceptor: &Acceptor<'_>) -> Option<u32> {
        let rest = self.protocol.rest();
        let until = self.idle_until(rest).filter(|_| !acceptor.pending());
        let Some(by) = until.map(|until| until.min(acceptor.resumes())) else { return Some(0) };
        if E::AWAY {
            // Who leaves closes what comes to rest, so it hears of every task that comes back.
            let hears_all = !self.missed.is_empty() || lifecycle::phase() != Phase::Serving;
            let until = if hears_all { Instant::NEVER } else { by };
            if !self.executor.fall_asleep(until) {
                return Some(0);
            }
        }
        (by != Instant::NEVER).then(|| {
            // One more, so that the clock, which counts whole milliseconds, has passed it.
            let wait = by.since(tenfold_http::clock::now()).as_millis() + 1;
            u32::try_from(wait).unwrap_or(u32::MAX)
        })
    }

    /// Leaves step by step; says whether connections are left.
    fn drain(&mut self, acceptor: &mut Acceptor<'_>) -> bool {
        if !acceptor.leave(&mut self.selector) {
            return self.connections.count() > 0 || acceptor.expects();
        }
        for key in self.connections.keys(|slot| slot.state == State::Parked && slot.flags & SERVED != 0) {
            self.close(key);
        }
        self.connections.count() > 0 || acceptor.expects()
    }

    fn accept(&mut self, acceptor: &mut Acceptor<'_>, now: Instant) -> Result<(), String> {
        acceptor.resume(&mut self.selector, now, self.protocol)?;
        while let Some((socket, peer, listener)) = acceptor.next(&mut self.selector, now, self.protocol)? {
            let Some(socket) = self.admit(socket, peer) else { continue };
            self.worked = true;
            self.protocol.observe(protocol::Event::Accepted);
            let key = self.connections.insert(socket, peer, listener);
            // Its request is there already, mostly: it is tried before it is registered.
            self.activate(key, READ | WRITE);
        }
        Ok(())
    }

    /// Returns a socket that was just accepted if its connection is served: within the bound, or in the place of an idle
    /// connection.
    fn admit(&mut self, socket: Socket, peer: Option<SocketAddr>) -> Option<Socket> {
        let fits = self.selector.admits(socket.number());
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
        self.close(evicted);
        // The number of the evicted connection is free now, and it was one that the selector admits.
        let socket = if fits { Some(socket) } else { socket.renumber().ok() };
        let socket = socket.filter(|socket| self.selector.admits(socket.number()));
        if socket.is_none() {
            self.protocol.dismiss(|| of_accepted(peer));
            self.protocol.observe(protocol::Event::TooMany);
        }
        socket
    }

    /// Something happened on connection `key`.
    fn event(&mut self, key: Key, ready: u8) {
        let Some(slot) = self.connections.find(key) else { return };
        if S::ONE_SHOT {
            slot.interest = REGISTERED;
        }
        match slot.state {
            State::Parked if ready & (READ | GONE) != 0 => self.activate(key, ready | READ | WRITE),
            State::Lingering => self.linger(key),
            State::Active => {
                let task = slot.link;
                // Whoever serves it has it reported again.
                if E::AWAY && self.tasks.is_lent(task) {
                    return;
                }
                let link = &self.tasks.attached(task).link;
                link.add_ready(ready);
                if ready & (link.wants() | GONE) != 0 {
                    self.poll(key, task);
                } else if S::ONE_SHOT && link.wants() & AGAIN == 0 {
                    self.wait(key, task);
                }
            }
            State::Parked | State::Free | State::Closing => {}
        }
        if S::ONE_SHOT {
            self.listen_on(key);
        }
    }

    /// Has connection `key`, which rests or is drained, reported again after a report that ended its
    /// registration.
    fn listen_on(&mut self, key: Key) {
        let Some(slot) = self.connections.find(key) else { return };
        if matches!(slot.state, State::Parked | State::Lingering) {
            let number = slot.socket.as_ref().map_or(-1, Socket::number);
            if !self.listen_for(key, number, READING) {
                self.close(key);
            }
        }
    }

    /// Takes tasks back that were away, and goes on with them.
    fn take_back(&mut self, returned: &mut Vec<Returned<F>>) {
        self.executor.take_returned(returned);
        for Returned { key, number, task, polled, rearmed } in returned.drain(..) {
            self.tasks.give_back(number, task);
            if let (Some(interest), Some(slot)) = (rearmed, self.connections.find(key)) {
                slot.interest = REGISTERED | interest;
            }
            self.polled(key, number, polled);
        }
        for key in std::mem::take(&mut self.missed) {
            self.woken(key);
        }
    }
}
