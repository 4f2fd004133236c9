//! The PROXY protocol, versions 1 and 2: a header at the beginning of a connection in which a proxy names its
//! client. It precedes all other bytes, including TLS.
//!
//! HAProxy's specification defines the format (`doc/proxy-protocol.txt`, sections 2.1 and 2.2). Parsing is
//! strict. The first bytes distinguish the versions, and differ from those of requests and TLS records.

use std::fmt;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::clock::Instant;
use crate::io::{Io, IoError, Patience, Received};

/// The most bytes of a header. Version 2 permits more, but proxies send some hundreds.
pub const MOST_BYTES: usize = 4096;
/// The most bytes of a header of version 1, including its line end.
const MOST_BYTES_1: usize = 107;

const SIGNATURE_1: &[u8] = b"PROXY ";
const SIGNATURE_2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// The length of version 2's fixed part: the signature, version and command, family and transport, and the
/// length of the rest.
const FIXED_2: usize = SIGNATURE_2.len() + 4;

/// A PROXY header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyHeader {
    /// The number of bytes of the header.
    pub length: usize,
    /// The client; None if the proxy itself is the client (`LOCAL`), or the client is unknown (`UNKNOWN`,
    /// `UNSPEC`, a Unix socket).
    pub source: Option<SocketAddr>,
}

/// The reason why a connection has no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyError {
    /// The peer is not a trusted proxy.
    Untrusted,
    /// The first bytes do not begin a header.
    Missing,
    /// The version is neither 1 nor 2.
    Version,
    /// The header is longer than [`MOST_BYTES`], or than 107 bytes in version 1.
    TooLong,
    /// The specification does not permit a part of the header.
    Malformed,
    /// The connection ended before the header did.
    Cut,
    /// The header was not complete in time.
    TimedOut,
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProxyError::Untrusted => "the peer is not a trusted-proxy",
            ProxyError::Missing => "it does not begin with a PROXY header",
            ProxyError::Version => "the version of its PROXY header is neither 1 nor 2",
            ProxyError::TooLong => "its PROXY header is too long",
            ProxyError::Malformed => "its PROXY header is malformed",
            ProxyError::Cut => "it ended within its PROXY header",
            ProxyError::TimedOut => "its PROXY header was not complete within head-timeout",
        })
    }
}

/// Parses the header at the beginning of `input`; None if it is incomplete. An error does not depend on
/// further input.
pub fn parse(input: &[u8]) -> Result<Option<ProxyHeader>, ProxyError> {
    match () {
        () if input.starts_with(SIGNATURE_1) => parse_1(input),
        () if input.starts_with(SIGNATURE_2) => parse_2(input),
        () if SIGNATURE_1.starts_with(input) || SIGNATURE_2.starts_with(input) => Ok(None),
        () => Err(ProxyError::Missing),
    }
}

/// Parses `PROXY TCP4 192.0.2.1 198.51.100.1 56324 443` with a line end.
fn parse_1(input: &[u8]) -> Result<Option<ProxyHeader>, ProxyError> {
    let within = &input[..input.len().min(MOST_BYTES_1)];
    let Some(end) = memchr::memchr(b'\n', within) else {
        return if within.len() < MOST_BYTES_1 { Ok(None) } else { Err(ProxyError::TooLong) };
    };
    let line = within[SIGNATURE_1.len()..end].strip_suffix(b"\r").ok_or(ProxyError::Malformed)?;
    let line = std::str::from_utf8(line).map_err(|_| ProxyError::Malformed)?;
    let source = match line.split_once(' ') {
        Some(("TCP4", rest)) => Some(addresses_1::<Ipv4Addr>(rest).ok_or(ProxyError::Malformed)?),
        Some(("TCP6", rest)) => Some(addresses_1::<Ipv6Addr>(rest).ok_or(ProxyError::Malformed)?),
        // The rest of the line after UNKNOWN is ignored.
        Some(("UNKNOWN", _)) => None,
        None if line == "UNKNOWN" => None,
        _ => return Err(ProxyError::Malformed),
    };
    Ok(Some(ProxyHeader { length: end + 1, source }))
}

