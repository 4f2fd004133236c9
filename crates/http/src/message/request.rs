//! Requests: their methods, targets (RFC 9110 §7.1) and fields.

use std::net::Ipv6Addr;

use super::connection::Scheme;
use super::refusal::Refusal;

/// A version of HTTP. HTTP/1 versions above 1.1 are served as 1.1 (RFC 9110 §6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
    /// HTTP/2
    Http2,
}

impl Version {
    /// Returns the name of the version, as logs show it.
    pub fn as_str(self) -> &'static str {
        match self {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http2 => "HTTP/2.0",
        }
    }
}

/// The length of a request's content, as declared by its framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// No content.
    Empty,
    /// This many bytes, at least one.
    Length(u64),
    /// Unknown until it has arrived.
    Streamed,
}

/// A well-formed request without its content, borrowed from the received bytes.
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
    /// Whether a field can make the response conditional or partial: `If-…` or `Range`. If not,
    /// [`crate::semantics::condition`] and [`crate::semantics::range`] can be skipped.
    pub selective: bool,
    /// Whether the client waits for an interim 100 before it sends the content (RFC 9110 §10.1.1).
    pub(crate) expects_continue: bool,
    /// The authority of the target, or else the value of `Host`; valid, and thus ASCII.
    pub(crate) host: Option<&'a [u8]>,
    /// All fields in order, as ranges of `bytes`.
    pub(crate) fields: &'a [FieldSpan],
    /// The bytes that contain the names and values of the fields, and normally the target and the host.
    pub(crate) bytes: &'a [u8],
}

/// A field of a request, as ranges of its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldSpan {
    /// The range of the name.
    name: (u32, u32),
    /// The range of the value.
    value: (u32, u32),
}

impl FieldSpan {
    /// Returns the ranges of a name and a value within `bytes`, which are less than 4 GB.
    #[inline]
    pub(crate) fn new(name: &[u8], value: &[u8], bytes: &[u8]) -> FieldSpan {
        let span = |part: &[u8]| {
            let begin = part.as_ptr().addr().wrapping_sub(bytes.as_ptr().addr()) as u32;
            (begin, begin + part.len() as u32)
        };
        FieldSpan { name: span(name), value: span(value) }
    }

    pub(crate) fn is(self, name: &str, bytes: &[u8]) -> bool {
        part(self.name, bytes).eq_ignore_ascii_case(name.as_bytes())
    }
}

fn part((begin, end): (u32, u32), bytes: &[u8]) -> &[u8] {
    &bytes[begin as usize..end as usize]
}

/// The parts of a request for a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestSummary<'a> {
    /// A well-formed request.
    Parsed {
        /// The method.
        method: Method,
        /// The whole target.
        target: &'a str,
        /// The version.
        version: Version,
    },
    /// The first line, or less, of received bytes that are not a well-formed request.
    Unparsed(&'a [u8]),
}

impl RequestSummary<'_> {
    /// Whether the method is HEAD, whose response has no body (RFC 9110 §9.3.2).
    pub fn is_head(&self) -> bool {
        match self {
            RequestSummary::Parsed { method, .. } => *method == Method::Head,
            RequestSummary::Unparsed(bytes) => bytes.split(|byte| *byte == b' ').next() == Some(b"HEAD"),
        }
    }

    /// Appends the summary in the format of access logs: `GET / HTTP/1.1`.
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
    /// Returns the parts for a log.
    pub fn summary(&self) -> RequestSummary<'a> {
        RequestSummary::Parsed { method: self.method, target: self.target.text, version: self.version }
    }

    /// Returns the authority of an absolute-form target, or else the value of `Host`.
    pub fn host(&self) -> Option<&'a str> {
        self.host.and_then(|host| std::str::from_utf8(host).ok())
    }

    /// Returns the request with another host, such as the host that a proxy reports. `None` if `host` is
    /// invalid.
    pub fn with_host(&self, host: &'a str) -> Option<Request<'a>> {
        let is_host = !host.is_empty() && valid_host(host.as_bytes());
        is_host.then_some(Request { host: Some(host.as_bytes()), ..*self })
    }

    /// Returns the values of all fields called `name`, ignoring case, in order.
    pub fn values<'s>(&'s self, name: &'s str) -> impl DoubleEndedIterator<Item = &'a [u8]> + 's {
        let bytes = self.bytes;
        self.fields.iter().filter(move |field| field.is(name, bytes)).map(|field| part(field.value, bytes))
    }

    /// Returns the value of the field called `name` if it occurs exactly once.
    pub fn only(&self, name: &str) -> Option<&'a [u8]> {
        let mut values = self.values(name);
        let first = values.next()?;
        values.next().is_none().then_some(first)
    }
}

