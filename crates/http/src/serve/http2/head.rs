//! Requests from decoded field blocks (RFC 9113 §8.2, §8.3).

use tenfold_wire::hpack::FieldList;

use crate::h1::framing::{decimal, is_selective};
use crate::h1::head::FieldTable;
use crate::limits::Limits;
use crate::message::connection::Scheme;
use crate::message::field::{FieldValue, is_lower_case_token, is_token};
use crate::message::refusal::Refusal;
use crate::message::request::{Body, FieldSpan, Method, Request, Target, Version, valid_host};
use crate::mux::priority::Priority;

/// The request of a stream.
pub(super) struct StreamHead<'a> {
    pub(super) request: Request<'a>,
    /// The value of `Content-Length`.
    pub(super) declared: Option<u64>,
    /// The value of the `Priority` field (RFC 9218 §5).
    pub(super) priority: Option<Priority>,
}

/// The reason why a field block is not served as a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadError {
    /// The request is malformed (§8.1.1): the stream ends with PROTOCOL_ERROR.
    Malformed(&'static str),
    /// The response is an error.
    Refused(Refusal),
}

/// The facts that the fields of a block must agree with.
pub(super) struct HeadContext<'a> {
    pub(super) scheme: Scheme,
    pub(super) end_stream: bool,
    pub(super) limits: &'a Limits,
}

/// The values of the fields with a meaning for the message itself.
#[derive(Default)]
struct SeenFields<'a> {
    method: Option<&'a [u8]>,
    scheme: Option<&'a [u8]>,
    authority: Option<&'a [u8]>,
    path: Option<&'a [u8]>,
    host: Option<&'a [u8]>,
    declared: Option<u64>,
    priority: Option<Priority>,
    expects: bool,
    unknown_expectation: bool,
    selective: bool,
    cookies: usize,
}

/// Reads the request of `list`. `table` receives the places of its fields, and `joined` their bytes if the crumbs of
/// a cookie must be joined (§8.2.3).
pub(super) fn read<'a>(
    list: &'a FieldList,
    table: &'a mut FieldTable,
    joined: &'a mut Vec<u8>,
    HeadContext { scheme, end_stream, limits }: &HeadContext<'_>,
) -> Result<StreamHead<'a>, HeadError> {
    use HeadError::{Malformed, Refused};
    if list.is_over() {
        return Err(Refused(Refusal::HeadTooLarge));
    }
    let mut seen = SeenFields::default();
    table.clear();
    for (name, value) in list.iter() {
        if FieldValue::new(value).is_none() {
            return Err(Malformed("a field value has a control character, or white space at an end"));
        }
        if name.first() == Some(&b':') {
            if !table.is_empty() {
                return Err(Malformed("a pseudo-field follows a field"));
            }
            seen.pseudo(name, value).map_err(Malformed)?;
            continue;
        }
        if !is_lower_case_token(name) {
            return Err(Malformed("a field name is not a token in lower case"));
        }
        seen.field(name, value).map_err(Malformed)?;
        if table.try_push(FieldSpan::new(name, value, list.bytes())).is_err()
            || table.len() > limits.max_headers
        {
            return Err(Refused(Refusal::HeadTooLarge));
        }
    }
    let SeenFields { method, scheme: asked, authority, path, host, declared, .. } = seen;
    let method = method.ok_or(Malformed("the request has no :method"))?;
    let method = std::str::from_utf8(method).ok().filter(|method| is_token(method.as_bytes()));
    let method = method.ok_or(Malformed(":method is not a token"))?;
    let connects = method == "CONNECT";
    if asked.is_none() != connects || path.is_none() != connects {
        return Err(Malformed(":scheme or :path is missing, or CONNECT has them"));
    }
    if authority.is_some_and(|authority| !valid_host(authority)) || host.is_some_and(|host| !valid_host(host))
    {
        return Err(Malformed("the host is invalid"));
    }
    if host.zip(authority).is_some_and(|(host, authority)| !host.eq_ignore_ascii_case(authority)) {
        return Err(Malformed("Host differs from :authority"));
    }
    let host = authority.or(host).filter(|host| !host.is_empty()).ok_or(Malformed("there is no host"))?;
    let text = if connects { host } else { path.unwrap_or_default() };
    if text.len() > limits.max_target {
        return Err(Refused(Refusal::TargetTooLong));
    }
    let method = Method::parse(method).ok_or(Refused(Refusal::UnknownMethod))?;
    let text = std::str::from_utf8(text).map_err(|_| Malformed(":path is not ASCII"))?;
    let is_of_server = text == "*" && method == Method::Options;
    if !(connects || text.starts_with('/') || is_of_server) {
        return Err(Malformed(":path does not begin with a slash"));
    }
    let target = Target::parse(text, method).map_err(|refusal| match refusal {
        Refusal::Malformed(reason) => Malformed(reason),
        refusal => Refused(refusal),
    })?;
    let own: &[u8] = if *scheme == Scheme::Https { b"https" } else { b"http" };
    if asked.is_some_and(|asked| !asked.eq_ignore_ascii_case(own)) {
        return Err(Refused(Refusal::Misdirected));
    }
    if seen.unknown_expectation {
        return Err(Refused(Refusal::UnknownExpectation));
    }
    let body = match declared {
        None | Some(0) if *end_stream => Body::Empty,
        Some(_) if *end_stream => return Err(Malformed("Content-Length without content")),
        Some(length @ 1..) => Body::Length(length),
        _ => Body::Streamed,
    };
    let bytes = if seen.cookies > 1 { join_cookies(list, table, joined) } else { list.bytes() };
    let request = Request {
        method,
        target,
        version: Version::Http2,
        body,
        selective: seen.selective,
        expects_continue: seen.expects && body != Body::Empty,
        host: Some(host),
        fields: table,
        bytes,
    };
    Ok(StreamHead { request, declared, priority: seen.priority })
}

