//! What happened: what a worker writes down while it runs, and what is added up afterwards.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::histogram::{self, Counts};
use crate::statistics::Shares;

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
pub struct Slice {
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

impl Slice {
    fn add(&mut self, other: &Slice) {
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
pub struct Connections {
    /// Places for connections that make requests.
    pub places: u64,
    /// Connections that were made.
    pub made: u64,
    /// The most that were open at once, of every kind.
    pub most_at_once: u64,
    /// Places that never got an answer, though they asked.
    pub never_answered: u64,
    /// Of those, places whose connection was never even made.
    pub never_connected: u64,
    /// Connections that the server ended while nothing was asked on them.
    pub ended_idle: u64,
    /// Idle ones that were open at the end.
    pub idle_held: u64,
    /// Answers to slow ones.
    pub slow_answers: u64,
    /// New connections that were due by their schedule.
    pub due: u64,
    /// Answers for each place.
    pub shares: Shares,
}

/// A worker's processor time.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Effort {
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
    pub slices: Vec<Slice>,
    /// How often each went wrong.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// What was said of the first of each kind.
    pub examples: BTreeMap<ErrorKind, String>,
    /// About connections.
    pub connections: Connections,
    /// Of each worker.
    pub efforts: Vec<Effort>,
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
    pub lag: Counts,
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
        if self.efforts.is_empty() {
            *self = other;
            return;
        }
        while self.slice_length != other.slice_length {
            if self.slice_length < other.slice_length { self.coarsen() } else { other.coarsen() }
        }
        if self.slices.len() < other.slices.len() {
            self.slices.resize_with(other.slices.len(), Slice::default);
        }
        self.slices.iter_mut().zip(&other.slices).for_each(|(ours, theirs)| ours.add(theirs));
        for (kind, count) in other.errors {
            *self.errors.entry(kind).or_default() += count;
        }
        other.examples.append(&mut self.examples);
        self.examples = other.examples;
        self.connections.add(&other.connections);
        self.efforts.append(&mut other.efforts);
        self.area += other.area;
        self.lost_time += other.lost_time;
        self.unfinished += other.unfinished;
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        self.due += other.due;
        self.lag.add(&other.lag);
        self.elapsed = self.elapsed.max(other.elapsed);
        self.interrupted |= other.interrupted;
        self.failure = self.failure.take().or(other.failure);
    }

    /// Counts an error.
    pub fn fail(&mut self, kind: ErrorKind, count: u64, said: impl FnOnce() -> String) {
        *self.errors.entry(kind).or_default() += count;
        self.examples.entry(kind).or_insert_with(said);
    }

