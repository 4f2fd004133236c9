//! The writer of a response.
//!
//! A value that could break out of its field cannot be written, because [`FieldValue`] and [`FieldName`] are
//! always valid. Heads are staged field by field, without allocations.

use std::ops::Range;

use super::encoder::Encoder;
use crate::clock;
use crate::h1::encode::Http1Encoder;
use crate::message::decimal::Decimal;
use crate::message::field::{FieldName, FieldValue};
use crate::message::header_lines::HeaderLines;
use crate::message::refusal::Refusal;
use crate::message::status::{PLAIN_TEXT, reason};
use crate::out::{Out, Part, PartSource, SendObserver};

/// Writes the response to a request in the wire format of its version, after the connection's present output.
///
/// A response consists of a head and a body in pieces, whose total length is the head's content length.
/// Responses to HEAD, and responses with status 204 or 304, have no body.
pub struct ResponseWriter<'o> {
    pub(super) out: &'o mut Out,
    pub(super) encoder: Encoder<'o>,
    pub(super) constant: Option<&'static HeaderLines>,
    /// Boxed, because few responses have extra fields.
    pub(super) extra: Option<Box<ExtraFields>>,
}

/// Fields for the next final head.
#[derive(Default)]
pub(super) struct ExtraFields {
    added: HeaderLines,
    /// These fields replace all others of their names.
    replaced: HeaderLines,
}

impl<'o> ResponseWriter<'o> {
    #[inline]
    pub(crate) fn new(out: &'o mut Out, encoder: Encoder<'o>) -> ResponseWriter<'o> {
        ResponseWriter { out, encoder, constant: None, extra: None }
    }

    /// Returns a writer of HTTP/1.1 on a persistent connection. For tests of services, which have no
    /// connection.
    pub fn http1(out: &'o mut Out) -> ResponseWriter<'o> {
        ResponseWriter::new(out, Encoder::Http1(Http1Encoder::PERSISTENT))
    }

    /// Drops the writer. Few responses have anything to drop, so the others need no call.
    #[inline]
    pub(crate) fn end(self) {
        if self.extra.is_none() {
            std::mem::forget(self);
        }
    }

    /// Makes the connection close after this response. Must precede the head.
    pub fn close(&mut self) {
        self.encoder.close();
    }

    /// Whether the final head is written to a stream.
    pub(crate) fn has_begun(&self) -> bool {
        matches!(&self.encoder, Encoder::Http2(http2) if http2.stream.has_begun())
    }

    /// Writes an interim response (RFC 9110 §15.2).
    pub(crate) fn interim(&mut self, status: u16, phrase: &'static str, fields: &HeaderLines) {
        self.encoder.interim(status, phrase, fields, self.out);
    }

    /// Begins the final head. Its fields appear in the order of the calls; by convention, the type and length
    /// of the content come first.
    pub fn head(&mut self, status: u16) -> ResponseHead<'_> {
        let mark = self.encoder.begin(status, self.out);
        let (encoder, constant) = (self.encoder.reborrow(), self.constant);
        ResponseHead { out: self.out, encoder, constant, extra: self.extra.take(), mark }
    }

    /// Writes a 103 with these fields before the final response (RFC 8297).
    pub fn early_hints(&mut self, fields: &HeaderLines) {
        self.interim(103, "Early Hints", fields);
    }

    /// Copies `bytes` into the body.
    pub fn body(&mut self, bytes: &[u8]) {
        self.out.stage(bytes);
    }

    /// Adds `part` to the body without copying it. Panics if a range of shared bytes exceeds them.
    pub fn push(&mut self, part: Part) {
        self.out.push(part);
    }

    /// Adds the parts of `source` to the end of the body. The head has their length.
    pub fn push_source(&mut self, source: Box<dyn PartSource>) {
        self.out.push_source(source);
    }

    /// Calls `observer` when all output so far has been sent or dropped.
    pub fn observe(&mut self, observer: SendObserver) {
        match &mut self.encoder {
            // The head precedes the body, but is not in this output.
            Encoder::Value(_) => self.out.observe_later(observer),
            Encoder::Http1(_) => self.out.observe(observer),
            Encoder::Http2(http2) if http2.stream.complete.is_some() => http2.out.observe(observer),
            Encoder::Http2(_) => self.out.observe_later(observer),
        }
    }

    /// Whether the response is sent whole, or its connection ends: all of the connection's output is in memory and
    /// without observers.
    #[inline]
    pub fn is_plain(&self) -> bool {
        match &self.encoder {
            Encoder::Http1(_) => self.out.staged_alone().is_some(),
            // A stream can be reset, and a body may wait for its turn.
            Encoder::Http2(http2) => http2.stream.complete.is_some() && http2.out.staged_alone().is_some(),
            Encoder::Value(_) => false,
        }
    }

    /// Sets fields that every response of a server has, in place of other fields of their names. They are
    /// inserted into prepared responses.
    pub fn set_constant_fields(&mut self, fields: &'static HeaderLines) {
        self.constant = Some(fields);
    }

    /// Whether a prepared response is sent with no other fields than constant fields, so that its bytes are
    /// copied.
    #[inline]
    pub fn copies_prepared(&self) -> bool {
        self.extra.is_none()
    }

    /// Adds fields to the next final head, after its own fields.
    pub fn add_fields(&mut self, fields: &HeaderLines) {
        if !fields.is_empty() {
            self.extra.get_or_insert_default().added.append(fields);
        }
    }

    /// Removes and returns the added fields, if their head was not written.
    pub fn take_fields(&mut self) -> HeaderLines {
        let added = self.extra.as_mut().map(|extra| std::mem::take(&mut extra.added));
        self.extra.take_if(|extra| extra.replaced.is_empty());
        added.unwrap_or_default()
    }

    /// Sets a field of the next final head, in place of all other fields of its name, also constant fields.
    pub fn replace_field(&mut self, name: FieldName<'_>, value: FieldValue<'_>) {
        self.extra.get_or_insert_default().replaced.replace(name, value);
    }

    /// Writes the response to a refused request as a line of text. Without `whole`, only its head is written.
    /// Returns the length of the body. The connection closes after it.
    pub fn refusal(&mut self, refusal: Refusal, whole: bool) -> u64 {
        let status = refusal.status();
        let code = Decimal::new(u64::from(status));
        let line =
            [code.as_bytes(), b" ", reason(status).as_bytes(), b": ", refusal.words().as_bytes(), b"\n"];
        let length = line.iter().map(|piece| piece.len() as u64).sum();
        self.close();
        let mut head = self.head(status);
        head.content_type(PLAIN_TEXT);
        head.content_length(length);
        head.field(FieldName::X_CONTENT_TYPE_OPTIONS, FieldValue::constant("nosniff"));
        if refusal == Refusal::Busy {
            head.number(FieldName::RETRY_AFTER, 1);
        }
        head.end();
        if !whole {
            return 0;
        }
        line.iter().for_each(|piece| self.body(piece));
        length
    }
}

