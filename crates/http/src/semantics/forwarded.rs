//! The client of a request that passed through proxies: `X-Forwarded-For` and related fields, and `Forwarded`
//! (RFC 7239).
//!
//! Each proxy appends the address of its own client. So addresses are read from the right, as long as they
//! belong to trusted proxies: all further addresses may be forged. Lists are also split from the right, so
//! that text sent by a client cannot hide text that a proxy appended.

use std::net::{IpAddr, SocketAddr};

use crate::message::connection::{Connection, Peer, Scheme};
use crate::message::request::Request;
use crate::message::trust::TrustedProxy;

/// The fields that are used. A proxy must replace or remove them in its clients' requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForwardedFields {
    /// `X-Forwarded-For`.
    pub x_for: bool,
    /// `X-Forwarded-Proto`.
    pub x_proto: bool,
    /// `X-Forwarded-Host`.
    pub x_host: bool,
    /// `Forwarded`. Its host is used only if it is the only field.
    pub forwarded: bool,
}

impl ForwardedFields {
    /// Whether no field is used.
    pub fn is_empty(&self) -> bool {
        *self == ForwardedFields::default()
    }
}

/// The proxies whose fields are used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies {
    /// Their addresses.
    pub proxies: Vec<TrustedProxy>,
    /// The fields in which they name clients.
    pub fields: ForwardedFields,
}

/// The client of a request as reported by proxies. The connection supplies absent parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForwardedClient<'a> {
    /// The address of the client.
    pub address: Option<IpAddr>,
    /// The scheme of the requested URL.
    pub scheme: Option<Scheme>,
    /// The requested host, unchecked.
    pub host: Option<&'a str>,
    /// Whether `X-Forwarded-For` and `Forwarded` disagree about the client. One of them is forged, so neither
    /// is used.
    pub ambiguous: bool,
}

impl ForwardedClient<'_> {
    /// Returns the connection with the client as its peer.
    pub fn connection(&self, connection: &Connection) -> Connection {
        Connection {
            peer: self.address.map_or(connection.peer, |address| Peer::Internet((address, 0).into())),
            scheme: self.scheme.unwrap_or(connection.scheme),
            ..connection.clone()
        }
    }
}

impl TrustedProxies {
    /// Whether the fields of any peer are used.
    pub fn any(&self) -> bool {
        !self.fields.is_empty() && !self.proxies.is_empty()
    }

    /// Whether the fields of this peer are used.
    pub fn reads(&self, peer: &Peer) -> bool {
        !self.fields.is_empty() && self.trusts(peer)
    }

    /// Whether this peer is a trusted proxy.
    pub fn trusts(&self, peer: &Peer) -> bool {
        self.proxies.iter().any(|proxy| proxy.is(peer))
    }

    /// Returns the client of a request from a trusted proxy.
    pub fn client<'a>(&self, request: &Request<'a>) -> ForwardedClient<'a> {
        let ForwardedFields { x_for, x_proto, x_host, forwarded } = self.fields;
        let has = |name| request.values(name).next().is_some();
        let by_list = (x_for && has("x-forwarded-for")).then(|| self.client_of_list(request));
        let element = (forwarded && has("forwarded")).then(|| self.client_of_elements(request));
        let ambiguous = by_list.zip(element).is_some_and(|(address, element)| element.address != address);
        let element = element.filter(|_| !ambiguous).unwrap_or_default();
        let scheme = if x_proto { last(request, "x-forwarded-proto").map(scheme_of) } else { None };
        let host = if x_host { last(request, "x-forwarded-host") } else { None };
        let is_only = forwarded && !x_for && !x_proto && !x_host;
        ForwardedClient {
            address: if ambiguous { None } else { by_list.flatten().or(element.address) },
            scheme: scheme.unwrap_or(element.scheme),
            host: host.or(element.host.filter(|_| is_only)),
            ambiguous,
        }
    }

    fn client_of_list(&self, request: &Request<'_>) -> Option<IpAddr> {
        let lines = request.values("x-forwarded-for").rev();
        let hops = lines.flat_map(|line| line.rsplit(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
        let mut client = None;
        for hop in hops.filter(|hop| !hop.is_empty()) {
            let Some(address) = address_of(hop) else { break };
            client = Some(address);
            if !self.holds(address) {
                break;
            }
        }
        client
    }

    fn client_of_elements<'a>(&self, request: &Request<'a>) -> Element<'a> {
        let mut client = Element::default();
        for line in request.values("forwarded").rev() {
            for part in elements(line).map(<[u8]>::trim_ascii).filter(|part| !part.is_empty()) {
                let element = Element::parse(part).unwrap_or_default();
                let Some(address) = element.address else { return client };
                client = element;
                if !self.holds(address) {
                    return client;
                }
            }
        }
        client
    }

    fn holds(&self, address: IpAddr) -> bool {
        self.proxies.iter().any(|proxy| proxy.holds(address))
    }
}

