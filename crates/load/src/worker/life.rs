//! The life of a worker's connections: opened, known to be connected, parted from, lost.

use std::cmp::Reverse;
use std::io;

use tenfold_sys::clock;
use tenfold_sys::connect::{ConnectOptions, Remote, connect};
use tenfold_sys::epoll::Interest;

use super::Worker;
use crate::connection::{Progress, State};
use crate::fault::{Fault, fault_of};
use crate::place::Role;

/// Connections that are begun together before their requests are sent: each call finds its code and its data in
/// the processor's caches, which made a connection 8 % cheaper. Too many would be felt in the time of a connect.
const TOGETHER: usize = 8;
/// Nanoseconds until a Unix socket is tried again whose queue is full.
const QUEUE_FULL: u64 = 1_000_000;

impl Worker<'_> {
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
        let remote = &self.share.remotes[place.remote as usize];
        let source = self.share.plan.sources.nth(place.next_source);
        place.next_source += u64::from(self.share.workers);
        let receive_buffer = (place.role == Role::SlowReader).then_some(4096);
        let (tcp_nodelay, join_ack) = (self.share.persistent, self.share.plan.join_ack);
        let options = ConnectOptions { source, tcp_nodelay, join_ack, receive_buffer };
        let is_tcp = matches!(remote, Remote::Internet(_));
        self.now = clock::monotonic();
        match connect(remote, &options) {
            Ok(socket) => {
                place.connection.connect(socket, is_tcp, self.now);
                self.shared.recorder.opened();
                self.fresh.push(number);
                if self.fresh.len() >= TOGETHER {
                    self.register_fresh();
                }
            }
            // The queue of a Unix socket is full; it can not say when it is not any more.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                place.opening = true;
                self.timers.push(Reverse((self.now + QUEUE_FULL, number)));
            }
            Err(error) => self.not_connected(number, &fault_of(&error)),
        }
    }

    /// Goes on with all connections that were just begun.
    pub(super) fn register_fresh(&mut self) {
        let mut fresh = std::mem::take(&mut self.fresh);
        for number in fresh.drain(..) {
            self.now = clock::monotonic();
            self.register(number);
        }
        self.fresh = fresh;
    }

    /// Sends at once what there is to send: on a fast way the connection is there already. Then it is watched,
    /// for room only where that has not come yet, or, where it ends with one answer, looked at in the next turn:
    /// the answer is there by then while others keep this thread busy, and epoll need not know of it at all.
    fn register(&mut self, number: u32) {
        let place = &mut self.places[number as usize];
        let mut told = place.connection.has_unsent();
        if told {
            match place.connection.flush(&mut self.shared, self.now, place.most_written(self.share)) {
                Ok(progress) => told = progress != Progress::Blocked,
                Err(error) => return self.not_connected(number, &fault_of(&error)),
            }
            if place.connection.waiting_since().is_some() {
                self.connected(number);
            }
            if told {
                self.pause(number, Role::SlowWriter);
            }
        }
        let place = &self.places[number as usize];
        let asked_once = told && !self.share.persistent && matches!(place.role, Role::Active | Role::Held);
        if asked_once && self.doubts == 0 {
            return self.hopeful.push_back((number, place.generation));
        }
        self.doubts = self.doubts.saturating_sub(1);
        self.watch(number, !told);
    }

    /// Watches a connection, for room too where that has not come yet.
    pub(super) fn watch(&mut self, number: u32, write: bool) {
        let place = &self.places[number as usize];
        let interest = Interest { read: true, write, edge: true, ..Interest::default() };
        let descriptor = place.connection.number().unwrap_or_default();
        if let Err(error) = self.epoll.add(descriptor, key(number, place.generation), interest) {
            self.lose(number, fault_of(&error));
        }
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
        place.generation = place.generation.wrapping_add(1);
        place.connection.close(&mut self.shared, self.now, None);
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
        place.generation = place.generation.wrapping_add(1);
        place.connection.close(&mut self.shared, self.now, Some(&fault));
        self.go_on(number);
    }

    /// A connection could not be made. The next try waits, longer each time, up to a second.
    pub(super) fn not_connected(&mut self, number: u32, fault: &Fault) {
        let place = &mut self.places[number as usize];
        place.generation = place.generation.wrapping_add(1);
        if place.connection.state == State::Closed {
            let count = place.connection.in_flight();
            place.connection.fail(count, &mut self.shared, self.now, fault);
            place.connection.begun = 0;
        } else {
            place.connection.close(&mut self.shared, self.now, Some(fault));
        }
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

/// What epoll gives back with an event: the place, and which of its connections.
fn key(number: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(number)
}
