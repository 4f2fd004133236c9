//! Responses that are prepared once and sent often.

use std::sync::Arc;

use tenfold_wire::hpack::Block;

use crate::clock::{self, DATE_BYTES};
use crate::h1::encode::Http1Encoder;
use crate::message::field::{FieldName, FieldValue};
use crate::message::header_lines::HeaderLines;
use crate::mux::priority::Priority;
use crate::out::{Out, Part};
use crate::response::encoder::Encoder;
use crate::response::http2;
use crate::response::value::Response;
use crate::response::writer::{ResponseHead, ResponseWriter};

/// A prepared response: its status, its fields, and its bytes in HTTP/1.
#[derive(Clone, Debug)]
pub struct Template {
    status: u16,
    fields: HeaderLines,
    h1: Prepared,
    /// The field block of HTTP/2 with these constant fields, from the first such response on.
    h2: Option<(Block, Option<&'static HeaderLines>)>,
    /// The default priority of the media type.
    priority: Option<Priority>,
    /// The last constant fields that were found to replace no field of this response.
    beside: Option<&'static HeaderLines>,
}

impl Template {
    /// Prepares a response with this status, the fields that `describe` adds, and `body`. A service adds a
    /// larger body, or a file, after the template.
    pub fn new(status: u16, body: &[u8], describe: impl FnOnce(&mut ResponseHead<'_>)) -> Template {
        let mut response = Response::default();
        describe(&mut response.writer().head(status));
        let fields = std::mem::take(response.heads.fields());
        let media_type = fields.iter().find(|(name, _)| name.as_str() == "Content-Type");
        let priority = media_type.and_then(|(_, value)| Priority::of_media_type(value.as_bytes()));
        let h1 = Prepared::new(status, &fields, body);
        Template { status, h1, h2: None, priority, fields, beside: None }
    }

    /// Returns the fields in order, without those that a version adds.
    pub fn fields(&self) -> impl Iterator<Item = (FieldName<'_>, FieldValue<'_>)> {
        self.fields.iter()
    }

    /// Returns the body that follows the head.
    pub fn body(&self) -> &[u8] {
        self.h1.body()
    }

    /// Returns the bytes of memory besides this value itself.
    pub fn weight(&self) -> usize {
        // The block of HTTP/2 is not longer than the fields.
        2 * self.fields.as_bytes().len() + self.h1.weight()
    }

    /// Returns the field block of HTTP/2 with these constant fields, and the bytes of HTTP/1 with the body.
    fn http2(&mut self, constant: Option<&'static HeaderLines>) -> (&Block, &Prepared) {
        let is_same = |(_, other): &(Block, Option<&'static HeaderLines>)| match (other, constant) {
            (Some(other), Some(constant)) => std::ptr::eq(*other, constant),
            (other, constant) => other.is_none() && constant.is_none(),
        };
        if !self.h2.as_ref().is_some_and(is_same) {
            let fields = [Some(&self.fields), constant];
            self.h2 = Some((block(self.status, fields.into_iter().flatten()), constant));
        }
        let block = self.h2.as_ref().map(|(block, _)| block).expect("it was made");
        (block, &self.h1)
    }

    /// Whether these constant fields, if any, replace no field of this response.
    #[inline]
    fn goes_with(&mut self, constant: Option<&'static HeaderLines>) -> bool {
        constant.is_none_or(|constant| {
            self.beside.is_some_and(|beside| std::ptr::eq(beside, constant)) || self.compare(constant)
        })
    }

    #[cold]
    fn compare(&mut self, constant: &'static HeaderLines) -> bool {
        let differs = constant.iter().all(|(name, _)| !self.fields.contains(name.as_str()));
        if differs {
            self.beside = Some(constant);
        }
        differs
    }
}

/// The longest body that is copied into a response that waits for its turn. A longer body is shared.
const COPIED_BYTES: usize = 1024;

impl ResponseWriter<'_> {
    /// Writes a prepared response. Without `whole`, its body is omitted.
    #[inline]
    pub fn template(&mut self, template: &mut Template, whole: bool) {
        let copies = self.copies_prepared() && template.goes_with(self.constant);
        let staged = match &mut self.encoder {
            Encoder::Http1(http1) => copies && template.h1.stage(*http1, whole, self.constant, self.out),
            Encoder::Http2(http2) if copies => {
                let (block, body) = template.http2(self.constant);
                let staged = if whole { body.body() } else { b"" };
                if !http2.prepared(block, staged) {
                    // A body that waits for its turn is not copied: a client can let many of them wait.
                    self.out.push(body.shared_body());
                }
                http2.stream.priority = template.priority;
                true
            }
            Encoder::Http2(_) | Encoder::Value(_) => false,
        };
        if !staged {
            self.template_fields(template, whole);
        }
    }

