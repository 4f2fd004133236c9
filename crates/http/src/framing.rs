//! What the fields of a head say about the message around it: where the body ends, whether the
//! connection goes on, and for whom the request is (RFC 9112 §3.2, §6, §9.3).
//!
//! Whatever two readers could understand differently is refused: that is how requests are smuggled.

use httparse::Header;

use crate::head::Version;
use crate::service::Refusal;

/// What follows a request's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Nothing.
    Empty,
    /// This many bytes, at least one.
    Length(u64),
    /// Chunks.
    Chunked,
}

pub(crate) struct Framing<'a> {
    pub(crate) body: Body,
    pub(crate) persistent: bool,
    pub(crate) host: Option<&'a str>,
    pub(crate) selective: bool,
}

#[derive(Default)]
struct Seen<'a> {
    host: Option<&'a [u8]>,
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    expects: bool,
    selective: bool,
}

pub(crate) fn read<'a>(fields: &'a [Header<'a>], version: Version) -> Result<Framing<'a>, Refusal> {
    let mut seen = Seen::default();
    for field in fields {
        seen.look_at(field, version)?;
    }
    if seen.host.is_none() && version == Version::Http11 {
        return Err(Refusal::Malformed("Host is missing"));
    }
    if seen.chunked && seen.length.is_some() {
        return Err(Refusal::Malformed("Content-Length stands beside Transfer-Encoding"));
    }
    let body = match (seen.chunked, seen.length) {
        (true, _) => Body::Chunked,
        (false, None | Some(0)) => Body::Empty,
        (false, Some(length)) => Body::Length(length),
    };
    // A peer that waits for `100 Continue` sends no body to an answer that it gets instead; one that
    // does not wait sends it. Who can not tell closes (RFC 9110 §10.1.1).
    let awaited = seen.expects && body != Body::Empty;
    let persistent = !seen.close && !awaited && (version == Version::Http11 || seen.keep_alive);
    let host = match seen.host {
        Some(value) => Some(std::str::from_utf8(value).map_err(|_| Refusal::Malformed("Host is invalid"))?),
        None => None,
    };
    Ok(Framing { body, persistent, host, selective: seen.selective })
}

impl<'a> Seen<'a> {
    fn look_at(&mut self, field: &Header<'a>, version: Version) -> Result<(), Refusal> {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        match field.name.len() {
            4 if is("host") => self.host(field.value),
            5 if is("range") => self.select(),
            6 if is("expect") => self.expect(field.value, version),
            8 if is("if-match") || is("if-range") => self.select(),
            10 if is("connection") => self.connection(field.value),
            13 if is("if-none-match") => self.select(),
            14 if is("content-length") => self.content_length(field.value),
            17 if is("transfer-encoding") => self.transfer_encoding(field.value, version),
            17 if is("if-modified-since") => self.select(),
            19 if is("if-unmodified-since") => self.select(),
            _ => Ok(()),
        }
    }

    fn select(&mut self) -> Result<(), Refusal> {
        self.selective = true;
        Ok(())
    }

    fn host(&mut self, value: &'a [u8]) -> Result<(), Refusal> {
        if self.host.is_some() {
            return Err(Refusal::Malformed("Host stands twice"));
        }
        if !valid_host(value) {
            return Err(Refusal::Malformed("Host is invalid"));
        }
        self.host = Some(value);
        Ok(())
    }

    fn expect(&mut self, value: &[u8], version: Version) -> Result<(), Refusal> {
        // A server that gets an expectation in a 1.0 request ignores it (RFC 9110 §10.1.1).
        if version == Version::Http10 {
            return Ok(());
        }
        if !value.eq_ignore_ascii_case(b"100-continue") {
            return Err(Refusal::UnknownExpectation);
        }
        self.expects = true;
        Ok(())
    }

    fn connection(&mut self, value: &[u8]) -> Result<(), Refusal> {
        for option in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
        Ok(())
    }

    fn content_length(&mut self, value: &[u8]) -> Result<(), Refusal> {
        // Even the same value twice is refused: nobody who means well sends it.
        if self.length.is_some() {
            return Err(Refusal::Malformed("Content-Length stands twice"));
        }
        self.length = Some(decimal(value).ok_or(Refusal::Malformed("Content-Length is not a number"))?);
        Ok(())
    }

    fn transfer_encoding(&mut self, value: &[u8], version: Version) -> Result<(), Refusal> {
        if version == Version::Http10 {
            return Err(Refusal::Malformed("Transfer-Encoding stands in an HTTP/1.0 request"));
        }
        if self.chunked {
            return Err(Refusal::Malformed("Transfer-Encoding stands twice"));
        }
        if value.eq_ignore_ascii_case(b"chunked") {
            self.chunked = true;
            return Ok(());
        }
        let last = value.rsplit(|&byte| byte == b',').next().unwrap_or_default().trim_ascii();
        if last.eq_ignore_ascii_case(b"chunked") && !value.starts_with(b",") {
            Err(Refusal::UnknownTransferCoding)
        } else {
            Err(Refusal::Malformed("Transfer-Encoding does not end with chunked"))
        }
    }
}

/// A number of decimal digits and nothing else, that fits 63 bits.
fn decimal(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 19 || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = value.iter().fold(0u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    (number <= i64::MAX as u64).then_some(number)
}

/// Whether `value` is `uri-host [ ":" port ]` (RFC 9110 §7.2). Empty is valid: the target has no
/// authority.
pub(crate) fn valid_host(value: &[u8]) -> bool {
    let port = |digits: &[u8]| digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit);
    if let Some(rest) = value.strip_prefix(b"[") {
        let Some(end) = memchr::memchr(b']', rest) else { return false };
        let literal = std::str::from_utf8(&rest[..end]).unwrap_or_default();
        let behind = &rest[end + 1..];
        let ported = behind.is_empty() || behind.strip_prefix(b":").is_some_and(port);
        return literal.parse::<std::net::Ipv6Addr>().is_ok() && ported;
    }
    let name = match memchr::memchr(b':', value) {
        Some(colon) if !port(&value[colon + 1..]) || colon == 0 => return false,
        Some(colon) => &value[..colon],
        None => value,
    };
    name.len() <= 255
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%".contains(byte))
}
