//! Operations that the laboratory measures in its own process: timers, parsing and the access log.
//!
//! They are a separate crate, so that measured code is optimised as the server, and the laboratory is not.

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
    /// Add a timer with the latest deadline.
    AddLatest,
    /// Add a timer with a random deadline.
    AddRandom,
    /// Add a timer with the same deadline as all others.
    AddSame,
    /// Move a timer to a later deadline: an eager update.
    Adjust,
    /// Store a later deadline, and arm the timer only for an earlier one: the lazy update of the server.
    AdjustLazily,
    /// Look for due timers, of which there are none.
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

/// Many operations. Returns the nanoseconds of one operation and, if they are counted, the entries that it visited.
pub type Round = dyn FnMut(&mut fastrand::Rng) -> (f64, Option<f64>) + Send;

/// The result of all rounds.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// Nanoseconds of an operation: the median of the rounds, because other programs interrupt some rounds.
    pub nanoseconds: f64,
    /// Entries that an operation visited, if they were counted.
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