/// Parses two addresses and two ports. Returns the first address and port.
fn addresses_1<A: std::str::FromStr + Into<IpAddr>>(text: &str) -> Option<SocketAddr> {
    let mut parts = text.split(' ');
    let mut address = || parts.next()?.parse::<A>().ok();
    let (source, _) = (address()?, address()?);
    let mut port = || {
        let digits = parts.next()?;
        let canonical = digits == "0" || !digits.starts_with(['0', '+']);
        digits.parse::<u16>().ok().filter(|_| canonical)
    };
    let (port, _) = (port()?, port()?);
    parts.next().is_none().then(|| SocketAddr::new(source.into(), port))
}

fn parse_2(input: &[u8]) -> Result<Option<ProxyHeader>, ProxyError> {
    let rest = &input[SIGNATURE_2.len()..];
    let Some(&version_and_command) = rest.first() else { return Ok(None) };
    if version_and_command >> 4 != 2 {
        return Err(ProxyError::Version);
    }
    let is_local = match version_and_command & 15 {
        0 => true,
        1 => false,
        _ => return Err(ProxyError::Malformed),
    };
    let &[_, kind, high, low, ref rest @ ..] = rest else { return Ok(None) };
    let declared = usize::from(u16::from_be_bytes([high, low]));
    if FIXED_2 + declared > MOST_BYTES {
        return Err(ProxyError::TooLong);
    }
    let Some(body) = rest.get(..declared) else { return Ok(None) };
    // TLVs may follow the addresses, and are skipped.
    let source = if is_local { None } else { source_2(kind, body)? };
    Ok(Some(ProxyHeader { length: FIXED_2 + declared, source }))
}

/// Returns the source for a family and transport. Two addresses precede two ports.
fn source_2(kind: u8, body: &[u8]) -> Result<Option<SocketAddr>, ProxyError> {
    let least = match kind >> 4 {
        0 => 0,
        1 => 12,
        2 => 36,
        3 => 216,
        _ => return Err(ProxyError::Malformed),
    };
    if kind & 15 > 2 || body.len() < least {
        return Err(ProxyError::Malformed);
    }
    Ok(match (kind, body) {
        (0x11, &[a, b, c, d, _, _, _, _, high, low, ..]) => {
            Some(SocketAddr::new([a, b, c, d].into(), u16::from_be_bytes([high, low])))
        }
        (0x21, _) => {
            let address = body.first_chunk::<16>().ok_or(ProxyError::Malformed)?;
            Some(SocketAddr::new((*address).into(), u16::from_be_bytes([body[32], body[33]])))
        }
        _ => None,
    })
}

/// The reasons why [`receive`] returns no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoHeader {
    /// No byte has arrived: the connection can be parked.
    Idle,
    /// The peer ended the connection without sending a byte, as probes do.
    Closed,
    /// The connection is refused.
    Refused(ProxyError),
}

/// Receives the header at the beginning of a connection, until `by`. Returns the client.
pub async fn receive<I: Io>(io: &mut I, by: Instant) -> Result<Option<SocketAddr>, NoHeader> {
    loop {
        let input = io.split().0;
        if let Some(header) = parse(input).map_err(NoHeader::Refused)? {
            io.consume(header.length);
            return Ok(header.source);
        }
        let begun = !input.is_empty();
        let patience = if begun { Patience::Wait } else { Patience::Park };
        match poll_fn(|cx| io.poll_receive(cx, MOST_BYTES, patience, by)).await {
            Ok(Received::Bytes) => {}
            Ok(Received::Idle) => return Err(NoHeader::Idle),
            Ok(Received::End | Received::Full) | Err(_) if !begun => return Err(NoHeader::Closed),
            Ok(Received::Full) => return Err(NoHeader::Refused(ProxyError::TooLong)),
            Err(IoError::TimedOut) => return Err(NoHeader::Refused(ProxyError::TimedOut)),
            Ok(Received::End) | Err(_) => return Err(NoHeader::Refused(ProxyError::Cut)),
        }
    }
}
