//! The head of a request: found, parsed in place, and checked.
//!
//! `httparse` parses the bytes. Everything that RFC 9112 permits a server to refuse is refused here, with a
//! [`Refusal`] that names the reason.

use std::mem::MaybeUninit;

use arrayvec::ArrayVec;
use httparse::Header;

use super::framing;
use crate::limits::Limits;
use crate::message::refusal::Refusal;
use crate::message::request::{FieldSpan, Method, Request, Target, Version};

/// A parsed request head.
#[derive(Debug)]
pub(crate) struct Head<'a> {
    pub(crate) request: Request<'a>,
    /// Whether the connection persists according to the version and `Connection` (RFC 9112 §9.3).
    pub(crate) persistent: bool,
}

/// The ranges of the fields of a head: uninitialised room on the stack, reused for each head.
pub(crate) type FieldTable = ArrayVec<FieldSpan, { Limits::MOST_HEADERS }>;

/// Room for the fields of a head as the parser returns them.
type Parsed<'a> = [MaybeUninit<Header<'a>>; Limits::MOST_HEADERS];

const fn room<'a>() -> Parsed<'a> {
    [const { MaybeUninit::uninit() }; Limits::MOST_HEADERS]
}

/// The length of the end of a request line, after the target: ` HTTP/1.1`.
const VERSION: usize = 9;

/// Returns the length of the head at the beginning of `input`, including its empty line; None if the head is
/// incomplete. `scanned` counts the bytes that were scanned before and is updated, so that each byte is
/// scanned once. The result does not depend on how the bytes were split.
pub(crate) fn scan(input: &[u8], scanned: &mut usize, limits: &Limits) -> Result<Option<usize>, Refusal> {
    let input = &input[..input.len().min(limits.max_head)];
    for found in memchr::memchr_iter(b'\n', &input[*scanned..]) {
        let at = *scanned + found;
        if at == 0 || input[at - 1] != b'\r' {
            return Err(Refusal::Malformed("a line ends with a bare line feed"));
        }
        if at == 1 {
            return Err(Refusal::Malformed("more than one empty line precedes the request"));
        }
        if at >= 3 && input[at - 3] == b'\r' && input[at - 2] == b'\n' {
            return Ok(Some(at + 1));
        }
    }
    *scanned = input.len();
    if input.len() < limits.max_head { Ok(None) } else { Err(too_large(input, limits)) }
}

/// Checks the request line of an incomplete head once its end is in `input`, so that a malformed line is
/// refused before the head's deadline. The first `scanned` bytes have no line end. Returns whether the line
/// was complete. Errors that [`scan`] detects are not reported here.
pub(crate) fn check_line(input: &mut [u8], scanned: usize) -> Result<bool, Refusal> {
    let Some(found) = memchr::memchr(b'\n', &input[scanned..]) else { return Ok(false) };
    let end = scanned + found;
    if end > 1 && input[end - 1] == b'\r' {
        settle_version(&mut input[..=end])?;
        // Without room for fields, a well-formed line is an incomplete head.
        httparse::Request::new(&mut []).parse(&input[..=end]).map_err(explain)?;
    }
    Ok(true)
}

/// Returns the bound that an oversized head exceeds: of its target, or of the whole head.
fn too_large(input: &[u8], limits: &Limits) -> Refusal {
    let line = &input[..memchr::memchr(b'\r', input).unwrap_or(input.len())];
    let target = line.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
    if target.len() > limits.max_target { Refusal::TargetTooLong } else { Refusal::HeadTooLarge }
}

