//! The record that a worker keeps during a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::measure::histogram::Counts;
use crate::measure::statistics::fairness::FairnessSums;

macro_rules! error_kinds {
    ($($kind:ident = $name:literal, $about:literal;)+) => {
        /// The kind of an error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum ErrorKind { $(#[doc = $about] $kind),+ }

        impl ErrorKind {
            /// All kinds.
            pub const ALL: &[ErrorKind] = &[$(ErrorKind::$kind),+];

            /// The name of the kind in reports.
            pub fn name(self) -> &'static str {
                match self { $(ErrorKind::$kind => $name),+ }
            }
        }
    };
}

error_kinds! {
    Refused = "refused", "No server listens.";
    Connect = "connect", "A connect failed for another reason.";
    NoPort = "no_port", "No local port was free: the generator's limit.";
    NoDescriptor = "no_descriptor", "No descriptor was free: the generator's limit.";
    Reset = "reset", "The connection was reset.";
    Closed = "closed", "The connection ended before the response, or within it.";
    Certificate = "certificate", "The server's certificate is not trusted.";
    Tls = "tls", "The TLS handshake failed, or a record is invalid.";
    Truncated = "truncated", "The connection ended within a response, without close_notify.";
    NoHttp2 = "no_http2", "The server does not use HTTP/2.";
    HeadLimit = "head_limit", "The head of a request is larger than the server allows: MAX_HEADER_LIST_SIZE.";
    Goaway = "goaway", "The server ended the connection by GOAWAY with an error.";
    StreamReset = "stream_reset", "The server reset the stream of a request.";
    StreamRefused = "stream_refused", "The server refused the stream of a request: REFUSED_STREAM.";
    Timeout = "timeout", "No response in time.";
    Unanswered = "unanswered", "A scheduled request without a response.";
    Malformed = "malformed", "The response is malformed.";
    Status = "status", "The response has an unexpected status.";
    Length = "length", "The response has an unexpected length.";
    Hash = "hash", "The response has an unexpected hash.";
}

/// The events of one slice of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TimeSlice {
    /// Correct responses.
    pub answers: u64,
    /// Requests sent.
    pub sent: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Times of each kind, in the order of [`Timing`].
    pub times: [Counts; TIMINGS],
}

/// A kind of time that is measured for each request or connection.
#[derive(Clone, Copy)]
pub enum Timing {
    /// Latencies of requests that were sent when due and answered in one piece. One value then counts for the next
    /// three kinds.
    Same,
    /// From the due time of a request to the end of its response.
    Latency,
    /// From sending a request to the end of its response.
    Service,
    /// From sending a request to the first byte of its response.
    FirstByte,
    /// From the connect call to the established connection.
    Connect,
    /// From the established connection to the end of the TLS handshake.
    Handshake,
}

/// The number of kinds.
pub const TIMINGS: usize = 6;

impl TimeSlice {
    fn add(&mut self, other: &TimeSlice) {
        self.answers += other.answers;
        self.sent += other.sent;
        self.bytes += other.bytes;
        self.times.iter_mut().zip(&other.times).for_each(|(ours, theirs)| ours.add(theirs));
    }
}

/// Counts of connections.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ConnectionStats {
    /// Slots of connections that make requests.
    #[serde(rename = "places")]
    pub slots: u64,
    /// Connections made.
    pub made: u64,
    /// The most open connections of every kind.
    pub most_at_once: u64,
    /// Slots that sent a request and never got a response.
    pub never_answered: u64,
    /// Slots that never had a connection; `never_answered` includes them.
    pub never_connected: u64,
    /// Connections that the server ended between requests.
    pub ended_idle: u64,
    /// Idle connections that were open at the end.
    pub idle_held: u64,
    /// Responses to slow connections.
    pub slow_answers: u64,
    /// New connections due by their schedule.
    pub due: u64,
    /// Responses of each slot.
    pub shares: FairnessSums,
}

/// Counts of TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsStats {
    /// Full handshakes.
    pub full: u64,
    /// Handshakes that resumed a session.
    pub resumed: u64,
    /// Connections that the server ended without close_notify.
    pub truncated: u64,
    /// Handshakes by version and cipher suite, such as `TLSv1.3 TLS_AES_256_GCM_SHA384`.
    pub ciphers: BTreeMap<String, u64>,
}

