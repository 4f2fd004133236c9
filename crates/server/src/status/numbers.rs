//! The counters of a report. Their names are those of the JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::counters::{Counter, REFUSALS, Sums};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Numbers {
    pub(crate) connections: ConnectionCounts,
    pub(crate) requests: u64,
    /// Responses by status code, for the codes that occurred.
    pub(crate) responses: BTreeMap<String, u64>,
    /// Refusals by reason.
    pub(crate) refusals: BTreeMap<String, u64>,
    /// Bytes given to the kernel.
    pub(crate) bytes: u64,
    /// Pieces of files that were copied because the sender's resources were unavailable.
    pub(crate) substituted: u64,
    pub(crate) zerocopy: Zerocopy,
    pub(crate) tls: Handshakes,
    /// Responses from a worker's memory; counted only if there is an admin listener.
    pub(crate) cache_hits: u64,
    pub(crate) offload: OffloadCounts,
    pub(crate) log_lines: u64,
    pub(crate) log_lines_lost: u64,
    pub(crate) log_lines_dropped: u64,
    pub(crate) panics: u64,
    /// System calls that the sandbox answered with EPERM.
    pub(crate) refused_calls: u64,
}

/// TLS handshakes by their results.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Handshakes {
    pub(crate) full: u64,
    pub(crate) resumed: u64,
    pub(crate) failed: u64,
}

/// The results of zero-copy sends.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Zerocopy {
    /// Sends whose memory the kernel has released.
    pub(crate) sends: u64,
    /// Zero-copy sends that the kernel copied.
    pub(crate) copied: u64,
}

/// Jobs of other threads: passwords, compression, large folders.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OffloadCounts {
    /// Jobs in the queue or in progress.
    pub(crate) pending: u64,
    pub(crate) begun: u64,
    pub(crate) rejected: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ConnectionCounts {
    pub(crate) open: u64,
    pub(crate) accepted: u64,
    /// Idle connections closed for new ones.
    pub(crate) evicted: u64,
}

impl Numbers {
    /// The counters in `sums`, by their names.
    pub(crate) fn of(sums: &Sums) -> Numbers {
        Numbers {
            connections: ConnectionCounts {
                open: sums.open(),
                accepted: sums.of(Counter::Accepted),
                evicted: sums.of(Counter::Evicted),
            },
            requests: sums.of(Counter::Requests),
            responses: sums.responses().map(|(status, count)| (status.to_string(), count)).collect(),
            refusals: REFUSALS.iter().map(|&(counter, name)| (name.to_owned(), sums.of(counter))).collect(),
            bytes: sums.of(Counter::Sent),
            substituted: sums.of(Counter::Substituted),
            zerocopy: Zerocopy { sends: sums.of(Counter::HeldSends), copied: sums.of(Counter::HeldCopied) },
            tls: Handshakes {
                full: sums.of(Counter::TlsFull),
                resumed: sums.of(Counter::TlsResumed),
                failed: sums.of(Counter::TlsFailed),
            },
            cache_hits: sums.of(Counter::CacheHits),
            offload: OffloadCounts {
                pending: sums.of(Counter::WorkBegun).saturating_sub(sums.of(Counter::WorkEnded)),
                begun: sums.of(Counter::WorkBegun),
                rejected: sums.of(Counter::WorkRejected),
            },
            log_lines: sums.of(Counter::Lines),
            log_lines_lost: sums.of(Counter::LinesLost),
            log_lines_dropped: sums.of(Counter::LinesDropped),
            panics: sums.of(Counter::Panicked),
            refused_calls: sums.of(Counter::RefusedCalls),
        }
    }
}
