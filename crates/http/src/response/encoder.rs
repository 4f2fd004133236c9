//! The interface between a response and the wire format of its version.

use super::http2::Http2Encoder;
use crate::h1::encode::Http1Encoder;
use crate::message::header_lines::HeaderLines;
use crate::out::Out;

/// The encoder of a response: variants for HTTP/1 and HTTP/2, which encode in place, and a variant that stores a
/// [`Response`](super::value::Response) for the connection to encode. Its methods are called in this order:
/// `interim` any number of times, `begin`, any number of fields, `end`.
pub(crate) enum Encoder<'w> {
    Http1(Http1Encoder),
    Http2(Http2Encoder<'w>),
    /// Stores heads as fields.
    Value(&'w mut Heads),
}

impl Encoder<'_> {
    #[inline]
    pub(super) fn reborrow(&mut self) -> Encoder<'_> {
        match self {
            Encoder::Http1(http1) => Encoder::Http1(*http1),
            Encoder::Http2(http2) => Encoder::Http2(http2.reborrow()),
            Encoder::Value(heads) => Encoder::Value(heads),
        }
    }

    /// Makes the connection of HTTP/1 end after this response. Must precede `begin`. A stream ends with its response.
    pub(super) fn close(&mut self) {
        match self {
            Encoder::Http1(http1) => http1.persistent = false,
            Encoder::Http2(_) => {}
            Encoder::Value(heads) => heads.closes = true,
        }
    }

    /// Encodes an interim response (RFC 9110 §15.2).
    pub(super) fn interim(&mut self, status: u16, phrase: &'static str, fields: &HeaderLines, out: &mut Out) {
        match self {
            Encoder::Http1(http1) => http1.interim(status, phrase, fields, out),
            Encoder::Http2(http2) => http2.interim(status, fields),
            Encoder::Value(heads) => heads.interim.push((status, phrase, fields.clone())),
        }
    }

    /// Begins the final head, with the fields that the version adds. Returns its mark for `end`.
    pub(super) fn begin(&mut self, status: u16, out: &mut Out) -> usize {
        let mark = out.mark();
        match self {
            Encoder::Http1(http1) => http1.begin(status, out),
            Encoder::Http2(http2) => http2.begin(status),
            Encoder::Value(heads) => heads.last = Some((status, HeaderLines::default())),
        }
        mark
    }

    /// Encodes a field with a valid name and value.
    pub(super) fn field(&mut self, name: &str, value: &[u8], out: &mut Out) {
        match self {
            Encoder::Http1(http1) => http1.field(name, value, out),
            Encoder::Http2(http2) => http2.field(name, value),
            Encoder::Value(heads) => heads.fields().push(name, value),
        }
    }

    /// Encodes these fields in order.
    pub(super) fn fields(&mut self, fields: &HeaderLines, out: &mut Out) {
        match self {
            Encoder::Http1(_) => out.stage(fields.as_bytes()),
            Encoder::Http2(http2) => {
                fields.iter().for_each(|(name, value)| http2.field(name.as_str(), value.as_bytes()));
            }
            Encoder::Value(heads) => heads.fields().append(fields),
        }
    }

    /// Ends the final head that began at `mark`.
    pub(super) fn end(&mut self, mark: usize, out: &mut Out) {
        match self {
            Encoder::Http1(http1) => http1.end(mark, out),
            Encoder::Http2(http2) => http2.end(),
            Encoder::Value(_) => {}
        }
    }
}

/// Heads that are not yet encoded.
#[derive(Default)]
pub(crate) struct Heads {
    /// Interim responses, with their reason phrases.
    pub(super) interim: Vec<(u16, &'static str, HeaderLines)>,
    /// The status and the fields of the final head.
    pub(crate) last: Option<(u16, HeaderLines)>,
    /// Whether the connection ends after the response.
    pub(super) closes: bool,
}

impl Heads {
    /// Returns the fields of the final head.
    pub(super) fn fields(&mut self) -> &mut HeaderLines {
        &mut self.last.get_or_insert_default().1
    }
}
