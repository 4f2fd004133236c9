//! The times at which requests and connections may begin.
//!
//! One type covers closed and open loops. Without a schedule everything may begin immediately; responses bound the
//! rate (closed loop). With a schedule, arrival times are fixed in advance whatever the server does, and each arrival
//! carries its due time.
//!
//! A schedule is the inverse of its expected number of arrivals. With `expected(t)` arrivals until `t`, the next one
//! comes when `expected` has grown by one (constant), or by an exponentially distributed number (a Poisson process,
//! also during a ramp; Lewis and Shedler 1979).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
/// A rate that may change during a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArrivalRate {
    /// Per second, at the start of the run.
    pub from: f64,
    /// Per second, at the end of the run.
    pub to: f64,
}

impl ArrivalRate {
    /// A rate that stays the same.
    pub fn constant(per_second: f64) -> ArrivalRate {
        ArrivalRate { from: per_second, to: per_second }
    }

    /// Whether it changes.
    pub fn is_ramp(&self) -> bool {
        self.from != self.to
    }

    /// Arrivals expected in the first `seconds` of a run of `length` seconds.
    pub fn expected(&self, seconds: f64, length: f64) -> f64 {
        if !self.is_ramp() {
            return self.from * seconds;
        }
        let inside = seconds.min(length);
        let slope = (self.to - self.from) / length;
        self.from * inside + slope * inside * inside / 2.0 + self.to * (seconds - inside)
    }

    /// The time in seconds at which `level` arrivals are expected; infinite if that never happens.
    fn inverse(&self, level: f64, length: f64) -> f64 {
        if level <= 0.0 {
            return 0.0;
        }
        if !self.is_ramp() {
            return level / self.from;
        }
        let whole = self.expected(length, length);
        if level > whole {
            return length + (level - whole) / self.to;
        }
        let slope = (self.to - self.from) / length;
        // This form of the quadratic's root subtracts no nearly equal numbers.
        2.0 * level / (self.from + (self.from * self.from + 2.0 * slope * level).max(0.0).sqrt())
    }
}

/// Splits the scale off a number: `10k` is 10 times 1,000, as in wrk; `M` is a million.
pub fn scaled(text: &str) -> (&str, u64) {
    for (suffix, scale) in [('k', 1_000), ('K', 1_000), ('M', 1_000_000)] {
        if let Some(digits) = text.strip_suffix(suffix) {
            return (digits, scale);
        }
    }
    (text, 1)
}

impl FromStr for ArrivalRate {
    type Err = String;

    fn from_str(text: &str) -> Result<ArrivalRate, String> {
        let number = |text: &str| {
            let (digits, scale) = scaled(text);
            let rate = digits.parse::<f64>().ok()? * scale as f64;
            (rate.is_finite() && rate >= 0.0).then_some(rate)
        };
        let (from, to) = text.split_once(':').unwrap_or((text, text));
        match (number(from), number(to)) {
            (Some(from), Some(to)) if from + to > 0.0 && from.max(to) <= 1e9 => Ok(ArrivalRate { from, to }),
            _ => {
                Err("a rate is a number above 0 per second, such as 5000 or 5k, or a ramp, such as 0:5k"
                    .into())
            }
        }
    }
}

impl fmt::Display for ArrivalRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_ramp() { write!(f, "{} to {}", self.from, self.to) } else { write!(f, "{}", self.from) }
    }
}

/// The distribution of arrivals around their rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arrivals {
    /// Evenly.
    #[default]
    Constant,
    /// Independent of each other, as requests of many users are.
    Poisson,
}

/// One of several equal shares of a schedule.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleShare {
    /// Its index, from 0.
    pub index: u32,
    /// The number of shares.
    pub of: u32,
}

/// The arrivals of one worker. Times are nanoseconds of a monotonic clock.
#[derive(Clone, Debug)]
pub struct Pacer {
    law: Pacing,
    /// The earliest time of the first arrival.
    begin: u64,
    /// The time before which every arrival is due.
    end: u64,
    left: u64,
}

