//! All bounds of the protocol.

use std::time::Duration;

#[cfg(doc)]
use crate::out::OpenFile;

/// The bounds of a connection. Each is exact: the value itself is allowed, and one more is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's head, from its method to its empty line. Default 16 KiB; beyond it: 431. A
    /// chunked body may have as many bytes again of extensions and trailers.
    pub max_head: usize,
    /// Header fields of a request. Default 100, at most [`Limits::MOST_HEADERS`]; beyond it: 431.
    pub max_headers: usize,
    /// Bytes of a request's target. Default 8 KiB; beyond it: 414.
    pub max_target: usize,
    /// Bytes of content of a body that is read for a service. Default 1 MiB; beyond it: 413. Each connection
    /// with such a body keeps it in memory while it is read and answered.
    pub max_body: u64,
    /// Bytes of a body that is read only to reuse the connection, including framing. Default 64 KiB; beyond
    /// it the connection closes.
    pub max_discard: u64,
    /// Requests on a connection; None (the default): unlimited. The last response has `Connection: close`.
    pub requests_per_connection: Option<u32>,
    /// Open requests of an HTTP/2 connection. Default 100; beyond it a request is refused, and the client may try
    /// again.
    pub max_streams: usize,
    /// Open files of the process, as [`OpenFile::count`] counts them. Default: unlimited. Beyond it, an HTTP/2
    /// connection opens one file at a time: a request waits until an earlier body has left, or is refused if that body
    /// waits for the client.
    pub open_files: usize,
    /// The time from the first byte of a head, or from the connection's beginning, to the head's end. Default
    /// 10 s; beyond it: 408. It does not depend on the rate of the bytes.
    pub head_timeout: Duration,
    /// The window in which a body must make progress at [`Limits::min_rate`]. Default 30 s; beyond it: 408.
    pub body_timeout: Duration,
    /// The window in which a send must make progress at [`Limits::min_rate`]. Default 60 s; beyond it the
    /// connection closes.
    pub send_timeout: Duration,
    /// Bytes a second that a peer must send or receive, over each window. Default 240.
    pub min_rate: u64,
    /// The longest idle time of a connection between requests. Default 75 s.
    pub idle_timeout: Duration,
    /// The longest time for a deferred response. Default 30 s; beyond it: 503.
    pub later_timeout: Duration,
    /// The calls that send a head and its body. This is not a bound, but another property of each connection.
    /// Default [`WriteMode::Joined`].
    pub write: WriteMode,
}

/// The calls that send the head of a response and its body. Modes other than `Joined` serve measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WriteMode {
    /// One call for both if they are in memory.
    #[default]
    Joined,
    /// A call for the head, and another call for the body. If small segments wait for acknowledgements (RFC
    /// 896), the body waits for the acknowledgement of the head.
    Split,
    /// A call for each line of the head, and another call for the body.
    PerHeader,
}

impl WriteMode {
    /// The modes by name.
    pub const WORDS: &[(&str, WriteMode)] =
        &[("joined", WriteMode::Joined), ("split", WriteMode::Split), ("per-header", WriteMode::PerHeader)];
}

impl Limits {
    /// The largest value of [`Limits::max_headers`], because the header table is on the stack.
    pub const MOST_HEADERS: usize = 256;
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_head: 16 * 1024,
            max_headers: 100,
            max_target: 8 * 1024,
            max_body: 1024 * 1024,
            max_discard: 64 * 1024,
            requests_per_connection: None,
            max_streams: 100,
            open_files: usize::MAX,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            send_timeout: Duration::from_secs(60),
            min_rate: 240,
            idle_timeout: Duration::from_secs(75),
            later_timeout: Duration::from_secs(30),
            write: WriteMode::Joined,
        }
    }
}