    #[cold]
    fn template_fields(&mut self, template: &Template, whole: bool) {
        self.head(template.status).fields(&template.fields);
        let waits = !matches!(self.encoder, Encoder::Http1(_)) && template.body().len() > COPIED_BYTES;
        match whole {
            true if waits => self.out.push(template.h1.shared_body()),
            true => self.out.stage(template.body()),
            false => {}
        }
    }
}

/// Returns the field block of a head.
fn block<'a>(status: u16, fields: impl Iterator<Item = &'a HeaderLines>) -> Block {
    let mut block = Block::new();
    http2::begin(status, &mut block);
    for (name, value) in fields.flat_map(HeaderLines::iter) {
        http2::field(name.as_str(), value.as_bytes(), &mut block);
    }
    block
}

/// A head, and often its body, as contiguous bytes with a date.
#[derive(Clone, Debug)]
struct Prepared {
    /// Shared with bodies that wait for their turn.
    bytes: Arc<[u8]>,
    /// The offset of the date.
    date: usize,
    /// The offset of the body.
    body: usize,
    /// The second of the date in `bytes`.
    second: u64,
}

impl Prepared {
    /// The encoder of prepared responses.
    const ENCODER: Http1Encoder = Http1Encoder::PERSISTENT;

    /// Prepares a head with this status and these fields, followed by `body`.
    fn new(status: u16, fields: &HeaderLines, body: &[u8]) -> Prepared {
        let mut out = Out::new();
        Prepared::ENCODER.begin(status, &mut out);
        let date = out.mark() - DATE_BYTES - b"\r\n".len();
        out.stage(fields.as_bytes());
        Prepared::ENCODER.end(0, &mut out);
        let head = out.staged_alone().expect("a head is staged bytes");
        let bytes = [head, body].concat().into();
        Prepared { bytes, date, body: head.len(), second: clock::unix_seconds() }
    }

    /// Stages the head with these constant fields, and with `whole` the body, if `encoder` would encode the
    /// same bytes. Returns whether it would.
    #[inline]
    fn stage(
        &mut self,
        encoder: Http1Encoder,
        whole: bool,
        constant: Option<&HeaderLines>,
        out: &mut Out,
    ) -> bool {
        let same = encoder == Prepared::ENCODER;
        if same {
            self.renew_date();
            let bytes = if whole { &self.bytes } else { &self.bytes[..self.body] };
            match constant {
                None => out.stage(bytes),
                Some(fields) => {
                    let (head, rest) = bytes.split_at(self.body - b"\r\n".len());
                    [head, fields.as_bytes(), rest].into_iter().for_each(|piece| out.stage(piece));
                }
            }
        }
        same
    }

    /// Returns the body that follows the head.
    fn body(&self) -> &[u8] {
        &self.bytes[self.body..]
    }

    /// Returns the body without a copy.
    fn shared_body(&self) -> Part {
        Part::Shared(Arc::clone(&self.bytes), self.body..self.bytes.len())
    }

