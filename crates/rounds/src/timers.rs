//! Operations on timers. Each round fills new timers.

mod head_list;
mod heap;
mod hierarchical;

use std::hint::black_box;
use std::str::FromStr;
use std::time::Instant as Clock;

use fastrand::Rng;
use tenfold_engine::TimerKind;
use tenfold_engine::timer::{self, Timer};
use tenfold_http::Instant;

use crate::{Operation, Round};
use head_list::HeadList;
use heap::Heap;
use hierarchical::Hierarchical;

/// The time at the start of a round in milliseconds.
const NOW: u64 = 1_000_000;
const TIMEOUT: u64 = 75_000;

/// The timers of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timers {
    /// The timers of the server.
    Own(TimerKind),
    /// A binary heap.
    Heap,
    /// Wheels of wheels: a bucket of each level is a turn of the level below.
    Hierarchical,
    /// The published sorted list (T23), walked from its head.
    HeadList,
}

impl FromStr for Timers {
    type Err = String;

    fn from_str(word: &str) -> Result<Timers, String> {
        match word {
            "heap" => Ok(Timers::Heap),
            "hierarchical" => Ok(Timers::Hierarchical),
            _ => word.parse().map(Timers::Own).map_err(|why: String| format!("{why}, heap, hierarchical")),
        }
    }
}

/// A round of an operation on `armed` timers; `None` if the operation is not about timers.
pub fn round(timers: Timers, operation: Operation, armed: u32) -> Option<Box<Round>> {
    use Operation::{AddLatest, AddRandom, AddSame, Adjust, AdjustLazily, Tick};
    let is_of_timers = matches!(operation, AddLatest | AddRandom | AddSame | Adjust | AdjustLazily | Tick);
    is_of_timers.then(|| -> Box<Round> {
        Box::new(move |random| {
            let mut list = HeadList::default();
            let mut timer: Box<dyn Timer> = match timers {
                Timers::Own(kind) => timer::new(kind, Instant(NOW)),
                Timers::Heap => Box::new(Heap::default()),
                Timers::Hierarchical => Box::new(Hierarchical::new(Instant(NOW))),
                Timers::HeadList => {
                    fill(&mut list, armed, operation, true, random);
                    let before = list.steps;
                    let nanoseconds = time(&mut list, operation, armed, random);
                    let steps = (list.steps - before) as f64 / f64::from(operations(operation, armed));
                    return (nanoseconds, Some(steps));
                }
            };
            fill(&mut *timer, armed, operation, false, random);
            (time(&mut *timer, operation, armed, random), None)
        })
    })
}

/// The nanoseconds of an operation.
fn time(timer: &mut dyn Timer, operation: Operation, armed: u32, random: &mut Rng) -> f64 {
    let count = operations(operation, armed);
    let deadlines: Vec<u64> = (0..count).map(|index| deadline(operation, index, random)).collect();
    // The deadline of each connection, and the time for which its timer is armed.
    let mut records = vec![(NOW, NOW); count as usize];
    let clock = Clock::now();
    for (index, at) in (0..count).zip(&deadlines) {
        match operation {
            Operation::AdjustLazily => {
                let (deadline, armed_for) = black_box(&mut records[index as usize]);
                *deadline = *at;
                if at < armed_for {
                    timer.arm(index, Instant(*at));
                }
            }
            _ => act(black_box(&mut *timer), operation, armed, index, *at),
        }
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
    use tenfold_engine::timer::TICK;

    use super::*;

    #[test]
    fn every_timer_does_every_operation() {
        use Operation::{AddLatest, AddRandom, AddSame, Adjust, AdjustLazily, Tick};
        for word in ["list", "wheel", "heap", "hierarchical"] {
            let timers = word.parse().expect(word);
            for operation in [AddLatest, AddRandom, AddSame, Adjust, AdjustLazily, Tick] {
                let mut round = round(timers, operation, 100).expect("an operation of timers");
                assert!(round(&mut Rng::with_seed(1)).0 > 0.0, "{word}, {operation:?}");
            }
        }
        assert!(
            "sundial"
                .parse::<Timers>()
                .expect_err("no timer")
                .ends_with("there are list, wheel, heap, hierarchical")
        );
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

    #[test]
    fn the_heap_and_the_hierarchical_wheels_fire_as_the_list_does() {
        for seed in 1..20 {
            let mut random = Rng::with_seed(seed);
            let mut now = random.u64(TICK..1 << 40) / TICK * TICK;
            let mut timers: [Box<dyn Timer>; 3] = [
                timer::new(TimerKind::List, Instant(now)),
                Box::new(Heap::default()),
                Box::new(Hierarchical::new(Instant(now))),
            ];
            for _ in 0..1500 {
                let index = random.u32(..64);
                match random.u32(..8) {
                    0 => timers.iter_mut().for_each(|timer| timer.disarm(index)),
                    1 | 2 => {
                        let longest = [500, 500, 200_000, 1 << 32][random.usize(..4)];
                        // All agree at the begin of a tick.
                        now = (now + random.u64(..longest)) / TICK * TICK;
                        let due = timers.each_mut().map(|timer| {
                            let mut due = Vec::new();
                            timer.expire(Instant(now), &mut due);
                            due.sort_unstable();
                            due
                        });
                        assert!(due.iter().all(|one| *one == due[0]), "seed {seed}: {due:?}");
                    }
                    turn => {
                        let longest = if turn == 3 { 1 << 34 } else { 150_000 };
                        let at = Instant(now + 1 + random.u64(..longest));
                        timers.iter_mut().for_each(|timer| timer.arm(index, at));
                    }
                }
                let next = timers.each_ref().map(|timer| timer.next());
                assert_eq!(next[0], next[1], "seed {seed}");
                let latest = next[0].map(|at| at.0.max(now) + TICK);
                assert!(
                    next[2].map(|at| at.0) <= latest && next[2].is_some() == latest.is_some(),
                    "seed {seed}"
                );
            }
        }
    }
}