/// Counts of HTTP/2.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http2Stats {
    /// The least SETTINGS_MAX_CONCURRENT_STREAMS of a server.
    pub least_limit: Option<u32>,
    /// RST_STREAM frames from servers by code, such as `CANCEL`.
    pub resets: BTreeMap<String, u64>,
    /// GOAWAY frames from servers by code. `NO_ERROR` is a graceful end.
    pub goaways: BTreeMap<String, u64>,
}

/// The processor time of a worker.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ProcessorTime {
    /// Processor time in nanoseconds.
    pub used: u64,
    /// Elapsed time in nanoseconds.
    pub passed: u64,
}

/// The events of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// The length of a slice in nanoseconds.
    pub slice_length: u64,
    /// The slices in order.
    pub slices: Vec<TimeSlice>,
    /// Errors by kind.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// The message of the first error of each kind.
    pub examples: BTreeMap<ErrorKind, String>,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Counts of connections.
    pub connections: ConnectionStats,
    /// Counts of TLS.
    pub tls: TlsStats,
    /// Counts of HTTP/2.
    pub http2: Http2Stats,
    /// The processor time of each worker.
    pub processor_times: Vec<ProcessorTime>,
    /// The integral of the requests in flight over time, in nanoseconds.
    pub area: u64,
    /// Nanoseconds in flight of failed and unfinished requests.
    pub lost_time: u64,
    /// Requests at the end that were in flight, or due and not sent.
    pub unfinished: u64,
    /// The longest wait of an unfinished request in nanoseconds.
    pub longest_wait: u64,
    /// Requests due by their schedule.
    pub due: u64,
    /// Delays from the due time of a request, with a connection free, to its start.
    pub delay: Counts,
    /// Nanoseconds from the start to the end of sending.
    pub elapsed: u64,
    /// The longest time in nanoseconds in which a worker did not run, although it had a timer.
    #[serde(default)]
    pub pause: u64,
    /// Whether the run was interrupted.
    pub interrupted: bool,
    /// The error that ended the run, if any.
    pub failure: Option<String>,
}

impl Record {
    /// Adds the record of another worker.
    pub fn add(&mut self, mut other: Record) {
        if self.processor_times.is_empty() {
            *self = other;
            return;
        }
        while self.slice_length != other.slice_length {
            if self.slice_length < other.slice_length { self.join_slices() } else { other.join_slices() }
        }
        if self.slices.len() < other.slices.len() {
            self.slices.resize_with(other.slices.len(), TimeSlice::default);
        }
        self.slices.iter_mut().zip(&other.slices).for_each(|(ours, theirs)| ours.add(theirs));
        for (kind, count) in other.errors {
            *self.errors.entry(kind).or_default() += count;
        }
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        other.examples.append(&mut self.examples);
        self.examples = other.examples;
        self.connections.add(&other.connections);
        self.tls.add(other.tls);
        self.http2.add(other.http2);
        self.processor_times.append(&mut other.processor_times);
        self.area = self.area.saturating_add(other.area);
        self.lost_time = self.lost_time.saturating_add(other.lost_time);
        self.unfinished += other.unfinished;
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        self.due += other.due;
        self.delay.add(&other.delay);
        self.elapsed = self.elapsed.max(other.elapsed);
        self.pause = self.pause.max(other.pause);
        self.interrupted |= other.interrupted;
        self.failure = self.failure.take().or(other.failure);
    }

    /// Counts errors and keeps the first message of each kind.
    pub fn fail(&mut self, kind: ErrorKind, count: u64, said: impl FnOnce() -> String) {
        *self.errors.entry(kind).or_default() += count;
        self.examples.entry(kind).or_insert_with(said);
    }

    /// Joins pairs of slices.
    pub(crate) fn join_slices(&mut self) {
        let pairs = self.slices.chunks(2).map(|pair| {
            let mut slice = pair[0].clone();
            pair.iter().skip(1).for_each(|second| slice.add(second));
            slice
        });
        self.slices = pairs.collect();
        self.slice_length *= 2;
    }
}

impl TlsStats {
    fn add(&mut self, other: TlsStats) {
        self.full += other.full;
        self.resumed += other.resumed;
        self.truncated += other.truncated;
        for (cipher, count) in other.ciphers {
            *self.ciphers.entry(cipher).or_default() += count;
        }
    }
}

impl Http2Stats {
    fn add(&mut self, other: Http2Stats) {
        self.least_limit = self.least_limit.into_iter().chain(other.least_limit).min();
        for (ours, theirs) in [(&mut self.resets, other.resets), (&mut self.goaways, other.goaways)] {
            theirs.into_iter().for_each(|(code, count)| *ours.entry(code).or_default() += count);
        }
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
