//! Requests.

use crate::message::target::{Target, valid_host};

/// A version of HTTP. A minor version of HTTP/1 above 1 is served as 1.1 (RFC 9110 §6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

impl Version {
    /// Returns the name of the version, as logs show it.
    pub fn as_str(self) -> &'static str {
        match self {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
        }
    }
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
    /// Whether the client waits for an interim 100 before it sends the content (RFC 9110 §10.1.1).
    pub(crate) expects_continue: bool,
    /// The authority of the target, or else the value of `Host`: valid, and so ASCII.
    pub(crate) host: Option<&'a [u8]>,
    /// All fields in order, as places in `bytes`.
    pub(crate) fields: &'a [FieldSpan],
    /// The bytes that names and values of fields are parts of, and the target and the host as a rule.
    pub(crate) bytes: &'a [u8],
}

/// A field of a request, as places in its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldSpan {
    /// The begin and the end of its name, as it came.
    name: (u32, u32),
    /// The begin and the end of its value.
    value: (u32, u32),
}

impl FieldSpan {
    /// Returns the places of a name and a value that are parts of `bytes`, which are less than 4 GB.
    #[inline]
    pub(crate) fn new(name: &str, value: &[u8], bytes: &[u8]) -> FieldSpan {
        let span = |part: &[u8]| {
            let begin = part.as_ptr().addr().wrapping_sub(bytes.as_ptr().addr()) as u32;
            (begin, begin + part.len() as u32)
        };
        FieldSpan { name: span(name.as_bytes()), value: span(value) }
    }

    fn is(self, name: &str, bytes: &[u8]) -> bool {
        part(self.name, bytes).eq_ignore_ascii_case(name.as_bytes())
    }
}

fn part((begin, end): (u32, u32), bytes: &[u8]) -> &[u8] {
    &bytes[begin as usize..end as usize]
}

/// The parts of a request that a log shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestSummary<'a> {
    /// A well-formed request.
    Parsed {
        /// Its method.
        method: Method,
        /// All of its target.
        target: &'a str,
        /// Its version.
        version: Version,
    },
    /// The beginning of received bytes that are no well-formed request: their first line, or less.
    Unparsed(&'a [u8]),
}

impl RequestSummary<'_> {
    /// Appends the summary as access logs show it: `GET / HTTP/1.1`.
    pub fn write(&self, to: &mut Vec<u8>) {
        match self {
            RequestSummary::Parsed { method, target, version } => {
                for piece in [method.as_str(), " ", target, " ", version.as_str()] {
                    to.extend_from_slice(piece.as_bytes());
                }
            }
            RequestSummary::Unparsed(bytes) => to.extend_from_slice(bytes),
        }
    }
}

impl<'a> Request<'a> {
    /// Returns the parts that a log shows.
    pub fn summary(&self) -> RequestSummary<'a> {
        RequestSummary::Parsed { method: self.method, target: self.target.text, version: self.version }
    }

    /// Returns the authority of an absolute-form target, or else the value of `Host`.
    pub fn host(&self) -> Option<&'a str> {
        self.host.and_then(|host| std::str::from_utf8(host).ok())
    }

    /// Returns the request with another host, such as the one that a client asked a proxy for. None if it is no host.
    pub fn with_host(&self, host: &'a str) -> Option<Request<'a>> {
        let is_host = !host.is_empty() && valid_host(host.as_bytes());
        is_host.then_some(Request { host: Some(host.as_bytes()), ..*self })
    }

    /// Returns the values of all fields called `name` (compared without regard to case), in order.
    pub fn values<'s>(&'s self, name: &'s str) -> impl DoubleEndedIterator<Item = &'a [u8]> + 's {
        let bytes = self.bytes;
        self.fields.iter().filter(move |field| field.is(name, bytes)).map(|field| part(field.value, bytes))
    }

    /// Returns the value of the field called `name` if there is exactly one.
    pub fn only(&self, name: &str) -> Option<&'a [u8]> {
        let mut values = self.values(name);
        let first = values.next()?;
        values.next().is_none().then_some(first)
    }
}

/// A request's method (RFC 9110 §9). Others are refused with 501 before a service sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the methods")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Delete,
    Options,
    Patch,
    Trace,
    Connect,
}

impl Method {
    pub(crate) fn parse(token: &str) -> Option<Method> {
        Some(match token {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "DELETE" => Method::Delete,
            "OPTIONS" => Method::Options,
            "PATCH" => Method::Patch,
            "TRACE" => Method::Trace,
            "CONNECT" => Method::Connect,
            _ => return None,
        })
    }

    /// Returns the name of the method.
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
            Method::Options => "OPTIONS",
            Method::Patch => "PATCH",
            Method::Trace => "TRACE",
            Method::Connect => "CONNECT",
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::h1::parse_request;

    #[test]
    fn a_summary_is_the_line_that_the_client_sent() {
        for line in [
            "GET /a%20b?c HTTP/1.1",
            "GET http://x:1?b HTTP/1.1",
            "POST HTTP://x/a HTTP/1.0",
            "OPTIONS * HTTP/1.1",
            "CONNECT x:1 HTTP/1.1",
        ] {
            let mut shown = Vec::new();
            let mut bytes = format!("{line}\r\nHost: x\r\n\r\n").into_bytes();
            let copy = parse_request(&mut bytes, |request| request.expect("it is well-formed").to_owned());
            copy.read(|request| request.summary().write(&mut shown));
            assert_eq!(String::from_utf8_lossy(&shown), line);
        }
    }
}
