//! Operations that the laboratory measures in its own process: timers, parsing and the access log.
//!
//! They are a crate of their own because code that is measured is optimised as the server is. The rest of the laboratory
//! is not.

#![forbid(unsafe_code)]

pub mod log;
pub mod parsing;
pub mod timers;

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// An operation in process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Add a timer that is the latest of all.
    AddLatest,
    /// Add a timer with a deadline at random.
    AddRandom,
    /// Add a timer with the deadline of all others.
    AddSame,
    /// Move a timer to later.
    Adjust,
    /// Look for timers that are due; none is.
    Tick,
    /// Add a line to an access log.
    LogLine,
    /// Parse the head of a small program's request.
    ParseSmall,
    /// Parse the head of a browser's request.
    ParseBrowser,
    /// Parse the head of a browser's request with 4 KB of cookies.
    ParseCookies,
}

/// Many operations. Returns the nanoseconds of one operation, and the entries that it looked at if they are counted.
pub type Round = dyn FnMut(&mut fastrand::Rng) -> (f64, Option<f64>) + Send;

/// The result of all rounds.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// Nanoseconds of an operation: the median of the rounds, since a round that another program interrupts is no round
    /// of the operation.
    pub nanoseconds: f64,
    /// Entries that an operation looked at, if they were counted.
    pub steps: Option<f64>,
    /// Seconds of all rounds.
    pub elapsed: f64,
}

impl Rounds {
    /// Repeats `round` until the time is over or `is_interrupted` returns true, at least once.
    pub fn run(round: &mut Round, time: Duration, seed: u64, is_interrupted: fn() -> bool) -> Rounds {
        let begin = Instant::now();
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut each, mut steps) = (Vec::new(), None);
        while each.is_empty() || (begin.elapsed() < time && !is_interrupted()) {
            let (nanoseconds, looked_at) = round(&mut random);
            each.push(nanoseconds);
            steps = looked_at;
        }
        each.sort_by(f64::total_cmp);
        Rounds { nanoseconds: each[each.len() / 2], steps, elapsed: begin.elapsed().as_secs_f64() }
    }
}