/// The method of a request (RFC 9110 §9). Other methods are refused with 501 before a service receives the
/// request.
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

/// A request target whose form its method allows, and whose characters are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// The whole target as received.
    pub text: &'a str,
    /// The path as received: percent-encoded, beginning with `/`; or `*` for `OPTIONS *`.
    pub path: &'a str,
    /// The query: the text after the first `?`.
    pub query: Option<&'a str>,
    /// The host and port of an absolute-form target.
    pub authority: Option<&'a str>,
}

impl<'a> Target<'a> {
    pub(crate) fn parse(text: &'a str, method: Method) -> Result<Target<'a>, Refusal> {
        let target = match text.as_bytes().first() {
            _ if method == Method::Connect => Target::authority_form(text),
            Some(b'/') => Target::path_and_query(text, None),
            Some(b'*') if text == "*" && method == Method::Options => {
                Ok(Target { text, path: text, query: None, authority: None })
            }
            _ => Target::absolute(text),
        };
        // The part after an authority was parsed like a target of its own.
        target.map(|target| Target { text, ..target })
    }

    /// Whether an absolute-form target has another scheme than `own`.
    #[inline]
    pub(crate) fn is_of_other_scheme(&self, own: Scheme) -> bool {
        let scheme = self.authority.and_then(|_| self.text.split_once("://"));
        let own = if own == Scheme::Https { "https" } else { "http" };
        scheme.is_some_and(|(scheme, _)| !scheme.eq_ignore_ascii_case(own))
    }

    fn authority_form(text: &'a str) -> Result<Target<'a>, Refusal> {
        // The port is mandatory (RFC 9112 §3.2.3).
        let ported = text.ends_with(|last: char| last.is_ascii_digit()) && text.contains(':');
        if valid_host(text.as_bytes()) && ported {
            Ok(Target { text, path: "*", query: None, authority: Some(text) })
        } else {
            Err(Refusal::Malformed("the target of CONNECT is not a host and port"))
        }
    }

    fn absolute(text: &'a str) -> Result<Target<'a>, Refusal> {
        let wrong = Refusal::Malformed("the target is neither a path nor an http URL");
        let scheme = text.find("://").ok_or(wrong)?;
        if !["http", "https"].iter().any(|known| text[..scheme].eq_ignore_ascii_case(known)) {
            return Err(wrong);
        }
        let rest = &text[scheme + 3..];
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        if authority.is_empty() || !valid_host(authority.as_bytes()) {
            return Err(Refusal::Malformed("the target's authority is not a host"));
        }
        match tail.as_bytes().first() {
            Some(b'/') => Target::path_and_query(tail, Some(authority)),
            Some(_) => {
                let mut target = Target::path_and_query(tail, Some(authority))?;
                target.path = "/";
                Ok(target)
            }
            None => Ok(Target { text, path: "/", query: None, authority: Some(authority) }),
        }
    }

    fn path_and_query(text: &'a str, authority: Option<&'a str>) -> Result<Target<'a>, Refusal> {
        let end = text.bytes().position(|byte| !PATH[byte as usize]).unwrap_or(text.len());
        let (path, query) = match text.as_bytes().get(end) {
            None => (text, None),
            Some(b'?') => (&text[..end], Some(&text[end + 1..])),
            Some(_) => {
                return Err(Refusal::Malformed(
                    "the target's path has a character that must be percent-encoded",
                ));
            }
        };
        if query.is_some_and(|query| !query.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#')) {
            return Err(Refusal::Malformed(
                "the target's query has a character that must be percent-encoded",
            ));
        }
        Ok(Target { text, path, query, authority })
    }
}

/// Bytes that a path may contain: those of RFC 3986 §3.3, and `|`, `[` and `]`, which browsers do not encode.
static PATH: [bool; 256] = allowing(b"/-._~%!$&'()*+,;=:@|[]");

/// Whether `value` is `uri-host [ ":" port ]` (RFC 9110 §7.2). An empty value is valid: the target has no
/// authority.
#[inline]
pub(crate) fn valid_host(value: &[u8]) -> bool {
    is_plain_host(value) || is_other_host(value)
}

/// Whether `value` is a name without escapes, perhaps with a port. Every request has a host, so this check has no branch
/// for each byte.
#[inline]
fn is_plain_host(value: &[u8]) -> bool {
    const LONGEST_PORT: usize = 5;
    let tail = &value[value.len().saturating_sub(LONGEST_PORT + 1)..];
    let port = tail.iter().rposition(|&byte| byte == b':').map_or(0, |at| tail.len() - at);
    let (name, port) = value.split_at(value.len() - port);
    let is_name = name.iter().fold(true, |all, &byte| all & NAME[byte as usize]);
    is_name && (1..=255).contains(&name.len()) && valid_port(port.get(1..).unwrap_or_default())
}

fn is_other_host(value: &[u8]) -> bool {
    if let Some(rest) = value.strip_prefix(b"[") {
        let Some(end) = memchr::memchr(b']', rest) else { return false };
        let address = std::str::from_utf8(&rest[..end]).unwrap_or_default();
        let rest = &rest[end + 1..];
        return address.parse::<Ipv6Addr>().is_ok()
            && (rest.is_empty() || rest.strip_prefix(b":").is_some_and(valid_port));
    }
    let end = value.iter().position(|&byte| !NAME[byte as usize]).unwrap_or(value.len());
    let end = if value.get(end) == Some(&b'%') { end_of_escaped(value) } else { end };
    let (name, rest) = value.split_at(end);
    let ends = rest.is_empty() || (!name.is_empty() && rest[0] == b':' && valid_port(&rest[1..]));
    ends && name.len() <= 255
}

/// Returns the end of a registered name with percent-encoded bytes.
fn end_of_escaped(value: &[u8]) -> usize {
    let mut at = 0;
    loop {
        match &value[at..] {
            [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => at += 3,
            [byte, ..] if NAME[*byte as usize] => at += 1,
            _ => return at,
        }
    }
}

/// Whether `digits` are a port. Without digits, the port is the scheme's default (RFC 3986 §3.2.3).
fn valid_port(digits: &[u8]) -> bool {
    // Every request has a host, so this reads each digit once, where `decimal` reads it twice.
    let mut port = 0;
    digits.iter().all(|digit| {
        port = port * 10 + u32::from(digit.wrapping_sub(b'0'));
        digit.is_ascii_digit() && port <= u32::from(u16::MAX)
    })
}

/// Bytes that a registered name may contain unencoded (RFC 3986 §3.2.2).
static NAME: [bool; 256] = allowing(b"-._~!$&'()*+,;=");

/// Returns a table that is true for letters, digits and `others`.
pub(crate) const fn allowing(others: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut at = 0;
    while at < others.len() {
        table[others[at] as usize] = true;
        at += 1;
    }
    table
}

/// Appends a path, and percent-encodes the characters that RFC 3986 §3.3 does not allow in a path.
pub fn encode_path(path: impl AsRef<[u8]>, into: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in path.as_ref() {
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(byte) {
            into.push(char::from(*byte));
        } else {
            let digits = [byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)]));
            into.extend(['%', digits[0], digits[1]]);
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
