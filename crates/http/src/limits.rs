//! Every bound of the protocol, in one place.

use std::time::Duration;

/// Bounds on one connection. Each is exact: the number itself is allowed, one more is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's head, from the first of its method to the last of its empty line. Default
    /// 16 KiB. Past it: 431. Per connection. A body in chunks may have as many bytes again of extensions and
    /// trailers.
    pub max_head: usize,
    /// Header fields of a request. Default 100, at most [`Limits::MOST_HEADERS`]. Past it: 431.
    pub max_headers: usize,
    /// Bytes of a request's target. Default 8 KiB. Past it: 414.
    pub max_target: usize,
    /// Bytes of content of a body that is read for a service. Default 1 MiB. Past it: 413. It is in memory
    /// while it is read and answered: per connection that has one.
    pub max_body: u64,
    /// Bytes of a body that is read only to be thrown away, so that the connection can go on. Default
    /// 64 KiB, as they come. Past it the connection closes.
    pub max_discard: u64,
    /// Requests on one connection, none for no bound (the default). The last response has
    /// `Connection: close`.
    pub requests_per_connection: Option<u32>,
    /// From the first byte of a head, or from a connection's begin, to the head's end; however the bytes
    /// trickle. Default 10 s. Past it: 408.
    pub head_timeout: Duration,
    /// The window in which a body must make progress of [`Limits::min_rate`]. Default 30 s. Past it: 408.
    pub body_timeout: Duration,
    /// The window in which a send must make progress of [`Limits::min_rate`]. Default 60 s. Past it the
    /// connection closes.
    pub send_timeout: Duration,
    /// Bytes a second that a peer must take or give, over each window. Default 240.
    pub min_rate: u64,
    /// The longest idle time of a connection between requests. Default 75 s.
    pub idle_timeout: Duration,
    /// The longest time that a deferred response may take. Default 30 s. Past it: 503.
    pub later_timeout: Duration,
    /// The calls that send a head and its body. Not a bound, but a property of a connection like them. Default
    /// [`WriteMode::Joined`].
    pub write: WriteMode,
}

/// The calls that send the head of a response and its body. All modes but `Joined` exist for measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WriteMode {
    /// One call for both, if they are in memory.
    #[default]
    Joined,
    /// A call for the head and one for the body. If small segments wait for acknowledgements (RFC 896), the body waits
    /// for that of the head.
    Split,
    /// A call for each line of the head, and one for the body.
    PerHeader,
}

impl WriteMode {
    /// Each by its name.
    pub const WORDS: &[(&str, WriteMode)] =
        &[("joined", WriteMode::Joined), ("split", WriteMode::Split), ("per-header", WriteMode::PerHeader)];
}

impl Limits {
    /// The greatest value of [`Limits::max_headers`]: the header table lives on the stack.
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
