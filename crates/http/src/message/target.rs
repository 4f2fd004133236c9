//! The target of a request (RFC 9110 §7.1).

use std::net::Ipv6Addr;

use super::refusal::Refusal;
use crate::message::request::Method;

/// A request target of a form that its method allows, of characters that it allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// All of it, as it came.
    pub text: &'a str,
    /// The path, as it came: percent-encoded, beginning with `/`; or `*` for `OPTIONS *`.
    pub path: &'a str,
    /// The query: the text behind the first `?`.
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
        // The part behind an authority was parsed like a target of its own.
        target.map(|target| Target { text, ..target })
    }

    fn authority_form(text: &'a str) -> Result<Target<'a>, Refusal> {
        // The port may not be left out (RFC 9112 §3.2.3).
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

/// Bytes that may stand in a path: those of RFC 3986 §3.3, and `|`, `[` and `]`, which browsers leave as
/// they are.
static PATH: [bool; 256] = allowing(b"/-._~%!$&'()*+,;=:@|[]");

/// Whether `value` is `uri-host [ ":" port ]` (RFC 9110 §7.2). Empty is valid: the target has no
/// authority.
pub(crate) fn valid_host(value: &[u8]) -> bool {
    if let Some(rest) = value.strip_prefix(b"[") {
        let Some(end) = memchr::memchr(b']', rest) else { return false };
        let address = std::str::from_utf8(&rest[..end]).unwrap_or_default();
        let behind = &rest[end + 1..];
        return address.parse::<Ipv6Addr>().is_ok()
            && (behind.is_empty() || behind.strip_prefix(b":").is_some_and(valid_port));
    }
    let end = value.iter().position(|&byte| !NAME[byte as usize]).unwrap_or(value.len());
    let end = if value.get(end) == Some(&b'%') { end_of_escaped(value) } else { end };
    let (name, behind) = value.split_at(end);
    let ends = behind.is_empty() || (!name.is_empty() && behind[0] == b':' && valid_port(&behind[1..]));
    ends && name.len() <= 255
}

/// Returns the end of a registered name that contains percent-encoded bytes.
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

/// Whether `digits` are a port; without digits, it is the scheme's default (RFC 3986 §3.2.3).
fn valid_port(digits: &[u8]) -> bool {
    // Every request has a host, so this reads each digit once; `decimal` reads it twice.
    let mut port = 0;
    digits.iter().all(|digit| {
        port = port * 10 + u32::from(digit.wrapping_sub(b'0'));
        digit.is_ascii_digit() && port <= u32::from(u16::MAX)
    })
}

/// Bytes that may stand in a registered name as they are (RFC 3986 §3.2.2).
static NAME: [bool; 256] = allowing(b"-._~!$&'()*+,;=");

/// A table that is true for letters, digits and `others`.
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

/// Writes a path with the characters that RFC 3986 §3.3 does not allow there as percent-encoded bytes.
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
