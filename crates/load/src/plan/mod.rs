//! What is asked of a run, in types that exist only when they are valid, and what follows from it.

mod check;
mod describe;
pub mod expect;
pub mod io;
pub mod pacer;
pub mod source;
pub mod url;

use std::time::Duration;

use crate::plan::expect::Expect;
use crate::plan::io::IoChoice;
use crate::plan::pacer::{ArrivalRate, Arrivals};
use crate::plan::source::SourceAddresses;
use crate::plan::url::TargetUrl;

/// Which of several URLs comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UrlOrder {
    /// Each in its turn.
    #[default]
    Listed,
    /// Any, with the same chance.
    Random,
}

/// The version that requests name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestVersion {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    #[default]
    Http11,
}

/// When a response is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseEnd {
    /// Where its framing says: by its length, by chunks, without either by the end of the connection.
    #[default]
    Length,
    /// When the server has ended the connection.
    End,
}

/// What of the begin of a run is left out of its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WarmUp {
    /// What the rule of [`crate::report::warmup`] says.
    #[default]
    Rule,
    /// Nothing.
    Nothing,
    /// This much.
    For(Duration),
}

/// What is asked of a run.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// What is asked for. Connections are spread over their servers in turn.
    pub urls: Vec<TargetUrl>,
    /// Which comes next.
    pub order: UrlOrder,
    /// What is at random repeats with the same number.
    pub seed: u64,
    /// Connections that make requests; with `hold`, the most at once, where there is a bound.
    pub connections: Option<u32>,
    /// Threads of each process.
    pub threads: u32,
    /// Processes; each may have as many descriptors as the limit says.
    pub processes: u32,
    /// The run ends after this time.
    pub duration: Option<Duration>,
    /// The run ends after this many responses and errors; with `duration`, whichever comes first.
    pub requests: Option<u64>,
    /// Arrivals by a schedule; without one a request follows an answer.
    pub rate: Option<ArrivalRate>,
    /// How they are spread.
    pub arrivals: Arrivals,
    /// Requests after which a connection is replaced.
    pub requests_per_connection: Option<u64>,
    /// Requests in flight on a connection.
    pub pipeline: u32,
    /// The method of every request.
    pub method: String,
    /// Fields of every request.
    pub headers: Vec<(String, String)>,
    /// The body of every request.
    pub body: Vec<u8>,
    /// The version of every request.
    pub version: RequestVersion,
    /// HTTP/1.0 requests ask for a persistent connection.
    pub keep_alive: bool,
    /// When a response is complete.
    pub completion: ResponseEnd,
    /// Connections beside that never ask.
    pub idle: u32,
    /// Connections beside that read their answers slowly.
    pub slow_readers: u32,
    /// Connections beside that write their requests slowly.
    pub slow_writers: u32,
    /// Bytes per second of slow ones.
    pub slow_rate: u64,
    /// Addresses to come from, in turn.
    pub sources: SourceAddresses,
    /// The handshake's last acknowledgement travels with the request.
    pub join_ack: bool,
    /// How connections do I/O.
    pub way: IoChoice,
    /// New connections by a schedule.
    pub connection_rate: Option<ArrivalRate>,
    /// How long a connection lives, its requests spread evenly over that time.
    pub hold: Option<Duration>,
    /// After this long without an answer a request has failed.
    pub timeout: Duration,
    /// Which answers are right.
    pub expect: Expect,
    /// What of the begin is left out.
    pub warm_up: WarmUp,
    /// Runs, one after the other.
    pub repeat: u32,
}

impl LoadPlan {
    /// One that asks for `urls` with the defaults.
    pub fn new(urls: Vec<TargetUrl>) -> LoadPlan {
        LoadPlan {
            urls,
            order: UrlOrder::Listed,
            seed: 1,
            connections: None,
            threads: 1,
            processes: 1,
            duration: Some(Duration::from_secs(10)),
            requests: None,
            rate: None,
            arrivals: Arrivals::Constant,
            requests_per_connection: None,
            pipeline: 1,
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            version: RequestVersion::Http11,
            keep_alive: false,
            completion: ResponseEnd::Length,
            idle: 0,
            slow_readers: 0,
            slow_writers: 0,
            slow_rate: 1024,
            sources: SourceAddresses::default(),
            join_ack: false,
            way: IoChoice::Auto,
            connection_rate: None,
            hold: None,
            timeout: Duration::from_secs(30),
            expect: Expect::default(),
            warm_up: WarmUp::Rule,
            repeat: 1,
        }
    }

    /// Connections that make requests, where there is a bound to them.
    pub const DEFAULT_CONNECTIONS: u32 = 10;
    /// Threads of a process at most.
    pub const MOST_THREADS: u32 = 1024;
    /// Processes at most.
    pub const MOST_PROCESSES: u32 = 1024;
    /// Bytes a second of a slow connection at least: it takes or gives one ten times a second.
    pub const LEAST_SLOW_RATE: u64 = 10;

    /// Workers of all processes.
    pub fn workers(&self) -> u32 {
        self.threads.saturating_mul(self.processes)
    }

    /// Connections that make requests: with `hold`, as many as live at once by the schedule, and a quarter
    /// more.
    pub fn active(&self) -> u32 {
        match (self.connections, self.hold, self.connection_rate) {
            (Some(count), ..) => count,
            (None, Some(hold), Some(rate)) => {
                let at_once = (rate.from.max(rate.to) * hold.as_secs_f64() * 1.25).ceil() as u32;
                at_once.saturating_add(self.workers())
            }
            _ => LoadPlan::DEFAULT_CONNECTIONS.max(self.workers()),
        }
    }

    /// Connections of every kind.
    pub fn all_connections(&self) -> u64 {
        [self.active(), self.idle, self.slow_readers, self.slow_writers].into_iter().map(u64::from).sum()
    }

    /// Whether the requests allow another one on the same connection: HTTP/1.1 does unless a field says `close`,
    /// HTTP/1.0 only if a field says `keep-alive` (RFC 9112 §9.3).
    pub fn persists(&self) -> bool {
        let connection = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("connection");
        let mut options =
            self.headers.iter().filter(connection).flat_map(|(_, value)| value.split(',').map(str::trim));
        match self.version {
            RequestVersion::Http11 => !options.any(|option| option.eq_ignore_ascii_case("close")),
            RequestVersion::Http10 => {
                self.keep_alive || options.any(|option| option.eq_ignore_ascii_case("keep-alive"))
            }
        }
    }

    /// Requests that a connection may make; the shapes that end with the connection allow one.
    pub fn per_connection(&self) -> u64 {
        match self.completion {
            ResponseEnd::End => 1,
            ResponseEnd::Length if !self.persists() => 1,
            ResponseEnd::Length => self.requests_per_connection.unwrap_or(match self.hold {
                Some(_) => 1,
                None => u64::MAX,
            }),
        }
    }
}

/// A duration in nanoseconds; a duration that does not fit counts as half the range.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_connections_follow_from_their_rate_and_their_life() {
        let mut plan = LoadPlan::new(vec!["http://127.0.0.1/".parse().expect("a URL")]);
        plan.connection_rate = Some(ArrivalRate::constant(1000.0));
        plan.hold = Some(Duration::from_secs(10));
        assert_eq!(plan.active(), 12_501);
        assert_eq!(plan.per_connection(), 1);
    }
}
