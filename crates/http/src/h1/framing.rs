//! The fields of a head that affect message framing: the end of the body, the persistence of the connection,
//! and the host (RFC 9112 §3.2, §6, §9.3).
//!
//! An ambiguous head is refused, because request smuggling exploits parsers that disagree.

use httparse::Header;

use crate::message::refusal::Refusal;
use crate::message::request::{Body, Version, valid_host};

pub(crate) struct Framing<'a> {
    pub(crate) body: Body,
    pub(crate) expects: bool,
    pub(crate) persistent: bool,
    /// Valid, and thus ASCII.
    pub(crate) host: Option<&'a [u8]>,
    pub(crate) selective: bool,
}

/// The values of the fields that affect framing.
#[derive(Default)]
struct FramingFields<'a> {
    host: Option<&'a [u8]>,
    length: Option<u64>,
    codings: Option<TransferCodings>,
    close: bool,
    keep_alive: bool,
    expects: bool,
    selective: bool,
}

/// The list of transfer codings, of all fields together (RFC 9110 §5.3).
#[derive(Clone, Copy, Default)]
struct TransferCodings {
    /// Whether the list contains another coding than `chunked`.
    others: bool,
    /// Whether the list ends with `chunked`.
    chunked: bool,
}

#[inline(always)]
pub(crate) fn read<'a>(fields: &[Header<'a>], version: Version) -> Result<Framing<'a>, Refusal> {
    let mut seen = FramingFields::default();
    for field in fields {
        seen.look_at(field, version)?;
    }
    if seen.host.is_none() && version == Version::Http11 {
        return Err(Refusal::Malformed("Host is missing"));
    }
    let body = match (seen.codings, seen.length) {
        (Some(_), Some(_)) => {
            return Err(Refusal::Malformed("both Content-Length and Transfer-Encoding are given"));
        }
        (Some(TransferCodings { chunked: false, .. }), None) => {
            return Err(Refusal::Malformed("Transfer-Encoding does not end with chunked"));
        }
        (Some(TransferCodings { others: true, .. }), None) => return Err(Refusal::UnknownTransferCoding),
        (Some(_), None) => Body::Streamed,
        (None, None | Some(0)) => Body::Empty,
        (None, Some(length)) => Body::Length(length),
    };
    let persistent = !seen.close && (version == Version::Http11 || seen.keep_alive);
    let expects = seen.expects && body != Body::Empty;
    Ok(Framing { body, expects, persistent, host: seen.host, selective: seen.selective })
}

impl<'a> FramingFields<'a> {
    fn look_at(&mut self, field: &Header<'a>, version: Version) -> Result<(), Refusal> {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        match field.name.len() {
            4 if is("host") => self.host(field.value),
            6 if is("expect") => self.expect(field.value, version),
            10 if is("connection") => self.connection(field.value),
            14 if is("content-length") => self.content_length(field.value),
            17 if is("transfer-encoding") => self.transfer_encoding(field.value, version),
            5 | 8 | 13 | 17 | 19 => {
                self.selective |= is_selective(field.name.as_bytes());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn host(&mut self, value: &'a [u8]) -> Result<(), Refusal> {
        if self.host.is_some() {
            return Err(Refusal::Malformed("Host is given twice"));
        }
        if !valid_host(value) {
            return Err(Refusal::Malformed("Host is invalid"));
        }
        self.host = Some(value);
        Ok(())
    }

    fn expect(&mut self, value: &[u8], version: Version) -> Result<(), Refusal> {
        // An expectation in an HTTP/1.0 request is ignored (RFC 9110 §10.1.1).
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
        // Even two equal values are refused: no correct client sends them.
        if self.length.is_some() {
            return Err(Refusal::Malformed("Content-Length is given twice"));
        }
        self.length = Some(decimal(value).ok_or(Refusal::Malformed("Content-Length is not a number"))?);
        Ok(())
    }

    fn transfer_encoding(&mut self, value: &[u8], version: Version) -> Result<(), Refusal> {
        if version == Version::Http10 {
            return Err(Refusal::Malformed("an HTTP/1.0 request has Transfer-Encoding"));
        }
        let seen = self.codings.get_or_insert_default();
        // Empty elements are ignored (RFC 9110 §5.6.1.2).
        let codings = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        for coding in codings.filter(|coding| !coding.is_empty()) {
            if seen.chunked {
                return Err(Refusal::Malformed("Transfer-Encoding has another coding after chunked"));
            }
            match coding.eq_ignore_ascii_case(b"chunked") {
                true => seen.chunked = true,
                false => seen.others = true,
            }
        }
        Ok(())
    }
}

/// Whether a field of this name can make the response conditional or partial.
#[inline]
pub(crate) fn is_selective(name: &[u8]) -> bool {
    let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
    match name.len() {
        5 => is("range"),
        8 => is("if-match") || is("if-range"),
        13 => is("if-none-match"),
        17 => is("if-modified-since"),
        19 => is("if-unmodified-since"),
        _ => false,
    }
}

/// Parses a decimal number that fits 63 bits. It may begin with zeros.
pub(crate) fn decimal(value: &[u8]) -> Option<u64> {
    let digits = value.len();
    let value = &value[value.iter().take_while(|byte| **byte == b'0').count()..];
    if digits == 0 || value.len() > 19 || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = value.iter().fold(0u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    (number <= i64::MAX as u64).then_some(number)
}