/// Returns the last element of a list field.
fn last<'a>(request: &Request<'a>, name: &str) -> Option<&'a str> {
    let line = request.values(name).next_back()?;
    let part = line.rsplit(|byte| *byte == b',').next()?;
    std::str::from_utf8(part.trim_ascii()).ok()
}

fn scheme_of(name: &str) -> Option<Scheme> {
    match () {
        () if name.eq_ignore_ascii_case("https") => Some(Scheme::Https),
        () if name.eq_ignore_ascii_case("http") => Some(Scheme::Http),
        () => None,
    }
}

/// Parses an address with or without a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`,
/// `[2001:db8::1]:80`.
fn address_of(bytes: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(bytes).ok()?;
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let socket = || text.parse::<SocketAddr>().ok().map(|socket| socket.ip());
    bare.parse().ok().or_else(socket)
}

/// An element of `Forwarded` (RFC 7239 §4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Element<'a> {
    address: Option<IpAddr>,
    scheme: Option<Scheme>,
    host: Option<&'a str>,
}

impl<'a> Element<'a> {
    /// Parses an element; None if it is malformed.
    fn parse(mut rest: &'a [u8]) -> Option<Element<'a>> {
        let mut element = Element::default();
        let mut seen = [false; 3];
        loop {
            let equals = memchr::memchr(b'=', rest)?;
            let (name, rest_of_pair) = (rest[..equals].trim_ascii(), &rest[equals + 1..]);
            let (value, tail) = value(rest_of_pair)?;
            let index =
                [&b"for"[..], b"proto", b"host"].iter().position(|known| name.eq_ignore_ascii_case(known));
            if let Some(index) = index {
                // Each parameter occurs at most once.
                if std::mem::replace(&mut seen[index], true) {
                    return None;
                }
                match index {
                    0 => element.address = address_of(value),
                    1 => element.scheme = std::str::from_utf8(value).ok().and_then(scheme_of),
                    _ => element.host = std::str::from_utf8(value).ok(),
                }
            }
            match tail.trim_ascii_start().split_first() {
                None => return Some(element),
                Some((b';', more)) if more.trim_ascii().is_empty() => return Some(element),
                Some((b';', more)) => rest = more,
                Some(_) => return None,
            }
        }
    }
}

/// Splits a token or a quoted string from the front. A value with escapes is neither an address nor a host.
fn value(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    if let Some(quoted) = bytes.strip_prefix(b"\"") {
        let end = memchr::memchr(b'"', quoted)?;
        return Some((&quoted[..end], &quoted[end + 1..])).filter(|(value, _)| !value.contains(&b'\\'));
    }
    let end = bytes.iter().position(|byte| b"; \t\"".contains(byte)).unwrap_or(bytes.len());
    Some(bytes.split_at(end))
}

/// Returns the elements of a line from the right, split at commas outside quoted strings.
fn elements(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let mut quoted = false;
        let comma = (0..line.len()).rev().find(|&at| {
            quoted ^= line[at] == b'"' && !(quoted && is_escaped(line, at));
            line[at] == b',' && !quoted
        });
        rest = comma.map(|at| &line[..at]);
        Some(comma.map_or(line, |at| &line[at + 1..]))
    })
}

/// Whether an odd number of backslashes precedes this position.
fn is_escaped(line: &[u8], at: usize) -> bool {
    line[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

#[cfg(test)]
mod tests;
