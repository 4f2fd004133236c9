//! What happened: what a worker writes down while it runs, and what is added up afterwards.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::measure::histogram::Counts;
use crate::measure::statistics::FairnessSums;

macro_rules! error_kinds {
    ($($kind:ident = $name:literal, $about:literal;)+) => {
        /// Why a request, or a connection, failed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum ErrorKind { $(#[doc = $about] $kind),+ }

        impl ErrorKind {
            /// All of them.
            pub const ALL: &[ErrorKind] = &[$(ErrorKind::$kind),+];

            /// As it is written.
            pub fn name(self) -> &'static str {
                match self { $(ErrorKind::$kind => $name),+ }
            }
        }
    };
}

error_kinds! {
    Refused = "refused", "Nobody listens.";
    Connect = "connect", "A connect failed for another reason.";
    NoPort = "no_port", "This machine had no port left: the generator's limit.";
    NoDescriptor = "no_descriptor", "This process had no descriptor left: the generator's limit.";
    Reset = "reset", "The connection was reset.";
    Closed = "closed", "The connection ended before the answer, or in the middle of it.";
    Timeout = "timeout", "No answer in time.";
    Unanswered = "unanswered", "A request of a schedule that was never answered.";
    Malformed = "malformed", "The answer is no HTTP.";
    Status = "status", "The answer has another status than expected.";
    Length = "length", "The answer has another length than expected.";
    Hash = "hash", "The answer has another hash than expected.";
}

/// What happened in a part of the run's time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TimeSlice {
    /// Requests that were answered rightly.
    pub answers: u64,
    /// Requests sent.
    pub sent: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Latencies of requests that were sent when they were due and answered in one piece: one value is all
    /// three of the next ones.
    pub same: Counts,
    /// From when a request was due to the end of its answer.
    pub latency: Counts,
    /// From when it was sent to the end of its answer.
    pub service: Counts,
    /// From when it was sent to the first byte of its answer.
    pub first_byte: Counts,
    /// From a connect to the connection.
    pub connect: Counts,
}

impl TimeSlice {
    fn add(&mut self, other: &TimeSlice) {
        self.answers += other.answers;
        self.sent += other.sent;
        self.bytes += other.bytes;
        self.same.add(&other.same);
        self.latency.add(&other.latency);
        self.service.add(&other.service);
        self.first_byte.add(&other.first_byte);
        self.connect.add(&other.connect);
    }
}

/// What happened to connections.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ConnectionStats {
    /// Places for connections that make requests.
    #[serde(rename = "places")]
    pub slots: u64,
    /// ConnectionStats that were made.
    pub made: u64,
    /// The most that were open at once, of every kind.
    pub most_at_once: u64,
    /// Places that never got an answer, though they asked.
    pub never_answered: u64,
    /// Of those, places whose connection was never even made.
    pub never_connected: u64,
    /// ConnectionStats that the server ended while nothing was asked on them.
    pub ended_idle: u64,
    /// Idle ones that were open at the end.
    pub idle_held: u64,
    /// Answers to slow ones.
    pub slow_answers: u64,
    /// New connections that were due by their schedule.
    pub due: u64,
    /// Answers for each place.
    pub shares: FairnessSums,
}

/// A worker's processor time.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ProcessorTime {
    /// Nanoseconds of processor time.
    pub used: u64,
    /// Nanoseconds that went by.
    pub passed: u64,
}

/// What happened in a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// Nanoseconds of a slice.
    pub slice_length: u64,
    /// One after the other.
    pub slices: Vec<TimeSlice>,
    /// How often each went wrong.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// What was said of the first of each kind.
    pub examples: BTreeMap<ErrorKind, String>,
    /// About connections.
    pub connections: ConnectionStats,
    /// Of each worker.
    pub processor_times: Vec<ProcessorTime>,
    /// Requests in flight, summed over nanoseconds.
    pub area: u64,
    /// Nanoseconds of requests that failed, and of those that were in flight at the end.
    pub lost_time: u64,
    /// Requests in flight at the end, or due and not sent.
    pub unfinished: u64,
    /// The longest that one of those had waited, in nanoseconds.
    pub longest_wait: u64,
    /// Requests that were due by their schedule.
    pub due: u64,
    /// How late requests were sent for which a connection was free.
    pub delay: Counts,
    /// Nanoseconds from the begin to the end of making requests.
    pub elapsed: u64,
    /// Whether somebody interrupted it.
    pub interrupted: bool,
    /// Why it could not go on, where it could not.
    pub failure: Option<String>,
}

impl Record {
    /// Adds another worker's.
    pub fn add(&mut self, mut other: Record) {
        if self.processor_times.is_empty() {
            *self = other;
            return;
        }
        while self.slice_length != other.slice_length {
            if self.slice_length < other.slice_length { self.coarsen() } else { other.coarsen() }
        }
        if self.slices.len() < other.slices.len() {
            self.slices.resize_with(other.slices.len(), TimeSlice::default);
        }
        self.slices.iter_mut().zip(&other.slices).for_each(|(ours, theirs)| ours.add(theirs));
        for (kind, count) in other.errors {
            *self.errors.entry(kind).or_default() += count;
        }
        other.examples.append(&mut self.examples);
        self.examples = other.examples;
        self.connections.add(&other.connections);
        self.processor_times.append(&mut other.processor_times);
        self.area += other.area;
        self.lost_time += other.lost_time;
        self.unfinished += other.unfinished;
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        self.due += other.due;
        self.delay.add(&other.delay);
        self.elapsed = self.elapsed.max(other.elapsed);
        self.interrupted |= other.interrupted;
        self.failure = self.failure.take().or(other.failure);
    }

    /// Counts an error.
    pub fn fail(&mut self, kind: ErrorKind, count: u64, said: impl FnOnce() -> String) {
        *self.errors.entry(kind).or_default() += count;
        self.examples.entry(kind).or_insert_with(said);
    }

    /// Makes one slice of two, all along.
    pub(crate) fn coarsen(&mut self) {
        let pairs = self.slices.chunks(2).map(|pair| {
            let mut slice = pair[0].clone();
            pair.iter().skip(1).for_each(|second| slice.add(second));
            slice
        });
        self.slices = pairs.collect();
        self.slice_length *= 2;
    }
}

impl ConnectionStats {
    fn add(&mut self, other: &ConnectionStats) {
        self.slots += other.slots;
        self.made += other.made;
        self.most_at_once += other.most_at_once;
        self.never_answered += other.never_answered;
        self.never_connected += other.never_connected;
        self.ended_idle += other.ended_idle;
        self.idle_held += other.idle_held;
        self.slow_answers += other.slow_answers;
        self.due += other.due;
        self.shares.add(&other.shares);
    }
}
