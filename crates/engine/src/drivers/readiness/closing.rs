//! Closing: drops the task, discards received bytes, and closes the socket.

use tenfold_sys::socket::Socket;

use super::executor::Executor;
use super::io::ReadinessIo;
use super::reactor::Reactor;
use crate::drivers::farewell::send_farewell;
use crate::drivers::linger::{self, Discarded, TURN_CALLS, discard};
use crate::protocol::{self, Protocol};
use crate::worker::slots::{Key, SlotState};
use crate::worker::tasks::Start;

impl<P, M, E> Reactor<'_, P, M, E>
where
    P: Protocol,
    M: Start<ReadinessIo, P::State>,
    E: Executor<M::Future>,
{
    /// Closes connection `key` by dropping its task, which owns the socket.
    pub(super) fn abandon(&mut self, key: Key, task: u32) {
        let number = self.tasks.attached(task).number;
        self.selector.closing(number);
        self.tasks.end(task, None);
        self.close(key);
    }

    /// Discards received bytes of a connection whose output is shut down, and closes it at the end of its input.
    pub(super) fn linger(&mut self, key: Key) {
        let Some(slot) = self.connections.find(key) else { return };
        let (Some(socket), SlotState::Lingering { begun }) = (&slot.socket, slot.state) else { return };
        let mut calls = 0;
        while calls < TURN_CALLS {
            match discard(socket) {
                Discarded::Some => calls += 1,
                Discarded::Nothing => break,
                Discarded::Over => return self.close(key),
            }
        }
        // A level-triggered mechanism reports the rest again.
        if calls == TURN_CALLS && self.reporting.edge {
            self.again.push(key);
        }
        if calls > 0 {
            self.worked = true;
            self.connections.set_deadline(key, linger::deadline(begun, &self.plan.bounds));
        }
    }

    /// Closes connection `key`, which is idle or drained, after the protocol's last bytes if it is idle.
    pub(super) fn close_idle(&mut self, key: Key) {
        let Some(slot) = self.connections.find(key) else { return };
        if let (SlotState::Parked, Some(socket)) = (slot.state, &slot.socket) {
            send_farewell(self.protocol, &mut slot.memory, socket);
        }
        self.close(key);
    }

    /// Closes connection `key`.
    pub(super) fn close(&mut self, key: Key) {
        let Some(slot) = self.connections.find(key) else { return };
        if let Some(number) = slot.socket.as_ref().map(Socket::number) {
            self.selector.closing(number);
        }
        self.protocol.on_close(|| slot.peer());
        self.protocol.release(std::mem::take(&mut slot.memory));
        self.connections.remove(key);
        self.protocol.observe(protocol::Event::Closed);
    }
}
