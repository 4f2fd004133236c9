//! What follows from what went through a worker's connections, and what a timer says.

use std::cmp::Reverse;

use crate::connection::judge::Fault;
use crate::connection::{Progress, State};
use crate::worker::backend::Backend;
use crate::worker::share::{Role, SLOW_STEPS};
use crate::worker::state::Worker;

impl<B: Backend> Worker<'_, B> {
    /// A connection has received something, or its end. Says whether it goes on.
    #[inline]
    pub(super) fn received(&mut self, number: u32, result: Result<Progress, Fault>) -> bool {
        let place = &mut self.places[number as usize];
        match result {
            Ok(Progress::Over) => self.part(number),
            Ok(_) if place.is_spent(self.share, self.now) => self.part(number),
            Ok(_) => {
                place.free_since = self.now;
                self.fill(number, usize::MAX);
                return true;
            }
            Err(fault) => self.lose(number, fault),
        }
        false
    }

    /// Whether a place has this connection, and it is open.
    pub(super) fn is_open(&self, number: u32, generation: u32) -> bool {
        let place = &self.places[number as usize];
        place.generation == generation && place.connection.state == State::Open
    }

    /// A slow connection rests for a while.
    pub(super) fn rest(&mut self, number: u32) {
        self.places[number as usize].paused = true;
        self.timers.push(Reverse((self.now + 1_000_000_000 / SLOW_STEPS, number)));
    }

    /// Whatever a place waits for in time: to connect again, to go on slowly, its next request, its end.
    pub(super) fn on_timer(&mut self, number: u32) {
        let place = &mut self.places[number as usize];
        if std::mem::take(&mut place.paused) {
            return B::resume(self, number);
        }
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
