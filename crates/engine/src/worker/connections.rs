//! The connections of a worker: their slots, and the timers of those that wait.

use std::net::SocketAddr;
use std::time::Duration;

use tenfold_http::Instant;
use tenfold_sys::lifecycle::Phase;
use tenfold_sys::socket::Socket;

use super::retirement::idle_until;
use super::slots::{Key, Slot, SlotState, Slots};
use super::timer::{self, Timer};
use crate::plan::Plan;
use crate::protocol::Protocol;

/// Slots and timers together, so that they stay consistent.
pub(crate) struct ConnectionTable<T, D> {
    slots: Slots<T, D>,
    timer: Box<dyn Timer>,
    /// No wait ends before this time. Most ticks end earlier and do not need the timer.
    next: Instant,
    fired: Vec<u32>,
}

impl<T: Default, D: Default> ConnectionTable<T, D> {
    /// An empty table, with the timers of `plan`.
    pub(crate) fn new(plan: &Plan, now: Instant) -> ConnectionTable<T, D> {
        ConnectionTable::with(timer::new(plan.timer, now))
    }

    fn with(timer: Box<dyn Timer>) -> ConnectionTable<T, D> {
        ConnectionTable { slots: Slots::new(), timer, next: Instant::NEVER, fired: Vec::new() }
    }

    pub(crate) fn count(&self) -> usize {
        self.slots.used()
    }

    pub(crate) fn insert(&mut self, socket: Socket, peer: Option<SocketAddr>, listener: u16) -> Key {
        self.slots.insert(socket, peer, listener)
    }

    #[inline]
    pub(crate) fn find(&mut self, key: Key) -> Option<&mut Slot<T, D>> {
        self.slots.find(key)
    }

    pub(crate) fn key_at(&mut self, index: u32) -> Option<Key> {
        self.slots.key_at(index)
    }

    pub(crate) fn keys(&self, wanted: impl Fn(&Slot<T, D>) -> bool) -> Vec<Key> {
        self.slots.keys(wanted)
    }

    /// Removes a connection, and closes its socket if the slot holds it.
    pub(crate) fn remove(&mut self, key: Key) {
        if let Some(slot) = self.slots.find(key) {
            if slot.armed != Instant::NEVER {
                self.timer.disarm(key.index);
                self.note_next();
            }
            self.slots.remove(key);
        }
    }

    /// Sets the end of the wait of connection `key`. The timer is armed only for an earlier end than the armed one.
    #[inline]
    pub(crate) fn set_deadline(&mut self, key: Key, deadline: Instant) {
        let Some(slot) = self.slots.find(key) else { return };
        slot.deadline = deadline;
        if deadline < slot.armed {
            slot.armed = deadline;
            self.timer.arm(key.index, deadline);
            self.note_next();
        }
    }

    /// Limits the waits of idle connections, because the worker retires.
    pub(crate) fn retire(&mut self) {
        for key in self.keys(|slot| slot.state == SlotState::Parked) {
            let deadline = self.find(key).map_or(Instant::NEVER, |slot| slot.deadline);
            self.set_deadline(key, idle_until(deadline, Phase::Retiring));
        }
    }

    fn note_next(&mut self) {
        self.next = self.timer.next().unwrap_or(Instant::NEVER);
    }

    /// The longest idle connection of a sample: parked, `quiet` for its driver, and without unread input. A lingering
    /// connection comes first, because its response is sent. `None` if no connection of the sample is idle.
    pub(crate) fn longest_idle<P: Protocol>(
        &mut self,
        protocol: &P,
        quiet: impl Fn(&Slot<T, D>) -> bool,
    ) -> Option<Key> {
        let (first, next) = (protocol.first_bytes_by(), protocol.next_request_by());
        let sample = self.slots.sample_idle(|slot| {
            let idle_for = match slot.state {
                // A deadline is the start of the wait plus the protocol's limit.
                SlotState::Parked => (if slot.served { next } else { first }).since(slot.deadline),
                SlotState::Lingering { .. } => Duration::MAX,
                _ => return None,
            };
            quiet(slot).then_some(idle_for)
        });
        let is_idle = |slot: &mut Slot<T, D>| {
            slot.state != SlotState::Parked || slot.socket.as_ref().is_some_and(|socket| !socket.has_input())
        };
        sample.into_iter().find(|key| self.slots.find(*key).is_some_and(is_idle))
    }

    /// A time before which no wait ends.
    pub(crate) fn next_deadline(&self) -> Instant {
        self.next
    }

    /// Adds the connections whose deadline has passed to `due`. A timer that fired for an earlier deadline is armed
    /// again for the current deadline.
    #[inline]
    pub(crate) fn expire(&mut self, now: Instant, due: &mut Vec<Key>) {
        if self.next <= now {
            self.expire_due(now, due);
        }
    }

    fn expire_due(&mut self, now: Instant, due: &mut Vec<Key>) {
        let mut fired = std::mem::take(&mut self.fired);
        self.timer.expire(now, &mut fired);
        for index in fired.drain(..) {
            let Some(key) = self.slots.key_at(index) else { continue };
            let Some(slot) = self.slots.find(key) else { continue };
            slot.armed = Instant::NEVER;
            if slot.deadline > now {
                let deadline = slot.deadline;
                self.set_deadline(key, deadline);
            } else {
                due.push(key);
            }
        }
        self.fired = fired;
        self.note_next();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::plan::choice::TimerKind;

    /// A timer that counts calls.
    struct CountedTimer(Box<dyn Timer>, Rc<Cell<u32>>);

    impl Timer for CountedTimer {
        fn arm(&mut self, index: u32, at: Instant) {
            self.1.set(self.1.get() + 1);
            self.0.arm(index, at);
        }

        fn disarm(&mut self, index: u32) {
            self.1.set(self.1.get() + 1);
            self.0.disarm(index);
        }

        fn next(&self) -> Option<Instant> {
            self.0.next()
        }

        fn expire(&mut self, now: Instant, due: &mut Vec<u32>) {
            self.0.expire(now, due);
        }

        fn steps(&self) -> u64 {
            self.0.steps()
        }
    }

    fn one() -> (ConnectionTable<u32, ()>, Key, Rc<Cell<u32>>) {
        let count = Rc::new(Cell::new(0));
        let timer = timer::new(TimerKind::Wheel, Instant(1000));
        let mut connections = ConnectionTable::with(Box::new(CountedTimer(timer, count.clone())));
        let null = std::fs::File::open("/dev/null").expect("there is a null device");
        let key = connections.insert(std::os::fd::OwnedFd::from(null).into(), None, 0);
        (connections, key, count)
    }

    #[test]
    fn a_busy_connection_costs_one_timer_operation() {
        let (mut connections, key, count) = one();
        for request in 0..1000 {
            connections.set_deadline(key, Instant(76_000 + request));
        }
        assert_eq!(count.get(), 1);
    }

    #[test]
    fn a_wait_ends_at_its_own_deadline_and_not_at_an_earlier_one() {
        let (mut connections, key, _) = one();
        connections.set_deadline(key, Instant(10_000));
        connections.set_deadline(key, Instant(70_000));
        let mut due = Vec::new();
        connections.expire(Instant(20_000), &mut due);
        assert!(due.is_empty(), "that wait is over");
        connections.set_deadline(key, Instant(30_000));
        connections.expire(Instant(30_040), &mut due);
        assert_eq!(due, [key]);
    }
}
