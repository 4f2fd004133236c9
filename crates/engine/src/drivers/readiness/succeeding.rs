//! Generations: connections are taken over from former workers, and handed to the next one.

use super::executor::Executor;
use super::io::ReadinessIo;
use super::reactor::Reactor;
use super::selector::Interest;
use crate::protocol::{Event, Protocol};
use crate::worker::slots::{Key, SlotState};
use crate::worker::succession::{Departing, Departures, Inherited, Quiet};
use crate::worker::tasks::Start;

impl<P, M, E> Reactor<'_, P, M, E>
where
    P: Protocol,
    M: Start<ReadinessIo, P::State>,
    E: Executor<M::Future>,
{
    /// Takes over connections of former workers. They are idle; bytes that have come since are reported.
    pub(super) fn inherit(&mut self) {
        if !self.reporting.events {
            self.heir.look();
        }
        self.heir.tell_room(self.room());
        if self.heir.pending {
            self.inherit_batch();
        }
    }

    #[cold]
    fn inherit_batch(&mut self) {
        let room = (self.connections.count(), self.plan.bounds.connections);
        for inherited in self.heir.receive(self.protocol, room) {
            let Inherited { socket, peer, listener, served, deadline, memory } = inherited;
            self.worked = true;
            self.protocol.observe(Event::TakenOver);
            let fits = self.selector.admits(socket.number());
            let socket = if fits { Some(socket) } else { socket.renumber().ok() };
            let Some(socket) = socket.filter(|socket| self.selector.admits(socket.number())) else {
                self.protocol.on_close(|| tenfold_http::Peer::Internet(peer));
                self.protocol.observe(Event::Closed);
                continue;
            };
            let number = socket.number();
            let key = self.connections.insert(socket, Some(peer), listener);
            if let Some(slot) = self.connections.find(key) {
                (slot.served, slot.memory) = (served, memory);
                slot.driver.inherited = true;
            }
            match self.listen_for(key, number, Interest::READ) {
                true => self.connections.set_deadline(key, deadline),
                false => self.close(key),
            }
        }
        if let Some(number) = self.heir.leave_if_spoiled(self.protocol) {
            self.selector.forget(number);
        }
    }
}

impl<'a, P, M, E> Departing<'a> for Reactor<'a, P, M, E>
where
    P: Protocol,
    M: Start<ReadinessIo, P::State>,
    E: Executor<M::Future>,
{
    type Protocol = P;

    fn departures(&mut self) -> &mut Departures<'a> {
        &mut self.departures
    }

    fn protocol(&self) -> &'a P {
        self.protocol
    }

    /// Bytes that have come are still in the socket.
    fn quiet(&mut self, key: Key) -> Quiet {
        let is_idle = self.connections.find(key).is_some_and(|slot| slot.state == SlotState::Parked);
        if is_idle { Quiet::Yes } else { Quiet::Never }
    }

    fn stay(&mut self, _key: Key) {}

    fn let_go(&mut self, key: Key) {
        let Some(slot) = self.connections.find(key) else { return };
        if let Some(socket) = &slot.socket {
            // The socket stays open in another process, so a close does not end the registration.
            self.selector.forget(socket.number());
        }
        self.connections.remove(key);
    }
}