impl<'a> Head<'a> {
    /// Parses the head at the beginning of `input` in one pass, if it is complete and well-formed, as most
    /// heads are. Otherwise it returns `None`, and [`scan`] and [`Head::parse`] determine the reason. For an
    /// accepted head, they would return the same result.
    // Inlined so that a head is built in place, because it does not fit in registers.
    #[inline(always)]
    pub(crate) fn parse_fast(
        input: &'a [u8],
        table: &'a mut FieldTable,
        limits: &Limits,
    ) -> Option<Head<'a>> {
        let input = &input[..input.len().min(limits.max_head)];
        let mut room = room();
        let mut request = httparse::Request::new(&mut []);
        let most = limits.max_headers.min(Limits::MOST_HEADERS);
        let parsed = request.parse_with_uninit_headers(input, &mut room[..most]);
        let Ok(httparse::Status::Complete(length)) = parsed else { return None };
        let bytes = &input[..length];
        // `httparse` skips empty lines before a head, and accepts a bare line feed as a line end.
        let after_whole_line = |field: &Header<'_>| {
            let begin = field.name.as_ptr().addr() - bytes.as_ptr().addr();
            bytes[begin - 2] == b'\r'
        };
        let strict =
            bytes[0] > b'\r' && request.headers.iter().all(after_whole_line) && bytes.ends_with(b"\r\n\r\n");
        if strict { Head::of(&request, bytes, table, limits).ok() } else { None }
    }

    /// Parses `bytes`, which end with the empty line.
    pub(crate) fn parse(
        bytes: &'a mut [u8],
        table: &'a mut FieldTable,
        limits: &Limits,
    ) -> Result<Head<'a>, Refusal> {
        settle_version(bytes)?;
        let bytes: &'a [u8] = bytes;
        let mut room = room();
        let mut request = httparse::Request::new(&mut []);
        let most = limits.max_headers.min(Limits::MOST_HEADERS);
        match request.parse_with_uninit_headers(bytes, &mut room[..most]) {
            Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
            Ok(_) => return Err(Refusal::Malformed("the head does not end where it should")),
            Err(error) => return Err(explain(error)),
        }
        Head::of(&request, bytes, table, limits)
    }

    /// Checks the parsed head of `bytes`. Writes the ranges of its fields to `table`.
    #[inline(always)]
    fn of(
        request: &httparse::Request<'_, 'a>,
        bytes: &'a [u8],
        table: &'a mut FieldTable,
        limits: &Limits,
    ) -> Result<Head<'a>, Refusal> {
        let text = request.path.unwrap_or_default();
        if text.len() > limits.max_target {
            return Err(Refusal::TargetTooLong);
        }
        let method = Method::parse(request.method.unwrap_or_default()).ok_or(Refusal::UnknownMethod)?;
        let target = Target::parse(text, method)?;
        let version = if request.version == Some(0) { Version::Http10 } else { Version::Http11 };
        let framing = framing::read(request.headers, version)?;
        table.clear();
        // It has room, because the parser's table is not larger.
        table.extend(
            request.headers.iter().map(|field| FieldSpan::new(field.name.as_bytes(), field.value, bytes)),
        );
        let host = target.authority.map(str::as_bytes).or(framing.host);
        if host.is_some_and(<[u8]>::is_empty) {
            // An http URL has a host (RFC 9110 §4.2.1).
            return Err(Refusal::Malformed("Host is empty"));
        }
        let request = Request {
            method,
            target,
            version,
            body: framing.body,
            selective: framing.selective,
            expects_continue: framing.expects,
            host,
            fields: table,
            bytes,
        };
        Ok(Head { request, persistent: framing.persistent })
    }

    /// Returns the length in bytes, including the empty line.
    pub(crate) fn length(&self) -> usize {
        self.request.bytes.len()
    }
}

