//! What goes through a worker's connections, when it can, and when a timer says so.

use std::cmp::Reverse;

use tenfold_sys::clock;
use tenfold_sys::readiness::Ready;

use super::Worker;
use crate::connection::{Progress, State};
use crate::fault::fault_of;
use crate::place::{Role, SLOW_STEPS};

/// Connections that are watched at once after one whose answer was looked for too early.
const DOUBTS: u32 = 15;

impl Worker<'_> {
    #[inline]
    pub(super) fn on_ready(&mut self, ready: &Ready) {
        let number = ready.key as u32;
        let place = &mut self.places[number as usize];
        if place.generation != (ready.key >> 32) as u32 {
            return;
        }
        if place.connection.state != State::Open {
            self.now = clock::monotonic();
            match place.connection.connect_error() {
                Ok(()) if ready.write || ready.read => self.connected(number),
                Ok(()) => return,
                Err(error) => return self.not_connected(number, &fault_of(&error)),
            }
        }
        let place = &mut self.places[number as usize];
        if ready.write && place.connection.has_unsent() {
            self.flush(number);
        }
        if ready.read {
            self.receive(number, ready.ended || ready.gone || ready.error);
        }
    }

    pub(super) fn flush(&mut self, number: u32) {
        let place = &mut self.places[number as usize];
        if place.paused && place.role == Role::SlowWriter {
            return;
        }
        let most = place.most_written(self.share);
        match place.connection.flush(&mut self.shared, self.now, most) {
            Ok(_) => self.pause(number, Role::SlowWriter),
            Err(error) => {
                // What the server said before it hung up counts first.
                self.receive(number, true);
                self.lose(number, fault_of(&error));
            }
        }
    }

    #[inline]
    pub(super) fn receive(&mut self, number: u32, ended: bool) {
        let place = &mut self.places[number as usize];
        if place.paused && place.role == Role::SlowReader {
            place.end_seen |= ended;
            return;
        }
        let most = place.most_read(self.share);
        match place.connection.receive(&mut self.shared, &mut self.now, ended, most) {
            Ok(Progress::Over) => self.part(number),
            Ok(Progress::Limited) => self.pause(number, Role::SlowReader),
            Ok(_) if place.is_spent(self.share, self.now) => self.part(number),
            Ok(_) => {
                place.free_since = self.now;
                self.fill(number, usize::MAX);
                self.pause(number, Role::SlowReader);
            }
            Err(fault) => self.lose(number, fault),
        }
    }

    /// Receives from connections that are not watched: while others were begun, their answers came. One that
    /// has none yet is watched from now on, and so are the next ones.
    pub(super) fn receive_unwatched(&mut self) {
        for _ in 0..self.hopeful.len() {
            let Some((number, generation)) = self.hopeful.pop_front() else { break };
            if !self.goes_on(number, generation) {
                continue;
            }
            self.receive(number, false);
            if self.goes_on(number, generation) {
                self.doubts = DOUBTS;
                self.watch(number, false);
            }
        }
    }

    fn goes_on(&self, number: u32, generation: u32) -> bool {
        let place = &self.places[number as usize];
        place.generation == generation && place.connection.state == State::Open
    }

    /// A slow connection goes on a little later.
    pub(super) fn pause(&mut self, number: u32, role: Role) {
        let place = &mut self.places[number as usize];
        if place.role == role {
            place.paused = true;
            self.timers.push(Reverse((self.now + 1_000_000_000 / SLOW_STEPS, number)));
        }
    }

    /// Whatever a place waits for in time: to connect again, to go on slowly, its next request, its end.
    pub(super) fn on_timer(&mut self, number: u32) {
        let place = &mut self.places[number as usize];
        if std::mem::take(&mut place.paused) {
            match place.role {
                Role::SlowWriter => self.flush(number),
                _ => {
                    let ended = place.end_seen;
                    self.receive(number, ended);
                }
            }
            return;
        }
        let place = &mut self.places[number as usize];
        if std::mem::take(&mut place.opening) {
            return self.open_in_turn(number);
        }
        if place.role == Role::Held && self.now >= place.until && place.until > 0 {
            if place.connection.in_flight() == 0 {
                self.part(number);
            }
            return;
        }
        place.free_since = self.now;
        self.fill(number, usize::MAX);
    }
}
