//! The cost of each timer structure: `cargo run --release -p tenfold-engine --example timers`.
//!
//! Nanoseconds of an operation, the median of several rounds and how far rounds lie apart, for a server
//! with so many connections: a deadline that is the latest of all (a new connection), one that is anywhere
//! (several timeouts), one moved to later (a request on a connection that rests), one dropped, and a look
//! per millisecond as long as nothing is due.

use std::hint::black_box;
use std::time;

use tenfold_engine::TimerKind;
use tenfold_engine::timer::{Timer, new};
use tenfold_http::Instant;

const SIZES: [u32; 3] = [1_000, 10_000, 100_000];
const ROUNDS: usize = 15;
/// Operations of a round.
const OPERATIONS: u32 = 2_000;
const NOW: u64 = 1_000_000;
const TIMEOUT: u64 = 75_000;

/// An operation under measurement, with the number of the connection and a random number.
type Operation = fn(&mut dyn Timer, u32, u64);

const OPERATION_TABLE: &[(&str, Operation)] = &[
    ("add latest", |timer, index, _| timer.arm(index, Instant(NOW + 2 * TIMEOUT + u64::from(index)))),
    ("add anywhere", |timer, index, random| timer.arm(index, Instant(NOW + 10_000 + random % TIMEOUT))),
    ("adjust", |timer, index, _| timer.arm(index, Instant(NOW + 2 * TIMEOUT + u64::from(index)))),
    ("drop", |timer, index, _| timer.disarm(index)),
    ("tick", |timer, index, _| {
        let mut due = Vec::new();
        timer.expire(Instant(NOW + u64::from(index) % 1000), &mut due);
        black_box((timer.next(), due.len()));
    }),
];

fn main() {
    println!("nanoseconds of an operation: median of {ROUNDS} rounds (least to most), on{}\n", processor());
    print!("{:<14} {:>8}", "timer", "armed");
    OPERATION_TABLE.iter().for_each(|(name, _)| print!(" {name:>24}"));
    println!();
    for &kind in TimerKind::ALL {
        for armed in SIZES {
            print!("{:<14} {armed:>8}", kind.to_string());
            for (name, operation) in OPERATION_TABLE {
                // An added timer is new; a moved or dropped one existed before.
                let first = if name.starts_with("add") { armed } else { armed / 2 };
                let mut rounds: Vec<_> =
                    (0..ROUNDS).map(|round| measure(kind, armed, first, round, *operation)).collect();
                rounds.sort_by(f64::total_cmp);
                let (least, middle, most) = (rounds[0], rounds[ROUNDS / 2], rounds[ROUNDS - 1]);
                print!(" {:>24}", format!("{middle:.1} ({least:.1} to {most:.1})"));
            }
            println!();
        }
    }
}

/// Returns the kernel's name of the processor.
fn processor() -> String {
    let facts = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = facts.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| " this machine".to_owned(), |(_, name)| name.to_owned())
}

/// Nanoseconds of an operation in one round, on a timer of its own that holds `armed` deadlines.
fn measure(kind: TimerKind, armed: u32, first: u32, round: usize, operation: Operation) -> f64 {
    let mut timer = new(kind, Instant(NOW));
    // Memory for those that are added is there, as it is on a server that has run for a while.
    (0..armed + OPERATIONS).for_each(|index| timer.arm(index, Instant(NOW + u64::from(index))));
    (0..armed + OPERATIONS).for_each(|index| timer.disarm(index));
    for index in 0..armed {
        timer.arm(index, Instant(NOW + 10_000 + u64::from(index) * TIMEOUT / u64::from(armed)));
    }
    let count = OPERATIONS.min(armed / 2);
    let mut random = 0x9e37_79b9_7f4a_7c15 ^ round as u64;
    let begin = time::Instant::now();
    for index in first..first + count {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        operation(black_box(&mut *timer), index, random);
    }
    begin.elapsed().as_nanos() as f64 / f64::from(count)
}
