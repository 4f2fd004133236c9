//! Settings of a run, in types that exist only if they are valid.

mod check;
mod describe;
pub mod expect;
mod hex;
pub mod io;
pub mod pacer;
pub mod source;
pub mod url;

use std::path::PathBuf;
use std::time::Duration;

use rustls::pki_types::ServerName;
use serde::{Deserialize, Serialize};

use crate::plan::expect::Expect;
use crate::plan::io::IoChoice;
use crate::plan::pacer::{ArrivalRate, Arrivals};
use crate::plan::source::SourceAddresses;
use crate::plan::url::TargetUrl;

/// The order of requests among several URLs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum UrlOrder {
    /// In turn.
    #[default]
    Listed,
    /// At random, with equal chances.
    Random,
}

/// The HTTP version of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestVersion {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    #[default]
    Http11,
    /// HTTP/2: over TLS by ALPN, without TLS by prior knowledge (RFC 9113 §3)
    Http2,
}

/// Fields that a message of HTTP/2 must not have (RFC 9113 §8.2.2).
pub(crate) const FORBIDDEN_FIELDS: [&str; 5] =
    ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// The condition that completes a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResponseEnd {
    /// Its framing: a length or chunks; without both, the end of the connection.
    #[default]
    Length,
    /// The end of the connection.
    End,
}

/// The part at the start of a run that its numbers leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum WarmUp {
    /// The part that [`crate::report::warmup`] computes.
    #[default]
    Rule,
    /// Nothing.
    Nothing,
    /// This duration.
    For(Duration),
}

/// The settings of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LoadPlan {
    /// URLs to request. Connections are spread over their servers in turn.
    pub urls: Vec<TargetUrl>,
    /// The order of requests among the URLs.
    pub order: UrlOrder,
    /// The seed of random choices; the same seed repeats them.
    pub seed: u64,
    /// Connections that make requests. With `hold`, the most connections that are open at a time.
    pub connections: Option<u32>,
    /// Threads of each process.
    pub threads: u32,
    /// Processes; the limit of descriptors applies to each.
    pub processes: u32,
    /// The run ends after this time.
    pub duration: Option<Duration>,
    /// The run ends after this many responses and errors; with `duration`, whichever comes first.
    pub requests: Option<u64>,
    /// The rate of requests. Without a rate, a request follows each response.
    pub rate: Option<ArrivalRate>,
    /// The distribution of arrivals.
    pub arrivals: Arrivals,
    /// Requests after which a connection is replaced.
    pub requests_per_connection: Option<u64>,
    /// Requests in flight on a connection of HTTP/1.1.
    pub pipeline: u32,
    /// Requests in flight on a connection of HTTP/2, each in a stream of its own.
    pub streams: u32,
    /// The method of every request.
    pub method: String,
    /// Fields of every request.
    pub headers: Vec<(String, String)>,
    /// The body of every request.
    #[serde(with = "hex")]
    pub body: Vec<u8>,
    /// The version of every request.
    pub version: RequestVersion,
    /// HTTP/1.0 requests ask for a persistent connection.
    pub keep_alive: bool,
    /// When a response is complete.
    pub completion: ResponseEnd,
    /// Additional connections that make no requests.
    pub idle: u32,
    /// Additional connections that read responses slowly.
    pub slow_readers: u32,
    /// Additional connections that write requests slowly.
    pub slow_writers: u32,
    /// Bytes per second of slow connections.
    pub slow_rate: u64,
    /// Source addresses, used in turn.
    pub sources: SourceAddresses,
    /// The last packet of the handshake carries the request.
    pub join_ack: bool,
    /// The settings of TLS, for `https` URLs.
    pub tls: TlsOptions,
    /// How connections do I/O.
    pub io: IoChoice,
    /// The rate of new connections.
    pub connection_rate: Option<ArrivalRate>,
    /// The lifetime of each connection, over which its requests are spread evenly.
    pub hold: Option<Duration>,
    /// The time without a response after which a request has failed.
    pub timeout: Duration,
    /// The expected properties of responses.
    pub expect: Expect,
    /// The part at the start that the numbers leave out.
    pub warm_up: WarmUp,
    /// Runs, one after the other.
    pub repeat: u32,
    /// The part of the work that belongs to this machine, if several machines share the plan. The numbers of connections,
    /// requests and the rate are those of all machines; threads and processes are those of this machine.
    pub part: Option<MachinePart>,
}

/// The workers of one machine among the workers of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachinePart {
    /// The index of its first worker.
    pub first: u32,
    /// The number of workers of all machines.
    pub workers: u32,
    /// The index of the machine.
    pub machine: u32,
    /// The number of machines.
    pub machines: u32,
}

