//! Requests.

use httparse::Header;

use super::method::Method;
use super::target::Target;

/// A version of HTTP. A minor version of HTTP/1 above 1 is served as 1.1 (RFC 9110 §6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

/// The length of a request's content, as the framing of its version declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// No content.
    Empty,
    /// This many bytes, at least one.
    Length(u64),
    /// Known when it has arrived.
    Streamed,
}

/// A well-formed request without its content, borrowed from the bytes that were received.
#[derive(Debug)]
pub struct Request<'a> {
    /// The method.
    pub method: Method,
    /// The target.
    pub target: Target<'a>,
    /// The version of the request.
    pub version: Version,
    /// The length of its content.
    pub body: Body,
    /// Whether a field makes the response conditional or partial: `If-…` or `Range`. If none does,
    /// [`crate::semantics::condition`] and [`crate::semantics::range`] need not be asked.
    pub selective: bool,
    /// The request line without its line end, for a log.
    pub line: &'a [u8],
    /// Whether the client waits for an interim 100 before it sends the content (RFC 9110 §10.1.1).
    pub(crate) expects_continue: bool,
    /// The authority of the target, or else the value of `Host`: valid, and so ASCII.
    pub(crate) host: Option<&'a [u8]>,
    /// All fields in order, names as they came.
    pub(crate) fields: &'a [Header<'a>],
    /// The received bytes that the others are parts of.
    pub(crate) bytes: &'a [u8],
}

impl<'a> Request<'a> {
    /// Returns the authority of an absolute-form target, or else the value of `Host`.
    pub fn host(&self) -> Option<&'a str> {
        self.host.and_then(|host| std::str::from_utf8(host).ok())
    }

    /// Returns the values of all fields called `name` (compared without regard to case), in order.
    pub fn values<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'a [u8]> + 's {
        self.fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
    }

    /// Returns the value of the field called `name` if there is exactly one.
    pub fn only(&self, name: &str) -> Option<&'a [u8]> {
        let mut values = self.values(name);
        let first = values.next()?;
        values.next().is_none().then_some(first)
    }
}