    /// Returns the bytes of memory besides this value itself.
    fn weight(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    fn renew_date(&mut self) {
        let second = clock::unix_seconds();
        if self.second != second {
            let range = self.date..self.date + DATE_BYTES;
            clock::with_date(|date| Arc::make_mut(&mut self.bytes)[range].copy_from_slice(date));
            self.second = second;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::clock::{self, Instant};
    use crate::h1::encode::Http1Encoder;
    use crate::limits::WriteMode;
    use crate::message::request::Version;
    use crate::message::status::PLAIN_TEXT;
    use crate::out::Out;

    fn describe(head: &mut ResponseHead<'_>) {
        head.content_type(PLAIN_TEXT);
        head.content_length(4);
        head.field(FieldName::CACHE_CONTROL, FieldValue::constant("public"));
    }

    fn sent(out: &mut Out) -> Vec<u8> {
        let mut sent = Vec::new();
        while let Some(memory) = out.pop_memory(Vec::new()) {
            let crate::out::Memory::Staged(bytes, from) = memory else { panic!("nothing is shared") };
            sent.extend_from_slice(&bytes[from..]);
        }
        sent
    }

    static SECURITY: LazyLock<HeaderLines> = LazyLock::new(|| constant(FieldName::STRICT_TRANSPORT_SECURITY));
    static CACHING: LazyLock<HeaderLines> = LazyLock::new(|| constant(FieldName::CACHE_CONTROL));

    fn constant(name: FieldName<'_>) -> HeaderLines {
        let mut fields = HeaderLines::default();
        fields.field(name, FieldValue::constant("constant"));
        fields
    }

    #[test]
    fn constant_fields_are_inserted_into_the_prepared_bytes() {
        clock::set(Instant(0), 784_111_777);
        let mut template = Template::new(200, b"body", describe);
        // Only the prepared bytes have this name of the server.
        let name = template.h1.bytes.windows(7).position(|bytes| bytes == b"tenfold").expect("Server");
        Arc::make_mut(&mut template.h1.bytes)[name..name + 7].copy_from_slice(b"TENFOLD");
        for (fields, copied) in [(&SECURITY, true), (&CACHING, false)] {
            let mut out = Out::new();
            let mut response = ResponseWriter::http1(&mut out);
            response.set_constant_fields(fields);
            assert!(response.copies_prepared());
            response.template(&mut template, true);
            let text = String::from_utf8(sent(&mut out)).expect("text");
            assert_eq!(text.contains("Server: TENFOLD\r\n"), copied, "{text}");
            assert!(text.ends_with(": constant\r\n\r\nbody"), "{text}");
        }
    }

    #[test]
    fn a_template_equals_a_newly_written_head() {
        clock::set(Instant(0), 784_111_777);
        let mut template = Template::new(200, b"body", describe);
        let mut added = HeaderLines::default();
        added.field(FieldName::VARY, FieldValue::constant("Origin"));
        let private = FieldValue::constant("private");
        let constants = [None, Some(&*SECURITY), Some(&*CACHING)];
        for case in 0..2 * 2 * 2 * 2 * 2 * 3 * 3_u64 {
            clock::set(Instant(0), 784_111_777 + case);
            let chosen = |bit: u64| case >> bit & 1 == 1;
            let write = [WriteMode::Joined, WriteMode::Split, WriteMode::PerHeader][case as usize / 32 % 3];
            let constant = constants[case as usize / 96];
            let version = if chosen(0) { Version::Http10 } else { Version::Http11 };
            let encoder = Http1Encoder { version, persistent: chosen(1), write };
            let (mut anew, mut prepared) = (Out::new(), Out::new());
            for (out, template) in [(&mut anew, None), (&mut prepared, Some(&mut template))] {
                let mut response = ResponseWriter::new(out, Encoder::Http1(encoder));
                if let Some(fields) = constant {
                    response.set_constant_fields(fields);
                }
                if chosen(2) {
                    response.add_fields(&added);
                }
                if chosen(3) {
                    response.replace_field(FieldName::CACHE_CONTROL, private);
                }
                match template {
                    Some(template) => response.template(template, chosen(4)),
                    None => {
                        let mut head = response.head(200);
                        describe(&mut head);
                        head.end();
                        if chosen(4) {
                            response.body(b"body");
                        }
                    }
                }
            }
            let (anew, prepared) = (sent(&mut anew), sent(&mut prepared));
            let text = String::from_utf8_lossy(&prepared);
            assert_eq!(text, String::from_utf8_lossy(&anew), "{case}");
            assert_eq!(text.contains("Cache-Control: private\r\n"), chosen(3));
            assert_eq!(text.matches("Cache-Control: ").count(), 1, "{text}");
            assert_eq!(text.contains("Strict-Transport-Security: constant\r\n"), constant == constants[1]);
            assert_eq!(text.contains("Vary: Origin\r\n"), chosen(2));
            assert_eq!(text.ends_with("\r\n\r\nbody"), chosen(4));
        }
        assert_eq!(template.fields().count(), 3);
    }
}
