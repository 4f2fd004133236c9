//! When the next thing may begin: a request, or a connection.
//!
//! One type for every law. Without a schedule it lets everything begin at once (a closed loop: who asks is
//! bounded by what is answered). With one, arrivals are fixed before the first is sent, whatever the server
//! does, and each one carries the time that it was due at.
//!
//! A schedule is the inverse of its expected number of arrivals: with `expected(t)` arrivals until `t`, the
//! next one comes when `expected` has grown by one (constant), or by a number drawn from the exponential
//! distribution (a Poisson process; the time change makes it one at any ramp, Lewis and Shedler 1979).

use std::fmt;
use std::str::FromStr;

/// A rate that may change in the course of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArrivalRate {
    /// Per second, at the begin.
    pub from: f64,
    /// Per second, at the end of the run.
    pub to: f64,
}

impl ArrivalRate {
    /// One that stays as it is.
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

    /// The time at which so many arrivals are expected, in seconds; infinite where that never happens.
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
        // The form of the quadratic's root that cancels nothing.
        2.0 * level / (self.from + (self.from * self.from + 2.0 * slope * level).max(0.0).sqrt())
    }
}

impl FromStr for ArrivalRate {
    type Err = String;

    fn from_str(text: &str) -> Result<ArrivalRate, String> {
        let number = |text: &str| text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate >= 0.0);
        let (from, to) = text.split_once(':').unwrap_or((text, text));
        match (number(from), number(to)) {
            (Some(from), Some(to)) if from + to > 0.0 && from.max(to) <= 1e9 => Ok(ArrivalRate { from, to }),
            _ => {
                Err("a rate is a number above 0 per second, as in 5000, or two for a ramp, as in 0:5000"
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

/// How arrivals are spread around their rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrivals {
    /// Evenly.
    #[default]
    Constant,
    /// Independently of each other, as of many people.
    Poisson,
}

/// Which part of a schedule a pacer has: that of one of several who share it.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleShare {
    /// Its place, from 0.
    pub index: u32,
    /// How many share it.
    pub of: u32,
}

/// When the next thing may begin. Times are nanoseconds of any clock that goes on.
#[derive(Clone, Debug)]
pub struct Pacer {
    law: Pacing,
    /// Nothing is due before.
    begin: u64,
    /// Nothing is due at this time or after it.
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
    /// Lets everything begin at once, `limit` times, between `begin` and `end`.
    pub fn free(begin: u64, end: u64, limit: u64) -> Pacer {
        Pacer { law: Pacing::Free, begin, end, left: limit }
    }

    /// Lets things begin at `rate`; a ramp reaches its end after `length` nanoseconds.
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

    /// When the next one is due; none when there is none any more.
    #[inline]
    pub fn due(&self) -> Option<u64> {
        let at = match &self.law {
            Pacing::Free => self.begin,
            Pacing::Schedule { next, .. } => *next,
        };
        (self.left > 0 && at < self.end).then_some(at)
    }

    /// Lets one begin that is due at `now`, and says when it was due: without a schedule, now.
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

    /// Whether things are due by a schedule, whatever became of those before.
    #[inline]
    pub fn is_scheduled(&self) -> bool {
        matches!(self.law, Pacing::Schedule { .. })
    }

    /// How many are due at `now` and have not begun. The first million is counted, which takes a moment;
    /// of a rate that leaves more behind, what is expected behind those is added.
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
                // 1 - f64() is above zero, and its logarithm finite.
                Some(random) => -(1.0 - random.f64()).ln() * *step,
                None => *step,
            };
        }
        let seconds = rate.inverse(*level, *length);
        // A float that is too large, or infinite, becomes the greatest number: never.
        *next = self.begin.saturating_add((seconds * 1e9) as u64);
    }
}

#[cfg(test)]
mod tests;
