//! `busy`: no readiness call. The loop tries the call of each connection in every tick, and sleeps for a set time after
//! a tick without work.
//!
//! Without the sleep, the loop uses a whole processor; a long sleep delays every request.
//!
//! System calls of a tick: accept4 on every listener, recv (or send) on every connection, and clock_nanosleep after a
//! tick without work.
//!
//! Loop: `crates/engine/src/drivers/readiness/reactor.rs`. Page: `docs/explanation/models/busy.md`.

use std::io;
use std::os::fd::RawFd;
use std::thread;
use std::time::Duration;

use tenfold_sys::readiness::Ready;

use crate::drivers::readiness::selector::{Interest, Reporting, Selector};
use crate::drivers::readiness::serve;
use crate::plan::Plan;
use crate::protocol::Protocol;
use crate::worker::intake::Intake;

const NOWHERE: u32 = u32::MAX;

struct BusySelector {
    /// The descriptors of each tick, with word and interest.
    entries: Vec<(RawFd, u64, Interest)>,
    /// By descriptor: its index among the entries.
    places: Vec<u32>,
    sleep: Duration,
    worked: bool,
}

/// Serves until the server leaves.
pub(crate) fn run<P: Protocol>(plan: &Plan, intake: &Intake<'_>, protocol: &P) -> Result<(), String> {
    let (entries, places, sleep) = (Vec::new(), Vec::new(), plan.bounds.busy_sleep);
    serve(Box::new(BusySelector { entries, places, sleep, worked: false }), plan, intake, protocol)
}

impl Selector for BusySelector {
    fn reporting(&self) -> Reporting {
        Reporting { errors: false, events: false, ..Reporting::default() }
    }

    fn watch_event(&mut self, _number: RawFd, _word: u64) -> io::Result<()> {
        // Every tick tries all descriptors, so there is no registration.
        Ok(())
    }

    fn watch(&mut self, number: RawFd, word: u64, interest: Interest) -> io::Result<()> {
        let index = usize::try_from(number).map_err(io::Error::other)?;
        if self.places.len() <= index {
            self.places.resize(index + 1, NOWHERE);
        }
        match self.places[index] {
            NOWHERE => {
                self.places[index] = self.entries.len() as u32;
                self.entries.push((number, word, interest));
            }
            place => self.entries[place as usize] = (number, word, interest),
        }
        Ok(())
    }

    fn forget(&mut self, number: RawFd) {
        let Some(place) = usize::try_from(number).ok().and_then(|index| self.places.get_mut(index)) else {
            return;
        };
        let place = std::mem::replace(place, NOWHERE) as usize;
        if place < self.entries.len() {
            self.entries.swap_remove(place);
            if let Some(&(moved, ..)) = self.entries.get(place) {
                self.places[moved as usize] = place as u32;
            }
        }
    }

    fn turn_over(&mut self, worked: bool) {
        self.worked = worked;
    }

    fn wait(&mut self, milliseconds: Option<u32>, events: &mut Vec<Ready>) -> io::Result<()> {
        if !self.worked && milliseconds != Some(0) && !self.sleep.is_zero() {
            thread::sleep(self.sleep);
        }
        let all = self.entries.iter().filter(|(.., interest)| *interest != Interest::NONE);
        let ready = |&(_, key, Interest { read, write })| Ready { key, read, write, ..Ready::default() };
        events.extend(all.map(ready));
        Ok(())
    }
}
