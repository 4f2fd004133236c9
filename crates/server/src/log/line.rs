//! The parts of a line that all formats share.

use std::io::Write;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tenfold_http::Decimal;
use tenfold_http::{Peer, RequestSummary, TlsFacts, clock};

use crate::diagnostics::day;

/// The fields of a line that describe the client and its request.
#[derive(Clone, Copy, Default)]
pub(crate) struct LogFields<'a> {
    /// The user from basic authentication. Only `json` and formats of the user's own show this field and the next four.
    pub(crate) user: Option<&'a [u8]>,
    pub(crate) request_id: Option<&'a [u8]>,
    /// The host of the request.
    pub(crate) host: Option<&'a str>,
    pub(crate) path: Option<&'a str>,
    pub(crate) query: Option<&'a str>,
    pub(crate) referer: Option<&'a [u8]>,
    pub(crate) agent: Option<&'a [u8]>,
    /// The reason for an error. Only `json` and formats of the user's own show it.
    pub(crate) reason: Option<&'static str>,
    /// The handshake of the connection. Only `json` and formats of the user's own show it.
    pub(crate) tls: Option<&'a Arc<TlsFacts>>,
}

/// The values of a line before its response is sent.
#[derive(Clone, Copy)]
pub(super) struct LineStart<'a> {
    pub(super) peer: &'a Peer,
    /// The request as the log shows it.
    pub(super) request: &'a [u8],
    pub(super) summary: RequestSummary<'a>,
    pub(super) status: u16,
    pub(super) fields: LogFields<'a>,
}

/// The known times of a response. Only `json` and formats of the user's own show them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// From the complete request head until the response is ready to be sent.
    pub(crate) process: Option<Duration>,
    /// From then until the kernel had the last byte.
    pub(crate) send: Option<Duration>,
    /// The number of send calls or operations.
    pub(crate) sends: Option<u32>,
}

pub(super) fn put_number(line: &mut Vec<u8>, number: u64) {
    line.extend_from_slice(Decimal::new(number).as_bytes());
}

/// Writes a client's address without its port; `unix:` for a client without an address.
pub(super) fn put_peer(line: &mut Vec<u8>, peer: &Peer) {
    let Peer::Internet(address) = peer else { return line.extend_from_slice(b"unix:") };
    // An IPv4 client of an IPv6 socket is shown with its IPv4 address.
    match address.ip().to_canonical() {
        IpAddr::V4(address) => {
            for (place, part) in address.octets().into_iter().enumerate() {
                if place > 0 {
                    line.push(b'.');
                }
                put_number(line, u64::from(part));
            }
        }
        IpAddr::V6(address) => write!(line, "{address}").expect("memory does not fail to be written"),
    }
}

/// The time for log lines, formatted once a second.
#[derive(Debug)]
pub(super) struct Date {
    second: u64,
    common: [u8; 26],
    rfc3339: [u8; 20],
}

impl Default for Date {
    fn default() -> Date {
        Date { second: u64::MAX, common: *b"01/Jan/1970:00:00:00 +0000", rfc3339: *b"1970-01-01T00:00:00Z" }
    }
}

impl Date {
    /// The time as `21/Nov/2026:08:00:00 +0000`.
    pub(super) fn common(&mut self) -> &[u8] {
        self.read_clock();
        &self.common
    }

    /// The time as `2026-11-21T08:00:00Z`.
    pub(super) fn rfc3339(&mut self) -> &[u8] {
        self.read_clock();
        &self.rfc3339
    }

    fn read_clock(&mut self) {
        let second = clock::unix_seconds();
        if self.second == second {
            return;
        }
        self.second = second;
        // The HTTP date `Sat, 21 Nov 2026 08:00:00 GMT` (RFC 9110 §5.6.7) has the same fields in another order.
        clock::with_date(|date| {
            self.common[..2].copy_from_slice(&date[5..7]);
            self.common[3..6].copy_from_slice(&date[8..11]);
            self.common[7..11].copy_from_slice(&date[12..16]);
            self.common[12..20].copy_from_slice(&date[17..25]);
            self.rfc3339 = day::rfc3339(date);
        });
    }
}
