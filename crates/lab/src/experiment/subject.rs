//! A cell of an experiment: a subject, its settings and its load.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tenfold_rounds::Operation;

use crate::measure::Measure;

macro_rules! subjects {
    ($($(#[$attribute:meta])* $subject:ident $name:literal;)+) => {
        /// The measured program or code.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Subject { $($(#[$attribute])* $subject),+ }

        impl Subject {
            /// Every subject.
            pub const ALL: &[Subject] = &[$(Subject::$subject),+];

            /// Its name in files and in `--peers`.
            pub fn name(self) -> &'static str {
                match self { $(Subject::$subject => $name),+ }
            }
        }
    };
}

subjects! {
    /// This server.
    #[default]
    Tenfold "tenfold";
    /// The installed nginx.
    Nginx "nginx";
    /// Apache.
    Apache "apache";
    /// lighttpd.
    Lighttpd "lighttpd";
    /// h2o.
    H2o "h2o";
    /// A minimal server of the museum.
    Museum "museum";
    /// Timers of this server, in process.
    Timers "timers";
    /// The published sorted list of timers (T23), walked from its head, in process.
    HeadList "head-list";
    /// The parser of this server, in process.
    Parser "parser";
    /// The published parser (T23), byte by byte, in process.
    ByteParser "byte-parser";
    /// The access log of this server, in process.
    Log "log";
}

impl Subject {
    /// Whether it is a server other than this one.
    pub fn is_peer(self) -> bool {
        matches!(self, Subject::Nginx | Subject::Apache | Subject::Lighttpd | Subject::H2o)
    }

    /// Whether trials run it in the process of the laboratory.
    pub fn is_in_process(self) -> bool {
        matches!(
            self,
            Subject::Timers | Subject::HeadList | Subject::Parser | Subject::ByteParser | Subject::Log
        )
    }
}

/// The sign that a response is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndOfResponse {
    /// By its length.
    #[default]
    Length,
    /// By the end of the connection.
    End,
}

/// The load that a cell gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Workload {
    /// Bytes of the requested file.
    pub file: Option<u64>,
    /// Requests a path that does not exist, and expects 404.
    pub missing: bool,
    /// Connections that make requests.
    pub connections: Option<u32>,
    /// Threads of the load generator.
    pub threads: Option<usize>,
    /// A new connection for each request.
    pub close: bool,
    /// Requests in flight on a connection.
    pub pipeline: Option<u32>,
    /// Makes requests over HTTP/2.
    pub http2: bool,
    /// The number of files of a page, which new connections request once. With HTTP/2 all of them are in flight.
    pub page: Option<u32>,
    /// The number of times that a trial loads the page.
    pub pages: Option<u32>,
    /// Milliseconds of a round trip, which a proxy adds between the load generator and the server.
    pub round_trip: Option<u32>,
    /// The sign that a response is complete.
    pub completion: EndOfResponse,
    /// Additional idle connections.
    pub idle: Option<u32>,
    /// Scheduled requests per second. Without a rate, each request follows a response.
    pub rate: Option<u32>,
    /// Milliseconds of a trial, instead of the profile's.
    pub milliseconds: Option<u64>,
    /// Checks the hash of each body.
    pub hash: bool,
    /// Requests a URL without a path. The site has no index, so the expected status is 404.
    pub bare_url: bool,
    /// New connections per second, instead of a number of connections.
    pub connection_rate: Option<u32>,
    /// The lifetime of each such connection in seconds.
    pub hold_seconds: Option<u32>,
    /// Fields of every request.
    pub headers: Vec<String>,
    /// Counts system calls under a tracer. Nothing else is measured.
    pub trace: bool,
    /// Failed requests do not make the trial fail, because the claim is about them.
    pub may_fail: bool,
    /// In process: the number of armed timers.
    pub armed: Option<u32>,
    /// In process: the measured operation.
    pub operation: Option<Operation>,
}

impl Workload {
    /// This load, with `base` for missing values.
    pub fn over(self, base: &Workload) -> Workload {
        Workload {
            file: self.file.or(base.file),
            missing: self.missing || base.missing,
            connections: self.connections.or(base.connections),
            threads: self.threads.or(base.threads),
            close: self.close || base.close,
            pipeline: self.pipeline.or(base.pipeline),
            http2: self.http2 || base.http2,
            page: self.page.or(base.page),
            pages: self.pages.or(base.pages),
            round_trip: self.round_trip.or(base.round_trip),
            completion: if self.completion == EndOfResponse::Length {
                base.completion
            } else {
                self.completion
            },
            idle: self.idle.or(base.idle),
            rate: self.rate.or(base.rate),
            milliseconds: self.milliseconds.or(base.milliseconds),
            hash: self.hash || base.hash,
            bare_url: self.bare_url || base.bare_url,
            connection_rate: self.connection_rate.or(base.connection_rate),
            hold_seconds: self.hold_seconds.or(base.hold_seconds),
            headers: if self.headers.is_empty() { base.headers.clone() } else { self.headers },
            trace: self.trace || base.trace,
            may_fail: self.may_fail || base.may_fail,
            armed: self.armed.or(base.armed),
            operation: self.operation.or(base.operation),
        }
    }

    /// Connections that make requests.
    pub fn active(&self) -> u32 {
        self.connections.unwrap_or(64)
    }

    /// The number of times that a trial loads its page.
    pub fn pages(&self) -> u32 {
        self.pages.unwrap_or(1)
    }

    /// Bytes of the requested file. The default is the size in N16.
    pub fn file_bytes(&self) -> u64 {
        self.file.unwrap_or(1067)
    }
}

/// A subject with its settings and its load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// A description in words.
    pub about: String,
    /// The subject.
    pub subject: Subject,
    /// Settings of this server, as flags without dashes.
    pub settings: BTreeMap<String, String>,
    /// Its load.
    pub load: Workload,
    /// The published values.
    pub original: BTreeMap<Measure, f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_subjects_and_measures_are_their_names_in_files() {
        let subjects = Subject::ALL.iter().map(|subject| (serde_json::to_value(subject), subject.name()));
        let measures = Measure::ALL.iter().map(|measure| (serde_json::to_value(measure), measure.name()));
        for (written, name) in subjects.chain(measures) {
            assert_eq!(written.expect("a name"), name);
        }
    }

    #[test]
    fn a_cell_overrides_its_base() {
        let base = Workload { connections: Some(400), close: true, ..Workload::default() };
        let cell = Workload { connections: Some(16), ..Workload::default() }.over(&base);
        assert_eq!((cell.active(), cell.close, cell.file_bytes()), (16, true, 1067));
    }
}
