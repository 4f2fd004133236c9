//! The head of a request: found, parsed where it lies, and known to be well-formed.
//!
//! `httparse` reads the bytes; everything that RFC 9112 lets a server refuse is refused here, with a
//! [`Refusal`] that says what it was.

use std::mem::MaybeUninit;

use httparse::Header;

use crate::framing::{self, Body};
use crate::limits::Limits;
use crate::service::Refusal;
use crate::target::Target;

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
    fn parse(token: &str) -> Option<Method> {
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

    /// The method as it stands in a request line.
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

/// A version of HTTP/1. A minor version above 1 is served as 1.1 (RFC 9110 §6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

/// A well-formed request head, borrowed from the bytes that were received.
#[derive(Debug)]
pub struct Head<'a> {
    /// What is asked for.
    pub method: Method,
    /// Of what.
    pub target: Target<'a>,
    /// The version of the request.
    pub version: Version,
    /// Whether the connection goes on after this request: by version and `Connection`, the kind of body,
    /// the bound on requests, and whether the server is leaving. The response has to say so.
    pub persistent: bool,
    /// What follows the head.
    pub body: Body,
    /// Whether there is a field that makes the answer conditional or partial: `If-…` or `Range`. Where
    /// there is none, [`crate::condition`] and [`crate::range`] need not be asked.
    pub selective: bool,
    /// What [`Head::host`] gives, valid and so ASCII.
    host: Option<&'a [u8]>,
    /// Whether the peer waits for `100 Continue` before it sends the body.
    pub(crate) expects: bool,
    /// All fields, in order, names as they came.
    fields: &'a [Header<'a>],
    /// The request line without its line end, for a log.
    pub line: &'a [u8],
    /// All of it, with its empty line.
    pub(crate) bytes: &'a [u8],
}

/// Where the fields of a head are put: on the stack, and not initialised before they are.
pub(crate) type Table<'a> = [MaybeUninit<Header<'a>>; Limits::MOST_HEADERS];

pub(crate) fn table<'a>() -> Table<'a> {
    [const { MaybeUninit::uninit() }; Limits::MOST_HEADERS]
}

/// What [`scan`] found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Scan {
    /// No whole head yet.
    Partial,
    /// A head of this many bytes, its empty line included.
    Whole(usize),
}

/// Looks for the end of the head that `input` begins with. `scanned` says how much of it was looked at
/// before and is brought forward, so that bytes which come one by one are looked at once. What is found
/// does not depend on how the bytes came.
#[inline(always)]
pub(crate) fn scan(input: &[u8], scanned: &mut usize, limits: &Limits) -> Result<Scan, Refusal> {
    let input = &input[..input.len().min(limits.max_head)];
    for found in memchr::memchr_iter(b'\n', &input[*scanned..]) {
        let at = *scanned + found;
        if at == 0 || input[at - 1] != b'\r' {
            return Err(Refusal::Malformed("a line ends with a bare line feed"));
        }
        if at == 1 {
            return Err(Refusal::Malformed("more than one empty line stands in front of the request"));
        }
        if at >= 3 && input[at - 3] == b'\r' && input[at - 2] == b'\n' {
            return Ok(Scan::Whole(at + 1));
        }
    }
    *scanned = input.len();
    if input.len() < limits.max_head { Ok(Scan::Partial) } else { Err(too_large(input, limits)) }
}

/// Which bound a head broke that is too large: the target's, or that of all of it.
fn too_large(input: &[u8], limits: &Limits) -> Refusal {
    let line = &input[..memchr::memchr(b'\r', input).unwrap_or(input.len())];
    let target = line.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
    if target.len() > limits.max_target { Refusal::TargetTooLong } else { Refusal::HeadTooLarge }
}

