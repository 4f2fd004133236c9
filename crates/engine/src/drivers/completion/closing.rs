//! Closing: a socket is closed when no operation in flight uses it.

use std::rc::Rc;

use tenfold_http::Instant;

use super::event_loop::CompletionLoop;
use super::io::RingIo;
use super::link::RingLink;
use super::ring::OperationQueue;
use super::state::{InFlight, Past};
use super::tag::{OperationKind, tag};
use crate::drivers::farewell::send_farewell;
use crate::protocol::{Event, Protocol};
use crate::worker::eviction::MOST_LEAVING;
use crate::worker::intake::of_accepted;
use crate::worker::slots::{Key, SlotState};
use crate::worker::tasks::Start;

impl<R: OperationQueue, P: Protocol, M: Start<RingIo<R::Buffer>, P::State>> CompletionLoop<'_, R, P, M> {
    /// Submits the last bytes of connection `key` with a linked close, so that the close needs no call of its own.
    pub(super) fn close_behind(&mut self, key: Key, link: &Rc<RingLink<R::Buffer>>, by: Instant) {
        if !self.hand_over(key, link, true) {
            return self.connections_end(key);
        }
        let Some(slot) = self.connections.find(key) else { return };
        slot.driver.in_flight |= InFlight::CLOSING;
        if let Some(socket) = slot.socket.take() {
            slot.state = SlotState::Closing { number: socket.number() };
            self.ring.close(socket, tag(OperationKind::Close, key));
        }
        self.connections.set_deadline(key, by);
    }

    /// Whether a new connection needs an eviction.
    pub(super) fn is_full(&self) -> bool {
        self.connections.count() - self.leaving >= self.plan.bounds.connections
    }

    /// Serves connections that were accepted at the connection limit by evicting idle ones; refuses them if none is
    /// idle.
    pub(super) fn admit_past_bound(&mut self) {
        for (socket, peer, listener) in std::mem::take(&mut self.past_bound) {
            let evicted = if self.is_full() { self.longest_idle() } else { None };
            if evicted.is_none() && self.is_full() {
                self.protocol.observe(Event::TooMany);
                self.ring.discard(socket);
            } else if !self.protocol.admit(&of_accepted(peer)) {
                self.ring.discard(socket);
            } else {
                if let Some(key) = evicted {
                    self.evict(key);
                }
                self.begin(socket, peer, listener);
            }
        }
    }

    fn longest_idle(&mut self) -> Option<Key> {
        if self.leaving >= MOST_LEAVING {
            return None;
        }
        // Only the receive of the next request may be in flight.
        let receive = InFlight::RECEIVING | InFlight::MULTISHOT;
        self.connections.longest_idle(self.protocol, |slot| {
            slot.driver.sending == 0
                && receive.contains(slot.driver.in_flight)
                && !slot.driver.past.intersects(Past::ENDED | Past::FAILED)
        })
    }

    fn evict(&mut self, key: Key) {
        let Some(slot) = self.connections.find(key) else { return };
        slot.driver.past |= Past::EVICTED;
        self.leaving += 1;
        self.protocol.observe(Event::Evicted);
        self.send_farewell(key);
        self.close(key);
    }

    /// Sends the protocol's last bytes on connection `key`, if it is idle and has no send in flight.
    fn send_farewell(&mut self, key: Key) {
        let Some(slot) = self.connections.find(key) else { return };
        let is_leaving = slot.driver.past.contains(Past::LEAVING);
        if let Some(socket) = &slot.socket
            && (slot.state == SlotState::Parked || is_leaving)
        {
            slot.driver.past -= Past::LEAVING;
            send_farewell(self.protocol, &mut slot.memory, socket);
        }
    }

    /// Closes connection `key`, which is idle, after its sends and the protocol's last bytes, at the latest at `by`.
    pub(super) fn close_idle(&mut self, key: Key, by: Instant) {
        let Some(slot) = self.connections.find(key) else { return };
        match slot.driver.sending {
            0 => self.send_farewell(key),
            _ => slot.driver.past |= Past::LEAVING,
        }
        self.close_gently(key, by);
    }

    /// Closes connection `key` after its sends, at the latest at `by`.
    pub(super) fn close_gently(&mut self, key: Key, by: Instant) {
        let number = self.number(key);
        let Some(slot) = self.connections.find(key) else { return };
        if slot.driver.sending == 0 {
            return self.close(key);
        }
        slot.state = SlotState::Closing { number };
        self.connections.set_deadline(key, by);
    }

    /// Closes connection `key` now. This first ends the operations in flight: by `shutdown(2)`, or by a reset if unsent
    /// bytes in the socket must be discarded, because a shutdown still sends them. After lingering, only a receive is in flight.
    pub(super) fn close(&mut self, key: Key) {
        let number = self.number(key);
        let Some(slot) = self.connections.find(key) else { return };
        let naming = InFlight::RECEIVING | InFlight::POLLING | InFlight::CLOSING;
        if !slot.driver.in_flight.intersects(naming) && slot.driver.sending == 0 {
            return self.connections_end(key);
        }
        slot.state = SlotState::Closing { number };
        if slot.driver.in_flight.contains(InFlight::POLLING) {
            self.ring.cancel(number, tag(OperationKind::Poll, key), tag(OperationKind::Cancel, key));
        }
        let Some(slot) = self.connections.find(key) else { return };
        match &slot.socket {
            Some(socket) if slot.driver.past.contains(Past::RESET) => socket.reset(),
            // Its output is shut down. After a shutdown of its input, the kernel would announce no more room, and a
            // client without room would not notice the close.
            Some(_) if slot.driver.past.contains(Past::LINGERED) => self.cancel_receive(key),
            Some(socket) => socket.shut_down(),
            // The close is queued behind sends that do not complete, so they are cancelled.
            None => self.ring.cancel_all(number, tag(OperationKind::Cancel, key)),
        }
    }

    pub(super) fn close_when_done(&mut self, key: Key) {
        let Some(slot) = self.connections.find(key) else { return };
        if slot.driver.in_flight.contains(InFlight::CLOSING) {
            return;
        }
        if slot.driver.sending == 0 {
            if slot.driver.past.contains(Past::LEAVING) {
                self.send_farewell(key);
            }
            self.close(key);
        }
    }

    /// Removes connection `key`, which no operation uses any more.
    pub(super) fn connections_end(&mut self, key: Key) {
        if let Some(slot) = self.connections.find(key) {
            self.protocol.on_close(|| slot.peer());
            self.protocol.release(std::mem::take(&mut slot.memory));
            self.leaving -= usize::from(slot.driver.past.contains(Past::EVICTED));
            if let Some(socket) = slot.socket.take() {
                self.ring.discard(socket);
            }
            self.connections.remove(key);
            self.protocol.observe(Event::Closed);
        }
    }
}
