//! The parts of a tick that drivers share. Every tick begins with a reading of the clock. It ends with woken tasks,
//! connections that continue, and expired waits.

use std::future::Future;

use tenfold_http::{Instant, Peer};
use tenfold_sys::socket::Socket;

use super::connections::ConnectionTable;
use super::inbox::Inbox;
use super::slots::{Key, Slot, SlotState};
use super::tasks::Tasks;

/// The parts of a loop that a tick needs.
pub(crate) struct TickParts<'a, L: Tick + ?Sized> {
    pub(crate) connections: &'a mut ConnectionTable<L::Memory, L::Driver>,
    pub(crate) tasks: &'a mut Tasks<L::Future, L::Io, L::Kept>,
    /// Connections that are served again before the next wait.
    pub(crate) again: &'a mut Vec<Key>,
    pub(crate) inbox: &'a Inbox,
}

/// A loop that serves connections by tasks.
pub(crate) trait Tick {
    /// The protocol's state in a slot.
    type Memory: Default;
    /// The driver's state in a slot.
    type Driver: Default;
    type Future: Future;
    type Io;
    /// The part of an `Io` that stays with the loop.
    type Kept;

    fn parts(&mut self) -> TickParts<'_, Self>;

    /// Polls `task`, which serves connection `key`, and handles the result.
    fn serve_on(&mut self, key: Key, task: u32);

    /// Whether another thread has `task`; connection `key` is then woken when the task returns.
    #[inline]
    fn is_away(&mut self, _key: Key, _task: u32) -> bool {
        false
    }

    /// Continues with connection `key`, which is in `state` and has no task.
    #[inline]
    fn go_on_without_task(&mut self, _key: Key, _state: SlotState) {}

    /// Handles the deadline of connection `key`, which is in `state` and has no task.
    fn give_up(&mut self, key: Key, state: SlotState);

    /// The time until which the loop can sleep if no event occurs; `None` if there is work. `due` is the protocol's
    /// own deadline. From now on, wakers wake the loop.
    #[inline]
    fn idle_until(&mut self, due: Instant) -> Option<Instant> {
        let TickParts { connections, tasks, again, inbox } = self.parts();
        let asleep = inbox.fall_asleep(tasks.any()) && again.is_empty();
        asleep.then(|| connections.next_deadline().min(due).min(tasks.trims()))
    }

    /// Ends a tick. `woken`: whether a waker has woken the loop. `keys` is empty before and after.
    #[inline]
    fn end_tick(&mut self, woken: bool, now: Instant, keys: &mut Vec<Key>) {
        if woken {
            self.parts().inbox.take(keys);
            keys.drain(..).for_each(|key| self.woken(key));
        }
        if !self.parts().again.is_empty() {
            std::mem::swap(self.parts().again, keys);
            keys.drain(..).for_each(|key| self.once_more(key));
        }
        self.parts().connections.expire(now, keys);
        keys.drain(..).for_each(|key| self.due(key));
        self.parts().tasks.trim(now);
    }

    /// Handles a wake-up of connection `key`'s task that did not come from its socket.
    #[inline]
    fn woken(&mut self, key: Key) {
        if let Some(SlotState::Active { task }) = self.find(key)
            && !self.is_away(key, task)
        {
            self.parts().tasks.woken(task);
            self.serve_on(key, task);
        }
    }

    #[inline]
    fn once_more(&mut self, key: Key) {
        match self.find(key) {
            Some(SlotState::Active { task }) => self.serve_on(key, task),
            Some(state) => self.go_on_without_task(key, state),
            None => {}
        }
    }

    /// Handles the expired wait of connection `key`.
    #[inline]
    fn due(&mut self, key: Key) {
        match self.find(key) {
            Some(SlotState::Active { task }) => self.serve_on(key, task),
            Some(state) => self.give_up(key, state),
            None => {}
        }
    }

    /// The state of connection `key`.
    #[inline]
    fn find(&mut self, key: Key) -> Option<SlotState> {
        self.parts().connections.find(key).map(|slot| slot.state)
    }
}

/// Reads the clocks once per tick, for [`tenfold_http::clock`] of this thread.
pub(crate) fn read_clock() -> Instant {
    let (milliseconds, unix_seconds) = tenfold_sys::clock::coarse();
    let now = Instant(milliseconds);
    tenfold_http::clock::set(now, unix_seconds);
    now
}

/// The contents of a slot while a task serves its connection.
pub(crate) struct SlotContents<T> {
    pub(crate) socket: Socket,
    pub(crate) peer: Peer,
    pub(crate) listener: u16,
    pub(crate) memory: T,
}

/// Takes the resources for a task from a connection without one; the caller starts the task. `None` if the slot has no
/// socket.
#[inline]
pub(crate) fn take_up<T: Default, D>(slot: &mut Slot<T, D>) -> Option<SlotContents<T>> {
    let socket = slot.socket.take()?;
    let (peer, listener) = (slot.peer(), slot.listener);
    Some(SlotContents { socket, peer, listener, memory: std::mem::take(&mut slot.memory) })
}