/// The head of a response. Dropping it ends the head.
pub struct ResponseHead<'w> {
    out: &'w mut Out,
    encoder: Encoder<'w>,
    constant: Option<&'static HeaderLines>,
    extra: Option<Box<ExtraFields>>,
    mark: usize,
}

impl ResponseHead<'_> {
    /// Adds `Content-Type`.
    pub fn content_type(&mut self, value: FieldValue<'_>) {
        self.bytes("Content-Type", value.as_bytes());
    }

    /// Adds `Content-Length`, in bytes.
    pub fn content_length(&mut self, length: u64) {
        self.bytes("Content-Length", Decimal::new(length).as_bytes());
    }

    /// Adds the `Content-Range` of a 206 for these bytes, at least one, of `size` (RFC 9110 §14.4).
    pub fn content_range(&mut self, range: &Range<u64>, size: u64) {
        debug_assert!(range.start < range.end && range.end <= size);
        let [start, last, size] = [range.start, range.end.saturating_sub(1), size].map(Decimal::new);
        let pieces = [b"bytes ", start.as_bytes(), b"-", last.as_bytes(), b"/", size.as_bytes()];
        self.pieces("Content-Range", &pieces);
    }

    /// Adds the `Content-Range` of a 416 for a representation of `size` bytes.
    pub fn unsatisfied_range(&mut self, size: u64) {
        self.pieces("Content-Range", &[b"bytes */", Decimal::new(size).as_bytes()]);
    }

    /// Adds a field. Fields that frame the message have separate methods.
    pub fn field(&mut self, name: FieldName<'_>, value: FieldValue<'_>) {
        self.bytes(name.as_str(), value.as_bytes());
    }

    /// Adds a field whose value is a number.
    pub fn number(&mut self, name: FieldName<'_>, value: u64) {
        self.bytes(name.as_str(), Decimal::new(value).as_bytes());
    }

    /// Adds a field whose value is a date, in seconds since 1970.
    pub fn date(&mut self, name: FieldName<'_>, unix_seconds: u64) {
        self.bytes(name.as_str(), &clock::format_date(unix_seconds));
    }

    /// Ends the head by dropping it.
    pub fn end(self) {}

    /// Adds these fields in order.
    pub(super) fn fields(&mut self, fields: &HeaderLines) {
        match (&self.extra, self.constant) {
            (None, None) => self.encoder.fields(fields, self.out),
            _ => fields.iter().for_each(|(name, value)| self.field(name, value)),
        }
    }

    /// Adds a field, unless a field set before replaces it.
    #[inline]
    fn bytes(&mut self, name: &str, value: &[u8]) {
        let replaced = self.extra.as_ref().map(|extra| &extra.replaced);
        if ![self.constant, replaced].into_iter().flatten().any(|fields| fields.contains(name)) {
            self.encoder.field(name, value, self.out);
        }
    }

    /// Adds the fields that were set before the head: extra and constant fields.
    #[cold]
    fn earlier_fields(&mut self) {
        let ExtraFields { added, replaced } = self.extra.take().map(|extra| *extra).unwrap_or_default();
        let lists = [Some(&added), self.constant, Some(&replaced)];
        for (index, fields) in lists.iter().enumerate() {
            let replaces = |name: FieldName<'_>| {
                lists[index + 1..].iter().flatten().any(|later| later.contains(name.as_str()))
            };
            for (name, value) in fields.iter().flat_map(|fields| fields.iter()) {
                if !replaces(name) {
                    self.encoder.field(name.as_str(), value.as_bytes(), self.out);
                }
            }
        }
    }

    /// Adds a field whose value consists of `pieces`.
    fn pieces(&mut self, name: &str, pieces: &[&[u8]]) {
        // The longest value has three numbers.
        let mut value = [0; 3 * 20 + 16];
        let mut length = 0;
        for piece in pieces {
            value[length..length + piece.len()].copy_from_slice(piece);
            length += piece.len();
        }
        self.bytes(name, &value[..length]);
    }
}

impl Drop for ResponseHead<'_> {
    fn drop(&mut self) {
        if self.extra.is_some() || self.constant.is_some() {
            self.earlier_fields();
        }
        self.encoder.end(self.mark, self.out);
    }
}

#[cfg(test)]
mod tests;
