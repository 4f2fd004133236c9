//! Operations on timers. Each round fills new timers.

mod head_list;

use std::hint::black_box;
use std::time::Instant as Clock;

use fastrand::Rng;
use tenfold_engine::TimerKind;
use tenfold_engine::timer::{self, Timer};
use tenfold_http::Instant;

use crate::{Operation, Round};
use head_list::HeadList;

/// The time at the start of a round in milliseconds.
const NOW: u64 = 1_000_000;
const TIMEOUT: u64 = 75_000;

/// The timers of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timers {
    /// The timers of the server.
    Own(TimerKind),
    /// The published sorted list (T23), walked from its head.
    HeadList,
}

/// A round of an operation on `armed` timers; `None` if the operation is not about timers.
pub fn round(timers: Timers, operation: Operation, armed: u32) -> Option<Box<Round>> {
    use Operation::{AddLatest, AddRandom, AddSame, Adjust, Tick};
    let is_of_timers = matches!(operation, AddLatest | AddRandom | AddSame | Adjust | Tick);
    is_of_timers.then(|| -> Box<Round> {
        Box::new(move |random| match timers {
            Timers::Own(kind) => {
                let mut timer = timer::new(kind, Instant(NOW));
                fill(&mut *timer, armed, operation, false, random);
                (time(&mut *timer, operation, armed, random), None)
            }
            Timers::HeadList => {
                let mut list = HeadList::default();
                fill(&mut list, armed, operation, true, random);
                let before = list.steps;
                let nanoseconds = time(&mut list, operation, armed, random);
                let steps = (list.steps - before) as f64 / f64::from(operations(operation, armed));
                (nanoseconds, Some(steps))
            }
        })
    })
}

/// The nanoseconds of an operation.
fn time(timer: &mut dyn Timer, operation: Operation, armed: u32, random: &mut Rng) -> f64 {
    let count = operations(operation, armed);
    let deadlines: Vec<u64> = (0..count).map(|index| deadline(operation, index, random)).collect();
    let clock = Clock::now();
    for (index, at) in (0..count).zip(&deadlines) {
        act(black_box(&mut *timer), operation, armed, index, *at);
    }
    clock.elapsed().as_nanos() as f64 / f64::from(count)
}

/// The number of operations of a round. Walks on long lists are long, so a round has fewer of them.
fn operations(operation: Operation, armed: u32) -> u32 {
    match operation {
        Operation::AddRandom | Operation::AddLatest if armed >= 10_000 => 100,
        _ => 500.min(armed),
    }
}

fn deadline(operation: Operation, index: u32, random: &mut Rng) -> u64 {
    match operation {
        Operation::AddRandom => NOW + 10_000 + random.u64(..TIMEOUT),
        Operation::AddSame => NOW + 10_000,
        _ => NOW + 10_000 + 2 * TIMEOUT + u64::from(index),
    }
}

fn act(timer: &mut dyn Timer, operation: Operation, armed: u32, index: u32, at: u64) {
    match operation {
        Operation::Adjust => timer.arm(index, Instant(at)),
        Operation::Tick => {
            let mut due = Vec::new();
            timer.expire(Instant(NOW + u64::from(index)), &mut due);
            black_box(due.len());
        }
        _ => timer.arm(armed + index, Instant(at)),
    }
}

/// Arms timers. A list that is walked from its head gets the latest deadline first: then each walk is short, and the
/// fill is not quadratic.
fn fill(timer: &mut dyn Timer, armed: u32, operation: Operation, from_the_latest: bool, random: &mut Rng) {
    // Allocates memory for added timers, as a server does in its first minutes.
    let all = armed + operations(operation, armed);
    for index in 0..all {
        timer.arm(index, Instant(NOW));
        timer.disarm(index);
    }
    let mut deadlines: Vec<u64> = (0..armed)
        .map(|index| match operation {
            Operation::AddSame => NOW + 10_000,
            Operation::AddRandom => NOW + 10_000 + random.u64(..TIMEOUT),
            _ => NOW + 10_000 + u64::from(index) * TIMEOUT / u64::from(armed),
        })
        .collect();
    deadlines.sort_unstable();
    if from_the_latest {
        deadlines.reverse();
    }
    for (index, at) in (0..armed).zip(deadlines) {
        timer.arm(index, Instant(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_timer_does_every_operation() {
        use Operation::{AddLatest, AddRandom, AddSame, Adjust, Tick};
        for kind in TimerKind::ALL {
            for operation in [AddLatest, AddRandom, AddSame, Adjust, Tick] {
                let mut round = round(Timers::Own(*kind), operation, 100).expect("an operation of timers");
                assert!(round(&mut Rng::with_seed(1)).0 > 0.0, "{kind}, {operation:?}");
            }
        }
        assert!(round(Timers::HeadList, Operation::LogLine, 100).is_none());
    }

    #[test]
    fn a_list_walked_from_its_head_takes_steps_in_proportion() {
        let steps = |armed| {
            let mut round = round(Timers::HeadList, Operation::AddLatest, armed).expect("of timers");
            round(&mut Rng::with_seed(1)).1.expect("they are counted")
        };
        let (few, many) = (steps(1_000), steps(10_000));
        assert!(few >= 1_000.0 && many >= 10_000.0, "{few} and {many} steps for one operation");
    }
}
