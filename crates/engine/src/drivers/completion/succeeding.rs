//! Generations: connections are taken over from former workers, and handed to the next one.

use super::io::RingIo;
use super::proactor::CompletionLoop;
use super::ring::OperationQueue;
use super::state::{InFlight, Past};
use super::tag::{OperationKind, tag};
use crate::protocol::{Event, Protocol};
use crate::worker::slots::{Key, SlotState};
use crate::worker::succession::{Departing, Departures, Inherited, Quiet};
use crate::worker::tasks::Start;

impl<R: OperationQueue, P: Protocol, M: Start<RingIo<R::Buffer>, P::State>> CompletionLoop<'_, R, P, M> {
    /// Takes over connections of former workers, which are idle.
    #[inline]
    pub(super) fn inherit(&mut self) {
        let (count, bound) = (self.connections.count() - self.leaving, self.plan.bounds.connections);
        self.heir.tell_room(bound.saturating_sub(count));
        if self.heir.pending {
            self.inherit_batch((count, bound));
        }
    }

    #[cold]
    fn inherit_batch(&mut self, room: (usize, usize)) {
        for inherited in self.heir.receive(self.protocol, room) {
            let Inherited { socket, peer, listener, served, deadline, memory } = inherited;
            self.protocol.observe(Event::TakenOver);
            let key = self.connections.insert(socket, Some(peer), listener);
            if let Some(slot) = self.connections.find(key) {
                (slot.served, slot.memory) = (served, memory);
            }
            self.connections.set_deadline(key, deadline);
            self.receive(key);
        }
        // Another report of the descriptor is not waited for.
        self.heir.leave_if_spoiled(self.protocol);
    }

    /// Connection `key` is idle, and starts to wait for its next request unless it moves.
    pub(super) fn rest(&mut self, key: Key) {
        self.departures.rest(key);
        if !self.departures.wants_quiet() {
            self.receive(key);
        }
    }
}

impl<'a, R: OperationQueue, P: Protocol, M: Start<RingIo<R::Buffer>, P::State>> Departing<'a>
    for CompletionLoop<'a, R, P, M>
{
    type Protocol = P;

    fn departures(&mut self) -> &mut Departures<'a> {
        &mut self.departures
    }

    fn protocol(&self) -> &'a P {
        self.protocol
    }

    /// Cancels the receive and a wait for room. Bytes that have been received already are served first.
    fn quiet(&mut self, key: Key) -> Quiet {
        let number = self.number(key);
        let Some(slot) = self.connections.find(key) else { return Quiet::Never };
        if slot.state != SlotState::Parked || slot.driver.past.intersects(Past::ENDED | Past::FAILED) {
            return Quiet::Never;
        }
        let in_flight = slot.driver.in_flight;
        if in_flight == InFlight::default() && slot.driver.sending == 0 {
            return Quiet::Yes;
        }
        // A mechanism may cancel the sends of a socket with its receive, so these come first.
        let waits = InFlight::RECEIVING | InFlight::MULTISHOT | InFlight::POLLING;
        if waits.contains(in_flight) && slot.driver.sending == 0 {
            slot.driver.begin(InFlight::CANCELLING);
            for (flag, kind) in
                [(InFlight::RECEIVING, OperationKind::Receive), (InFlight::POLLING, OperationKind::Poll)]
            {
                if in_flight.intersects(flag) {
                    self.ring.cancel(number, tag(kind, key), tag(OperationKind::Cancel, key));
                }
            }
        }
        Quiet::Soon
    }

    fn stay(&mut self, key: Key) {
        if self.connections.find(key).is_some_and(|slot| slot.state == SlotState::Parked) {
            self.receive(key);
        }
    }

    fn let_go(&mut self, key: Key) {
        let Some(slot) = self.connections.find(key) else { return };
        if let Some(socket) = slot.socket.take() {
            self.ring.discard(socket);
        }
        self.connections.remove(key);
    }
}