    fn coarsen(&mut self) {
        let pairs = self.slices.chunks(2).map(|pair| {
            let mut slice = pair[0].clone();
            pair.iter().skip(1).for_each(|second| slice.add(second));
            slice
        });
        self.slices = pairs.collect();
        self.slice_length *= 2;
    }
}

impl Connections {
    fn add(&mut self, other: &Connections) {
        self.places += other.places;
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

/// Slices at most; with more, two become one.
const MOST_SLICES: usize = 128;

/// What a worker writes down while it runs. Times are nanoseconds of one clock.
pub(crate) struct Recorder {
    pub(crate) record: Record,
    now: Slice,
    begin: u64,
    slice_end: u64,
    same: Histogram<u64>,
    latency: Histogram<u64>,
    service: Histogram<u64>,
    first_byte: Histogram<u64>,
    connect: Histogram<u64>,
    lag: Histogram<u64>,
    in_flight: u64,
    changed: u64,
    open: u64,
    /// Of all answers; for the live display.
    pub(crate) answers: u64,
    pub(crate) latency_sum: u64,
}

impl Recorder {
    /// Begins at `begin`, with slices of `slice_length`.
    pub(crate) fn new(begin: u64, slice_length: u64) -> Recorder {
        Recorder {
            record: Record { slice_length, ..Record::default() },
            now: Slice::default(),
            begin,
            slice_end: begin + slice_length,
            same: histogram::new(),
            latency: histogram::new(),
            service: histogram::new(),
            first_byte: histogram::new(),
            connect: histogram::new(),
            lag: histogram::new(),
            in_flight: 0,
            changed: begin,
            open: 0,
            answers: 0,
            latency_sum: 0,
        }
    }

    /// A request was answered rightly.
    #[inline]
    pub(crate) fn answered(&mut self, due: u64, sent: u64, first: u64, done: u64) {
        self.now.answers += 1;
        self.answers += 1;
        let latency = done.saturating_sub(due);
        self.latency_sum += latency;
        if due == sent && first == done {
            self.same.saturating_record(latency);
        } else {
            self.latency.saturating_record(latency);
            self.service.saturating_record(done.saturating_sub(sent));
            self.first_byte.saturating_record(first.saturating_sub(sent));
        }
    }

    #[inline]
    pub(crate) fn received(&mut self, bytes: usize) {
        self.now.bytes += bytes as u64;
    }

    /// `count` requests went out.
    #[inline]
    pub(crate) fn sent(&mut self, now: u64, count: u64) {
        self.now.sent += count;
        self.area(now);
        self.in_flight += count;
    }

    /// `count` requests that had gone out are no longer in flight.
    #[inline]
    pub(crate) fn landed(&mut self, now: u64, count: u64) {
        self.area(now);
        self.in_flight -= count;
    }

    #[inline]
    fn area(&mut self, now: u64) {
        // Events of a turn may be stamped before those of the last send of another connection.
        let passed = now.saturating_sub(self.changed);
        self.record.area += self.in_flight * passed;
        self.changed = self.changed.max(now);
    }

    pub(crate) fn connected(&mut self, took: u64) {
        self.record.connections.made += 1;
        self.connect.saturating_record(took);
    }

    pub(crate) fn opened(&mut self) {
        self.open += 1;
        self.record.connections.most_at_once = self.record.connections.most_at_once.max(self.open);
    }

    pub(crate) fn closed(&mut self) {
        self.open -= 1;
    }

    pub(crate) fn open(&self) -> u64 {
        self.open
    }

    pub(crate) fn lagged(&mut self, by: u64) {
        self.lag.saturating_record(by);
    }

    /// Ends the slices that are over at `now`.
    pub(crate) fn turn(&mut self, now: u64) {
        while now >= self.slice_end {
            self.end_slice();
            if self.record.slices.len() >= MOST_SLICES {
                self.record.coarsen();
            }
            self.slice_end = self.begin + self.record.slice_length * (self.record.slices.len() as u64 + 1);
        }
    }

    fn end_slice(&mut self) {
        let mut slice = std::mem::take(&mut self.now);
        slice.same = Counts::take(&mut self.same);
        slice.latency = Counts::take(&mut self.latency);
        slice.service = Counts::take(&mut self.service);
        slice.first_byte = Counts::take(&mut self.first_byte);
        slice.connect = Counts::take(&mut self.connect);
        self.record.slices.push(slice);
    }

    /// Ends the last slice, which may not be whole, and all of it.
    pub(crate) fn finish(mut self, now: u64) -> Record {
        self.turn(now);
        self.area(now);
        self.end_slice();
        self.record.lag = Counts::take(&mut self.lag);
        self.record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_of_one_length_and_gaps_are_empty_ones() {
        let mut recorder = Recorder::new(1_000, 100);
        recorder.answered(1_000, 1_000, 1_050, 1_050);
        recorder.turn(1_350);
        recorder.answered(1_300, 1_310, 1_340, 1_350);
        let record = recorder.finish(1_350);
        assert_eq!(record.slices.iter().map(|slice| slice.answers).collect::<Vec<_>>(), [1, 0, 0, 1]);
        assert_eq!((record.slices[0].same.len(), record.slices[3].latency.len()), (1, 1));
    }

    #[test]
    fn too_many_slices_become_half_as_many_and_nothing_is_lost() {
        let mut recorder = Recorder::new(0, 10);
        for at in 0..10_000 {
            recorder.turn(at);
            recorder.answered(0, 0, at, at);
        }
        let record = recorder.finish(10_000);
        assert!(record.slices.len() <= MOST_SLICES);
        assert_eq!(record.slices.iter().map(|slice| slice.answers).sum::<u64>(), 10_000);
        let whole = record.slices[0].answers;
        assert!(record.slices[..record.slices.len() - 2].iter().all(|slice| slice.answers == whole));
    }

    #[test]
    fn records_of_different_slices_are_added_up() {
        let record = |length: u64, seconds: u64| {
            let mut recorder = Recorder::new(0, length);
            for at in 0..seconds {
                recorder.turn(at);
                recorder.answered(at, at, at, at);
            }
            let mut record = recorder.finish(seconds);
            record.efforts.push(Effort::default());
            record
        };
        let mut sum = record(10, 100);
        sum.add(record(40, 200));
        assert_eq!(sum.slice_length, 40);
        assert_eq!(sum.slices.iter().map(|slice| slice.answers).collect::<Vec<_>>(), [80, 80, 60, 40, 40, 0]);
    }

    #[test]
    fn the_area_is_what_was_in_flight_over_time() {
        let mut recorder = Recorder::new(0, 1_000);
        recorder.sent(10, 2);
        recorder.sent(20, 1);
        recorder.landed(30, 1);
        let record = recorder.finish(50);
        assert_eq!(record.area, 2 * 10 + 3 * 10 + 2 * 20);
    }
}
