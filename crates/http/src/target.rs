//! What a request is about (RFC 9112 §3.2).

use crate::framing::{allowing, valid_host};
use crate::head::Method;
use crate::service::Refusal;

/// A request target of a form that its method allows, of characters that it allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// The path, as it came: percent-encoded, beginning with `/`; or `*` for `OPTIONS *`.
    pub path: &'a str,
    /// What follows the `?`, without it.
    pub query: Option<&'a str>,
    /// The host and port of an absolute-form target.
    pub authority: Option<&'a str>,
}

impl<'a> Target<'a> {
    pub(crate) fn parse(text: &'a str, method: Method) -> Result<Target<'a>, Refusal> {
        match text.as_bytes().first() {
            _ if method == Method::Connect => Target::authority_form(text),
            Some(b'/') => Target::path_and_query(text, None),
            Some(b'*') if text == "*" && method == Method::Options => {
                Ok(Target { path: text, query: None, authority: None })
            }
            _ => Target::absolute(text),
        }
    }

    fn authority_form(text: &'a str) -> Result<Target<'a>, Refusal> {
        // The port may not be left out (RFC 9112 §3.2.3).
        let ported = text.ends_with(|last: char| last.is_ascii_digit()) && text.contains(':');
        if valid_host(text.as_bytes()) && ported {
            Ok(Target { path: "*", query: None, authority: Some(text) })
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
            None => Ok(Target { path: "/", query: None, authority: Some(authority) }),
        }
    }

    fn path_and_query(text: &'a str, authority: Option<&'a str>) -> Result<Target<'a>, Refusal> {
        let end = text.bytes().position(|byte| !PATH[byte as usize]).unwrap_or(text.len());
        let (path, query) = match text.as_bytes().get(end) {
            None => (text, None),
            Some(b'?') => (&text[..end], Some(&text[end + 1..])),
            Some(_) => {
                return Err(Refusal::Malformed("the target's path holds a character that has to be encoded"));
            }
        };
        if query.is_some_and(|query| !query.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#')) {
            return Err(Refusal::Malformed("the target's query holds a character that has to be encoded"));
        }
        Ok(Target { path, query, authority })
    }
}

/// Bytes that may stand in a path: those of RFC 3986 §3.3, and `|`, `[` and `]`, which browsers leave as
/// they are.
static PATH: [bool; 256] = allowing(b"/-._~%!$&'()*+,;=:@|[]");
