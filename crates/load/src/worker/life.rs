//! The life of a worker's connections: connect, use, close, failure, timers.

use std::cmp::Reverse;
use std::io;

use tenfold_sys::clock;
use tenfold_sys::socket::Socket;

use crate::connection::judge::{ExchangeError, exchange_error};
use crate::connection::{ConnectionState, IoProgress};
use crate::measure::record::ErrorKind;
use crate::worker::backend::Backend;
use crate::worker::share::{Role, SLOW_STEPS};
use crate::worker::state::LoadWorker;

/// Nanoseconds before a connect to a Unix socket with a full queue is retried.
const QUEUE_FULL: u64 = 1_000_000;

impl<B: Backend> LoadWorker<'_, B> {
    /// Opens a connection, immediately unless a schedule delays it.
    pub(super) fn open_in_turn(&mut self, number: u32) {
        self.slots[number as usize].opening = true;
        if self.to_open.is_empty() && self.connections.take(self.now).is_some() {
            self.open(number);
        } else {
            self.to_open.push_back(number);
        }
    }

    pub(super) fn open(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        slot.opening = false;
        if slot.connection.state != ConnectionState::Closed {
            return;
        }
        if self.share.plan.hold.is_none() {
            self.context.recorder.record.connections.due += 1;
        }
        self.now = clock::monotonic();
        match B::open(self, number) {
            Ok(()) => {}
            // A Unix socket does not report that its queue has room again.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.slots[number as usize].opening = true;
                self.timers.push(Reverse((self.now + QUEUE_FULL, number)));
            }
            Err(error) => self.not_connected(number, &exchange_error(&error)),
        }
    }

    /// Records the start of a connect. `socket` is `None` if a ring owns it.
    pub(super) fn connect_begun(&mut self, number: u32, socket: Option<Socket>, skips: bool) {
        let version = self.share.plan.version;
        self.slots[number as usize].connection.connect(socket, version, skips, self.now);
        self.context.recorder.opened();
    }

    /// Records an established connection, and with TLS begins the handshake.
    pub(super) fn connected(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        let ConnectionState::Connecting(since) = slot.connection.state else { return };
        self.context.recorder.connected(self.now.saturating_sub(since));
        match &self.share.tls[slot.remote as usize] {
            None => self.opened(number),
            Some(target) => {
                if let Err(error) = slot.connection.begin_handshake(target, self.now) {
                    self.not_connected(number, &error);
                }
            }
        }
    }

    /// Ends a handshake. Returns whether the connection is open.
    pub(super) fn end_handshake(&mut self, number: u32, since: u64) -> bool {
        let Some((cipher, resumed)) = self.slots[number as usize].connection.handshake_result() else {
            return false;
        };
        self.now = clock::monotonic();
        if let Err(error) = self.slots[number as usize].connection.check_protocol() {
            self.not_connected(number, &error);
            return false;
        }
        self.context.recorder.handshake_done(self.now.saturating_sub(since), cipher, resumed);
        self.opened(number);
        true
    }

    fn opened(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        slot.connection.state = ConnectionState::Open;
        (slot.failures, slot.was_connected) = (0, true);
        self.context.recorder.record.connections.made += 1;
    }

    /// Closes a connection that ended normally.
    pub(super) fn close_finished(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        let in_use = !slot.is_spent(self.share, self.now) && slot.connection.is_persistent();
        if in_use && slot.connection.in_flight() == 0 {
            self.context.recorder.record.connections.ended_idle += 1;
        }
        slot.connection.close(&mut self.context, self.now, None);
        self.forget_events(number);
        self.reuse_slot(number);
    }

    /// Closes a connection that failed.
    pub(super) fn close_failed(&mut self, number: u32, error: ExchangeError) {
        let slot = &mut self.slots[number as usize];
        if slot.connection.state == ConnectionState::Closed {
            return;
        }
        if slot.connection.state != ConnectionState::Open {
            return self.not_connected(number, &error);
        }
        if matches!(error.kind, ErrorKind::NoHttp2 | ErrorKind::HeadLimit) {
            // The connection is established only with SETTINGS of the server that allow its requests.
            self.context.recorder.record.connections.made -= 1;
            return self.not_connected(number, &error);
        }
        slot.connection.close(&mut self.context, self.now, Some(&error));
        self.forget_events(number);
        self.reuse_slot(number);
    }

    /// Handles a failed connect. The delay before the next attempt grows up to a second.
    pub(super) fn not_connected(&mut self, number: u32, error: &ExchangeError) {
        let slot = &mut self.slots[number as usize];
        if slot.connection.state == ConnectionState::Closed {
            let count = slot.connection.in_flight();
            slot.connection.fail(count, &mut self.context, self.now, error);
            slot.connection.begun = 0;
        } else {
            slot.connection.close(&mut self.context, self.now, Some(error));
        }
        self.forget_events(number);
        let slot = &mut self.slots[number as usize];
        slot.failures = (slot.failures + 1).min(7);
        let again = self.now + (10_000_000 << slot.failures.min(6)).min(1_000_000_000);
        let role = slot.role;
        self.failed_connects += 1;
        let record = &mut self.context.recorder.record;
        if record.connections.made == 0 && self.failed_connects >= self.share.first_wave {
            let remote = &self.share.remotes[slot.remote as usize];
            record.failure = Some(format!("cannot connect to {remote}: {}", error.message));
            self.next_tick = 0;
        }
        match role {
            Role::Held => self.vacate(number),
            Role::Idle => {
                record.fail(error.kind, 1, || error.message.clone());
                slot.opening = true;
                self.timers.push(Reverse((again, number)));
            }
            _ => self.timers.push(Reverse((again, number))),
        }
    }

    /// Ignores later events of the slot's former connection.
    fn forget_events(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        slot.epoch = slot.epoch.wrapping_add(1);
        self.io.closed(number);
    }

    /// Continues with a slot whose connection is closed.
    fn reuse_slot(&mut self, number: u32) {
        match self.slots[number as usize].role {
            Role::Idle => {}
            Role::Held => self.vacate(number),
            // The connect is deferred: a server that closes every connection immediately would cause unbounded
            // recursion.
            _ => {
                self.slots[number as usize].free_since = self.now;
                self.fill_without_opening(number, usize::MAX);
                let slot = &mut self.slots[number as usize];
                if slot.connection.has_unsent() && !slot.opening {
                    slot.opening = true;
                    self.to_open.push_back(number);
                }
            }
        }
    }

    /// Vacates the slot of a connection whose lifetime is over.
    fn vacate(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        slot.add_to(&mut self.context.recorder.record.connections);
        slot.retire();
        self.vacant.push(number);
    }

    /// Handles the result of a receive. Returns whether the connection continues.
    #[inline]
    pub(super) fn received(&mut self, number: u32, result: Result<IoProgress, ExchangeError>) -> bool {
        let slot = &mut self.slots[number as usize];
        match result {
            Ok(IoProgress::Over) => self.close_finished(number),
            Ok(_) if slot.is_spent(self.share, self.now) => self.close_finished(number),
            Ok(_) => {
                slot.free_since = self.now;
                self.fill(number, usize::MAX);
                return true;
            }
            Err(error) => self.close_failed(number, error),
        }
        false
    }

    /// Whether the connection of this epoch is open.
    pub(super) fn is_open(&self, number: u32, epoch: u32) -> bool {
        let slot = &self.slots[number as usize];
        slot.epoch == epoch && slot.connection.state == ConnectionState::Open
    }

    /// Pauses a slow connection.
    pub(super) fn pause_slow(&mut self, number: u32) {
        self.slots[number as usize].paused = true;
        self.timers.push(Reverse((self.now + 1_000_000_000 / SLOW_STEPS, number)));
    }

    /// Handles the timer of a slot: a connect, a slow connection, the next request, or the end of a lifetime.
    pub(super) fn on_timer(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        if std::mem::take(&mut slot.paused) {
            return B::resume(self, number);
        }
        if std::mem::take(&mut slot.opening) {
            return self.open_in_turn(number);
        }
        if slot.role == Role::Held && self.now >= slot.until && slot.until > 0 {
            if slot.connection.in_flight() == 0 {
                self.close_finished(number);
            }
            return;
        }
        slot.free_since = self.now;
        self.fill(number, usize::MAX);
    }
}