/// Parses `bytes`, which must be exactly one head with its empty line, within the default bounds, as a
/// connection would. For tests of services, which have no connection.
pub fn parse_request<T>(bytes: &mut [u8], use_it: impl FnOnce(Result<Request<'_>, Refusal>) -> T) -> T {
    let (limits, length) = (Limits::default(), bytes.len());
    match Head::parse_fast(bytes, &mut FieldTable::new(), &limits) {
        Some(head) if head.length() == length => return use_it(Ok(head.request)),
        _ => {}
    }
    match scan(bytes, &mut 0, &limits) {
        Ok(Some(length)) if length == bytes.len() => {
            let mut table = FieldTable::new();
            use_it(Head::parse(bytes, &mut table, &limits).map(|head| head.request))
        }
        Ok(_) => use_it(Err(Refusal::Malformed("the head does not end where it should"))),
        Err(refusal) => use_it(Err(refusal)),
    }
}

/// `httparse` accepts the minor versions 0 and 1. A higher minor version is served as 1.1, so it is replaced
/// by 1. Another major version is refused as unknown instead of malformed.
fn settle_version(bytes: &mut [u8]) -> Result<(), Refusal> {
    let line = memchr::memchr(b'\r', bytes).unwrap_or(bytes.len());
    if line < VERSION {
        return Err(Refusal::Malformed("the request line is too short"));
    }
    match &bytes[line - VERSION..line] {
        b" HTTP/1.1" | b" HTTP/1.0" => Ok(()),
        [b' ', b'H', b'T', b'T', b'P', b'/', major @ b'0'..=b'9', b'.', b'0'..=b'9'] => match major {
            b'1' => {
                bytes[line - 1] = b'1';
                Ok(())
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
        httparse::Error::HeaderValue => Refusal::Malformed("a field value has a control character"),
        httparse::Error::Token => Refusal::Malformed("the method or target has an invalid character"),
        httparse::Error::NewLine => Refusal::Malformed("a line does not end with CR LF"),
        httparse::Error::Version => Refusal::Malformed("the version is not an HTTP version"),
        httparse::Error::Status => Refusal::Malformed("the request line is malformed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECES: [&[u8]; 25] = [
        b"GET /a?b HTTP/1.1\r\nHost: a\r\n",
        b"POST http://a/ HTTP/1.0\r\n",
        b"PUT /a HTTP/1.7\r\n",
        b"GET",
        b" ",
        b"/a%20b",
        b" HTTP/1.1",
        b" HTTP/1.0\n",
        b"\r\n",
        b"\n",
        b"\r",
        b"Host: b\r\n",
        b"Host: b\n",
        b"host:\t c \t\r\n",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Range: bytes=0-1\r\n",
        b"X : y\r\n",
        b"X: y\r\n z\r\n",
        b"X:\r\n",
        b"X: y\n",
        b"X: \0\r\n",
        b"X: \xe4\r\n",
        b"\r\n\r\n",
        b"\n\n",
    ];

    /// The strict parser accepts every head that the single pass accepts, with the same result, for any
    /// following bytes.
    #[test]
    fn one_pass_agrees_with_the_strict_parser() {
        let accepted = std::sync::atomic::AtomicUsize::new(0);
        let limits = Limits { max_head: 96, max_target: 12, max_headers: 3, ..Limits::default() };
        let check = |bytes: &[u8]| {
            let mut own = bytes.to_vec();
            let (mut first, mut second) = (FieldTable::new(), FieldTable::new());
            let Some(found) = Head::parse_fast(bytes, &mut first, &limits) else { return };
            accepted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let length = found.length();
            assert_eq!(scan(bytes, &mut 0, &limits), Ok(Some(length)));
            let known = Head::parse(&mut own[..length], &mut second, &limits);
            assert_eq!(format!("{found:?}"), format!("{:?}", known.expect("an accepted head")));
        };
        bolero::check!().with_iterations(100_000).with_type::<[u8; 6]>().for_each(|choices| {
            let pieces = choices.iter().map(|&choice| PIECES[choice as usize % PIECES.len()]);
            let assembled: Vec<u8> = pieces.flatten().copied().collect();
            check(&assembled);
            check(&[PIECES[0], &assembled].concat());
        });
        assert!(accepted.into_inner() > 1000, "too few heads were accepted");
    }
}