impl LoadPlan {
    /// A plan with default settings that requests `urls`.
    pub fn new(urls: Vec<TargetUrl>) -> LoadPlan {
        LoadPlan {
            urls,
            seed: 1,
            threads: 1,
            processes: 1,
            duration: Some(Duration::from_secs(10)),
            pipeline: 1,
            streams: 1,
            method: "GET".to_owned(),
            slow_rate: 1024,
            timeout: Duration::from_secs(30),
            repeat: 1,
            ..LoadPlan::default()
        }
    }

    /// The default number of connections that make requests.
    pub const DEFAULT_CONNECTIONS: u32 = 10;
    /// The most threads of a process.
    pub const MOST_THREADS: u32 = 1024;
    /// The most processes.
    pub const MOST_PROCESSES: u32 = 1024;
    /// The lowest rate of a slow connection in bytes per second: it moves a byte ten times a second.
    pub const LEAST_SLOW_RATE: u64 = 10;

    /// Whether a URL is `https`.
    pub fn has_tls(&self) -> bool {
        self.urls.iter().any(|url| url.tls)
    }

    /// Workers of all processes, on all machines.
    pub fn workers(&self) -> u32 {
        self.part.map_or(self.workers_here(), |part| part.workers)
    }

    /// Workers of all processes on this machine.
    pub fn workers_here(&self) -> u32 {
        self.threads.saturating_mul(self.processes)
    }

    /// This machine's share of a count, such as that of connections.
    pub(crate) fn share_of(&self, all: u64) -> u64 {
        let first = self.part.map_or(0, |part| part.first);
        let workers = u64::from(self.workers().max(1));
        let over = (all % workers).saturating_sub(u64::from(first)).min(u64::from(self.workers_here()));
        all / workers * u64::from(self.workers_here()) + over
    }

    /// Connections that make requests. With `hold`, the number that the schedule keeps open in this run, and a quarter
    /// more.
    pub fn active(&self) -> u32 {
        match (self.connections, self.hold, self.connection_rate) {
            (Some(count), ..) => count,
            (None, Some(hold), Some(rate)) => {
                let longest = self.duration.map_or(hold, |duration| duration.min(hold));
                let at_once = (rate.from.max(rate.to) * longest.as_secs_f64() * 1.25).ceil() as u32;
                at_once.saturating_add(self.workers())
            }
            _ => LoadPlan::DEFAULT_CONNECTIONS.max(self.workers()),
        }
    }

    /// Connections of every kind.
    pub fn all_connections(&self) -> u64 {
        [self.active(), self.idle, self.slow_readers, self.slow_writers].into_iter().map(u64::from).sum()
    }

    /// The most requests in flight on a connection.
    pub fn per_connection_at_once(&self) -> u32 {
        if self.version == RequestVersion::Http2 { self.streams } else { self.pipeline }
    }

    /// Whether connections persist after a response: with HTTP/2 always, with HTTP/1.1 unless a field has `close`, with HTTP/1.0 only if a
    /// field has `keep-alive` (RFC 9112 §9.3).
    pub fn persists(&self) -> bool {
        let connection = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("connection");
        let mut options =
            self.headers.iter().filter(connection).flat_map(|(_, value)| value.split(',').map(str::trim));
        match self.version {
            RequestVersion::Http2 => true,
            RequestVersion::Http11 => !options.any(|option| option.eq_ignore_ascii_case("close")),
            RequestVersion::Http10 => {
                self.keep_alive || options.any(|option| option.eq_ignore_ascii_case("keep-alive"))
            }
        }
    }

    /// The number of requests that a connection may make; 1 if the connection ends with its response.
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

/// The duration in nanoseconds. A duration that does not fit counts as half the range.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX >> 1)
}

/// The settings of TLS, for `https` URLs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsOptions {
    /// Accept every certificate.
    pub insecure: bool,
    /// The certificates to trust instead of the system's.
    pub ca: Option<TrustFile>,
    /// The name for SNI and for the check of the certificate, instead of the URL's host.
    pub sni: Option<String>,
    /// New connections resume earlier sessions.
    pub resume: bool,
}

/// A PEM file of certificates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustFile {
    /// Its path, for messages.
    pub path: PathBuf,
    /// Its content.
    #[serde(with = "hex")]
    pub pem: Vec<u8>,
}

impl Default for TlsOptions {
    fn default() -> TlsOptions {
        TlsOptions { insecure: false, ca: None, sni: None, resume: true }
    }
}

/// The name that a certificate must cover.
pub(crate) fn server_name(text: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(text.to_owned())
        .map_err(|_| format!("{text:?} is neither a DNS name nor an IP address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_connections_follow_from_their_rate_and_lifetime() {
        let mut plan = LoadPlan::new(vec!["http://127.0.0.1/".parse().expect("a URL")]);
        plan.connection_rate = Some(ArrivalRate::constant(1000.0));
        plan.hold = Some(Duration::from_secs(10));
        assert_eq!(plan.active(), 12_501);
        assert_eq!(plan.per_connection(), 1);
        plan.duration = Some(Duration::from_secs(4));
        assert_eq!(plan.active(), 5_001, "none of them ends before the run");
    }
}
