//! Reasons to refuse bytes or a request.

/// The reason why a request is refused before a service receives it. Each refusal closes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The bytes are not a well-formed request; the reason.
    Malformed(&'static str),
    /// The head or the body did not arrive in time.
    TimedOut,
    /// The target is longer than [`crate::Limits::max_target`].
    TargetTooLong,
    /// The head is longer than [`crate::Limits::max_head`] or has more than [`crate::Limits::max_headers`]
    /// fields. Also: the extensions and trailers of a chunked body exceed the size of a head.
    HeadTooLarge,
    /// The body is longer than the service accepts, or than [`crate::Limits::max_body`].
    BodyTooLarge,
    /// The method is unknown.
    UnknownMethod,
    /// A transfer coding other than `chunked`.
    UnknownTransferCoding,
    /// The major version is not supported.
    UnknownVersion,
    /// An expectation other than `100-continue`.
    UnknownExpectation,
    /// The request is for another scheme than the connection's (RFC 9110 §7.4).
    Misdirected,
    /// A deferred response was not ready in time.
    Overdue,
    /// Too many requests are queued.
    Busy,
}

impl Refusal {
    /// Returns the status code of the response (RFC 9110 §15).
    pub fn status(self) -> u16 {
        match self {
            Refusal::Malformed(_) => 400,
            Refusal::TimedOut => 408,
            Refusal::BodyTooLarge => 413,
            Refusal::TargetTooLong => 414,
            Refusal::UnknownExpectation => 417,
            Refusal::Misdirected => 421,
            Refusal::HeadTooLarge => 431,
            Refusal::UnknownMethod | Refusal::UnknownTransferCoding => 501,
            Refusal::Overdue | Refusal::Busy => 503,
            Refusal::UnknownVersion => 505,
        }
    }

    /// Returns a short description.
    pub fn words(self) -> &'static str {
        match self {
            Refusal::Malformed(what) => what,
            Refusal::TimedOut => "the request did not arrive in time",
            Refusal::TargetTooLong => "the target is too long",
            Refusal::HeadTooLarge => "the head is too large",
            Refusal::BodyTooLarge => "the body is too large",
            Refusal::UnknownMethod => "the method is unknown",
            Refusal::UnknownTransferCoding => "the transfer coding is unknown",
            Refusal::UnknownVersion => "a request line has HTTP/1.0 or HTTP/1.1",
            Refusal::UnknownExpectation => "the expectation cannot be met",
            Refusal::Misdirected => "the request is for another scheme than the connection's",
            Refusal::Overdue => "the response took too long",
            Refusal::Busy => "too many requests are queued",
        }
    }
}