/// Whether a field is for a connection of HTTP/1 (§8.2.2).
fn is_of_connection(name: &[u8]) -> bool {
    matches!(name, b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade")
}

/// Whether `list` may be the trailers of a request: they are dropped, but must be well-formed (§8.1).
pub(super) fn are_trailers(list: &FieldList) -> bool {
    list.iter().all(|(name, value)| {
        is_lower_case_token(name) && !is_of_connection(name) && FieldValue::new(value).is_some()
    })
}

impl<'a> SeenFields<'a> {
    fn pseudo(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), &'static str> {
        let slot = match name {
            b":method" => &mut self.method,
            b":scheme" => &mut self.scheme,
            b":authority" => &mut self.authority,
            b":path" => &mut self.path,
            _ => return Err("a pseudo-field is not of a request"),
        };
        match slot.replace(value) {
            None => Ok(()),
            Some(_) => Err("a pseudo-field is given twice"),
        }
    }

    fn field(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), &'static str> {
        match name {
            name if is_of_connection(name) => return Err("a field is for connections of HTTP/1"),
            b"te" if !value.eq_ignore_ascii_case(b"trailers") => return Err("TE is not trailers"),
            b"host" if self.host.replace(value).is_some() => return Err("Host is given twice"),
            b"content-length" => {
                let length = decimal(value).ok_or("Content-Length is not a number")?;
                if self.declared.replace(length).is_some() {
                    return Err("Content-Length is given twice");
                }
            }
            b"expect" => match value.eq_ignore_ascii_case(b"100-continue") {
                true => self.expects = true,
                false => self.unknown_expectation = true,
            },
            b"priority" => {
                let before = self.priority.unwrap_or_default();
                self.priority = before.apply(value).or(self.priority);
            }
            b"cookie" => self.cookies += 1,
            name => self.selective |= is_selective(name),
        }
        Ok(())
    }
}

/// Joins the crumbs of the cookie to one field. Returns the bytes to which `table` refers.
fn join_cookies<'a>(list: &FieldList, table: &mut FieldTable, joined: &'a mut Vec<u8>) -> &'a [u8] {
    joined.clear();
    joined.extend_from_slice(list.bytes());
    let begin = joined.len();
    joined.extend_from_slice(b"cookie");
    let value = joined.len();
    for (_, crumb) in list.iter().filter(|(name, _)| *name == b"cookie") {
        if joined.len() > value {
            joined.extend_from_slice(b"; ");
        }
        joined.extend_from_slice(crumb);
    }
    table.retain(|field| !field.is("cookie", list.bytes()));
    table.push(FieldSpan::new(&joined[begin..value], &joined[value..], joined));
    joined
}
