//! The connections of a worker: their slots, and the timers of those that wait.

use std::net::SocketAddr;

use tenfold_http::Instant;
use tenfold_sys::socket::Socket;

use crate::slots::{Key, Slot, Slots};
use crate::timer::Wheel;

/// Slots and timers together, so that neither forgets the other.
pub(crate) struct Connections<T> {
    slots: Slots<T>,
    wheel: Wheel,
    fired: Vec<u32>,
}

impl<T: Default> Connections<T> {
    pub(crate) fn new(now: Instant) -> Connections<T> {
        Connections { slots: Slots::new(), wheel: Wheel::new(now), fired: Vec::new() }
    }

    pub(crate) fn count(&self) -> usize {
        self.slots.used()
    }

    pub(crate) fn insert(&mut self, socket: Socket, peer: Option<SocketAddr>, listener: u16) -> Key {
        self.slots.insert(socket, peer, listener)
    }

    #[inline]
    pub(crate) fn find(&mut self, key: Key) -> Option<&mut Slot<T>> {
        self.slots.find(key)
    }

    pub(crate) fn key_at(&mut self, index: u32) -> Option<Key> {
        self.slots.key_at(index)
    }

    pub(crate) fn keys(&self, wanted: impl Fn(&Slot<T>) -> bool) -> Vec<Key> {
        self.slots.keys(wanted)
    }

    /// Forgets a connection; its socket, where the slot has it, is closed.
    pub(crate) fn remove(&mut self, key: Key) {
        if let Some(slot) = self.slots.find(key) {
            if slot.armed != Instant::NEVER {
                self.wheel.disarm(key.index);
            }
            self.slots.remove(key);
        }
    }

    /// Sets when the wait of connection `key` ends. A timer is touched only where that is earlier than
    /// what is armed.
    #[inline]
    pub(crate) fn set_deadline(&mut self, key: Key, deadline: Instant) {
        let Some(slot) = self.slots.find(key) else { return };
        slot.deadline = deadline;
        if deadline < slot.armed {
            slot.armed = deadline;
            self.wheel.arm(key.index, deadline);
        }
    }

    /// A moment before which no wait ends.
    pub(crate) fn next_deadline(&self) -> Instant {
        self.wheel.next().unwrap_or(Instant::NEVER)
    }

    /// Puts into `due` the connections whose wait has ended; timers that were armed for an earlier wait
    /// are armed again for the present one.
    pub(crate) fn expire(&mut self, now: Instant, due: &mut Vec<Key>) {
        let mut fired = std::mem::take(&mut self.fired);
        self.wheel.expire(now, &mut fired);
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
    }
}
