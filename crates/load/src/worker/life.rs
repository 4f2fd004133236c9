//! The life of a worker's connections: opened, known to be connected, parted from, lost.

use std::cmp::Reverse;
use std::io;

use tenfold_sys::clock;
use tenfold_sys::socket::Socket;

use crate::connection::State;
use crate::connection::judge::{Fault, fault_of};
use crate::worker::backend::Backend;
use crate::worker::share::Role;
use crate::worker::state::Worker;

/// Nanoseconds until a Unix socket is tried again whose queue is full.
const QUEUE_FULL: u64 = 1_000_000;

impl<B: Backend> Worker<'_, B> {
    /// Opens a connection, at once where no schedule says otherwise.
    pub(super) fn open_in_turn(&mut self, number: u32) {
        self.places[number as usize].opening = true;
        if self.to_open.is_empty() && self.connections.take(self.now).is_some() {
            self.open(number);
        } else {
            self.to_open.push_back(number);
        }
    }

    pub(super) fn open(&mut self, number: u32) {
        let place = &mut self.places[number as usize];
        place.opening = false;
        if place.connection.state != State::Closed {
            return;
        }
        if self.share.plan.hold.is_none() {
            self.shared.recorder.record.connections.due += 1;
        }
        self.now = clock::monotonic();
        match B::open(self, number) {
            Ok(()) => {}
            // The queue of a Unix socket is full; it cannot say when it is not any more.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.places[number as usize].opening = true;
                self.timers.push(Reverse((self.now + QUEUE_FULL, number)));
            }
            Err(error) => self.not_connected(number, &fault_of(&error)),
        }
    }

    /// A connection is begun, over this socket, or over one that is not the worker's.
    pub(super) fn begun(&mut self, number: u32, socket: Option<Socket>, is_tcp: bool) {
        self.places[number as usize].connection.connect(socket, is_tcp, self.now);
        self.shared.recorder.opened();
    }

    pub(super) fn connected(&mut self, number: u32) {
        let place = &mut self.places[number as usize];
        if let State::Connecting(since) = place.connection.state {
            place.connection.state = State::Open;
            (place.failures, place.was_connected) = (0, true);
            self.shared.recorder.connected(self.now.saturating_sub(since));
        }
    }

    /// A connection is over in good order.
    pub(super) fn part(&mut self, number: u32) {
        let place = &mut self.places[number as usize];
        let in_use = !place.is_spent(self.share, self.now) && place.connection.is_persistent();
        if in_use && place.connection.in_flight() == 0 {
            self.shared.recorder.record.connections.ended_idle += 1;
        }
        place.connection.close(&mut self.shared, self.now, None);
        self.forget(number);
        self.go_on(number);
    }

    /// A connection has failed.
    pub(super) fn lose(&mut self, number: u32, fault: Fault) {
        let place = &mut self.places[number as usize];
        if place.connection.state == State::Closed {
            return;
        }
        if matches!(place.connection.state, State::Connecting(_)) {
            return self.not_connected(number, &fault);
        }
        place.connection.close(&mut self.shared, self.now, Some(&fault));
        self.forget(number);
        self.go_on(number);
    }

    /// A connection could not be made. The next try waits, longer each time, up to a second.
    pub(super) fn not_connected(&mut self, number: u32, fault: &Fault) {
        let place = &mut self.places[number as usize];
        if place.connection.state == State::Closed {
            let count = place.connection.in_flight();
            place.connection.fail(count, &mut self.shared, self.now, fault);
            place.connection.begun = 0;
        } else {
            place.connection.close(&mut self.shared, self.now, Some(fault));
        }
        self.forget(number);
        let place = &mut self.places[number as usize];
        place.failures = (place.failures + 1).min(7);
        let again = self.now + (10_000_000 << place.failures.min(6)).min(1_000_000_000);
        let role = place.role;
        self.futile += 1;
        let record = &mut self.shared.recorder.record;
        if record.connections.made == 0 && self.futile >= self.share.first_wave {
            let remote = &self.share.remotes[place.remote as usize];
            record.failure = Some(format!("connect to {remote}: {}", fault.said));
            self.next_tick = 0;
        }
        match role {
            Role::Held => self.leave(number),
            Role::Idle => {
                record.fail(fault.kind, 1, || fault.said.clone());
                place.opening = true;
                self.timers.push(Reverse((again, number)));
            }
            _ => self.timers.push(Reverse((again, number))),
        }
    }

    /// What is still heard of a place's connection is of none that it has.
    fn forget(&mut self, number: u32) {
        let place = &mut self.places[number as usize];
        place.generation = place.generation.wrapping_add(1);
        self.io.closed(number);
    }

    /// What becomes of a place whose connection is closed.
    fn go_on(&mut self, number: u32) {
        match self.places[number as usize].role {
            Role::Idle => {}
            Role::Held => self.leave(number),
            // Not from here: a server that ends every connection at once would nest calls without end.
            _ => {
                self.places[number as usize].free_since = self.now;
                self.fill_without_opening(number, usize::MAX);
                let place = &mut self.places[number as usize];
                if place.connection.has_unsent() && !place.opening {
                    place.opening = true;
                    self.to_open.push_back(number);
                }
            }
        }
    }

    /// A connection that lived for a time has had its life.
    fn leave(&mut self, number: u32) {
        let place = &mut self.places[number as usize];
        place.tell(&mut self.shared.recorder.record.connections);
        place.retire();
        self.vacant.push(number);
    }
}