impl<'a> Head<'a> {
    /// Parses `bytes`, which end with the empty line.
    // Inlined, so that a head is made where it is used: it is too large to be handed over in registers.
    #[inline(always)]
    pub(crate) fn parse(
        bytes: &'a mut [u8],
        table: &'a mut Table<'a>,
        limits: &Limits,
    ) -> Result<Head<'a>, Refusal> {
        let line = settle_version(bytes)?;
        let bytes: &'a [u8] = bytes;
        let mut request = httparse::Request::new(&mut []);
        let most = limits.max_headers.min(Limits::MOST_HEADERS);
        let parsed = request.parse_with_uninit_headers(bytes, &mut table[..most]);
        match parsed {
            Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
            Ok(_) => return Err(Refusal::Malformed("the head does not end where it should")),
            Err(error) => return Err(explain(error)),
        }
        let text = request.path.unwrap_or_default();
        if text.len() > limits.max_target {
            return Err(Refusal::TargetTooLong);
        }
        let method = Method::parse(request.method.unwrap_or_default()).ok_or(Refusal::UnknownMethod)?;
        let target = Target::parse(text, method)?;
        let version = if request.version == Some(0) { Version::Http10 } else { Version::Http11 };
        let fields: &'a [Header<'a>] = request.headers;
        let framing = framing::read(fields, version)?;
        Ok(Head {
            method,
            target,
            version,
            persistent: framing.persistent,
            body: framing.body,
            host: target.authority.map(str::as_bytes).or(framing.host),
            selective: framing.selective,
            expects: framing.expects,
            fields,
            line: &bytes[..line],
            bytes,
        })
    }

    /// The value of `Host`, valid; or the authority of an absolute-form target, which wins.
    pub fn host(&self) -> Option<&'a str> {
        self.host.and_then(|host| std::str::from_utf8(host).ok())
    }

    /// The values of all fields called `name` (compared without regard to case), in order.
    pub fn values<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'a [u8]> + 's {
        self.fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
    }

    /// The value of the field called `name`, where there is exactly one.
    pub fn only(&self, name: &str) -> Option<&'a [u8]> {
        let mut values = self.values(name);
        let first = values.next()?;
        values.next().is_none().then_some(first)
    }
}

/// Parses `bytes`, exactly one head with its empty line, within the default bounds, as a connection would,
/// and hands over what came of it. For services' own tests, which have no connection to read a head from.
pub fn parse_head<T>(bytes: &mut [u8], use_it: impl FnOnce(Result<Head<'_>, Refusal>) -> T) -> T {
    let limits = Limits::default();
    match scan(bytes, &mut 0, &limits) {
        Ok(Scan::Whole(length)) if length == bytes.len() => {
            let mut table = table();
            use_it(Head::parse(bytes, &mut table, &limits))
        }
        Ok(_) => use_it(Err(Refusal::Malformed("the head does not end where it should"))),
        Err(refusal) => use_it(Err(refusal)),
    }
}

/// `httparse` knows the minor versions 0 and 1. A higher one is served as 1.1, so it is read as one; a
/// major version other than 1 is refused as such and not as malformed. Says how long the line is.
fn settle_version(bytes: &mut [u8]) -> Result<usize, Refusal> {
    let line = memchr::memchr(b'\r', bytes).unwrap_or(bytes.len());
    if line < 9 {
        return Err(Refusal::Malformed("the request line is too short"));
    }
    match &bytes[line - 9..line] {
        b" HTTP/1.1" | b" HTTP/1.0" => Ok(line),
        [b' ', b'H', b'T', b'T', b'P', b'/', major @ b'0'..=b'9', b'.', b'0'..=b'9'] => match major {
            b'1' => {
                bytes[line - 1] = b'1';
                Ok(line)
            }
            _ => Err(Refusal::UnknownVersion),
        },
        _ => Err(Refusal::Malformed("the request line does not end with a version")),
    }
}

fn explain(error: httparse::Error) -> Refusal {
    match error {
        httparse::Error::TooManyHeaders => Refusal::HeadTooLarge,
        httparse::Error::HeaderName => Refusal::Malformed("a field name is not a token followed by a colon"),
        httparse::Error::HeaderValue => Refusal::Malformed("a field value holds a control character"),
        httparse::Error::Token => Refusal::Malformed("the method or target holds a character it may not"),
        httparse::Error::NewLine => Refusal::Malformed("a line does not end with CR LF"),
        httparse::Error::Version => Refusal::Malformed("the version is not one of HTTP"),
        httparse::Error::Status => Refusal::Malformed("the request line is malformed"),
    }
}