#[derive(Clone, Debug)]
enum Pacing {
    Free,
    Schedule {
        next: u64,
        level: f64,
        step: f64,
        random: Option<fastrand::Rng>,
        rate: ArrivalRate,
        length: f64,
    },
}

impl Pacer {
    /// Allows `limit` arrivals without a schedule between `begin` and `end`.
    pub fn free(begin: u64, end: u64, limit: u64) -> Pacer {
        Pacer { law: Pacing::Free, begin, end, left: limit }
    }

    /// Allows arrivals at `rate`; a ramp reaches its end after `length` nanoseconds.
    pub fn scheduled(
        rate: ArrivalRate,
        arrivals: Arrivals,
        part: ScheduleShare,
        seed: u64,
        (begin, end, length): (u64, u64, u64),
        limit: u64,
    ) -> Pacer {
        let random = (arrivals == Arrivals::Poisson).then(|| {
            fastrand::Rng::with_seed(seed ^ u64::from(part.index).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        });
        let first = if random.is_some() { 0.0 } else { f64::from(part.index) };
        let law = Pacing::Schedule {
            next: 0,
            level: first,
            step: f64::from(part.of),
            random,
            rate,
            length: length as f64 / 1e9,
        };
        let mut pacer = Pacer { law, begin, end, left: limit };
        pacer.find_next(arrivals == Arrivals::Poisson);
        pacer
    }

    /// The time at which the next arrival is due, if there is one.
    #[inline]
    pub fn due(&self) -> Option<u64> {
        let at = match &self.law {
            Pacing::Free => self.begin,
            Pacing::Schedule { next, .. } => *next,
        };
        (self.left > 0 && at < self.end).then_some(at)
    }

    /// Takes one arrival that is due at `now`. Returns its due time; without a schedule, that is `now`.
    #[inline]
    pub fn take(&mut self, now: u64) -> Option<u64> {
        let at = self.due().filter(|at| *at <= now)?;
        match self.law {
            Pacing::Free if now >= self.end => None,
            Pacing::Free => {
                self.left -= 1;
                Some(now)
            }
            Pacing::Schedule { .. } => {
                self.left -= 1;
                self.find_next(true);
                Some(at)
            }
        }
    }

    /// Whether a schedule fixes the arrivals.
    #[inline]
    pub fn is_scheduled(&self) -> bool {
        matches!(self.law, Pacing::Schedule { .. })
    }

    /// The number of arrivals that are due at `now` and not taken. The first million is counted, and the rest is
    /// estimated.
    pub fn overdue(&self, now: u64) -> u64 {
        const COUNTED: u64 = 1_000_000;
        let mut ahead = self.clone();
        let counted = (0..COUNTED).take_while(|_| ahead.take(now).is_some()).count() as u64;
        match &ahead.law {
            Pacing::Schedule { level, step, rate, length, .. } if counted == COUNTED => {
                let seconds = now.min(self.end).saturating_sub(self.begin) as f64 / 1e9;
                let rest = (rate.expected(seconds, *length) - level) / step;
                counted + (rest.max(0.0) as u64).min(ahead.left)
            }
            _ => counted,
        }
    }

    fn find_next(&mut self, grow: bool) {
        let Pacing::Schedule { next, level, step, random, rate, length } = &mut self.law else { return };
        if grow {
            *level += match random {
                // 1 - f64() is above zero, so its logarithm is finite.
                Some(random) => -(1.0 - random.f64()).ln() * *step,
                None => *step,
            };
        }
        let seconds = rate.inverse(*level, *length);
        // A float that is too large or infinite becomes the largest integer, which means never.
        *next = self.begin.saturating_add((seconds * 1e9) as u64);
    }
}

#[cfg(test)]
mod tests;
