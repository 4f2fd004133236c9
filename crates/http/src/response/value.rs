//! Responses as values, independent of their connection.

use super::encoder::{Encoder, Heads};
use super::writer::ResponseWriter;
use crate::out::Out;

/// A response that any thread can write: interim heads, a status, fields, and a body of pieces. Its connection
/// encodes it, because only the connection has the version, and with HTTP/2 the state of the header compression.
#[derive(Default)]
pub struct Response {
    pub(crate) heads: Heads,
    pub(crate) body: Out,
}

impl Response {
    /// Returns the response that `write` writes.
    pub fn of(write: impl FnOnce(&mut ResponseWriter<'_>)) -> Response {
        let mut response = Response::default();
        write(&mut response.writer());
        response
    }

    /// Whether the connection ends after this response: it was demanded, or the response has no head.
    pub(crate) fn ends_connection(&self) -> bool {
        self.heads.closes || self.heads.last.is_none()
    }

    /// Returns the writer of the response.
    pub fn writer(&mut self) -> ResponseWriter<'_> {
        ResponseWriter::new(&mut self.body, Encoder::Value(&mut self.heads))
    }
}

impl ResponseWriter<'_> {
    /// Appends `response`.
    pub fn append(&mut self, response: Response) {
        let Response { heads, body } = response;
        if heads.closes {
            self.close();
        }
        for (status, phrase, fields) in &heads.interim {
            self.encoder.interim(*status, phrase, fields, self.out);
        }
        if let Some((status, fields)) = &heads.last {
            self.head(*status).fields(fields);
        }
        self.out.append(body);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::clock::{self, Instant};
    use crate::message::field::{FieldName, FieldValue};
    use crate::message::header_lines::HeaderLines;
    use crate::message::status::PLAIN_TEXT;
    use crate::out::{Memory, OpenFile, Part, SendReport};
    use crate::response::template::Template;

    /// Sends all output, and returns its bytes. A file is represented by its length.
    fn sent(mut out: Out) -> String {
        let mut sent = Vec::new();
        loop {
            if let Some((_, range, _)) = out.file() {
                let count = range.end - range.start;
                sent.extend_from_slice(format!("[file {count}]").as_bytes());
                out.advance(count);
            } else if let Some(memory) = out.pop_memory(Vec::new()) {
                match memory {
                    Memory::Staged(bytes, from) => sent.extend_from_slice(&bytes[from..]),
                    Memory::Shared(bytes, range) => sent.extend_from_slice(&bytes[range]),
                }
            } else {
                break;
            }
        }
        out.advance(0);
        String::from_utf8(sent).expect("text")
    }

    fn write(case: u32, response: &mut ResponseWriter<'_>) {
        let chosen = |bit: u32| case >> bit & 1 == 1;
        let mut fields = HeaderLines::default();
        fields.field(FieldName::VARY, FieldValue::constant("Origin"));
        if chosen(0) {
            response.close();
        }
        if chosen(1) {
            response.early_hints(&fields);
        }
        if chosen(2) {
            response.add_fields(&fields);
        }
        if chosen(3) {
            response.replace_field(FieldName::CACHE_CONTROL, FieldValue::constant("private"));
        }
        let describe = |head: &mut crate::ResponseHead<'_>| {
            head.content_type(PLAIN_TEXT);
            head.field(FieldName::CACHE_CONTROL, FieldValue::constant("public"));
        };
        if chosen(4) {
            response.template(&mut Template::new(200, b"body", describe), true);
        } else {
            describe(&mut response.head(206));
            response.body(b"before");
            let file = File::open("/dev/null").expect("Linux has it");
            response.push(Part::File(Arc::new(OpenFile::new(file, 9)), 0..9));
            response.body(b"behind");
        }
    }

    #[test]
    fn a_response_value_has_the_bytes_of_a_response_written_in_place() {
        for case in 0..1 << 5 {
            clock::set(Instant(0), 784_111_777);
            let mut value = Response::default();
            write(case, &mut value.writer());
            // The date is the time of the append.
            clock::set(Instant(0), 784_111_999);
            let (mut there, mut here) = (Out::new(), Out::new());
            ResponseWriter::http1(&mut there).append(value);
            write(case, &mut ResponseWriter::http1(&mut here));
            assert_eq!(sent(there), sent(here), "{case}");
        }
    }

    #[test]
    fn an_observer_of_a_value_counts_its_head() {
        for body in [&b""[..], b"body"] {
            let reports = Arc::new(Mutex::new(Vec::new()));
            let mut value = Response::default();
            let mut response = value.writer();
            response.head(204).end();
            response.body(body);
            let recorded = reports.clone();
            response.observe(Box::new(move |report| recorded.lock().expect("no panic").push(report)));
            let mut out = Out::new();
            ResponseWriter::http1(&mut out).append(value);
            let length = out.len();
            assert_eq!(*reports.lock().expect("no panic"), [], "nothing is sent yet");
            out.advance(length - 1);
            out.clear(0);
            assert_eq!(*reports.lock().expect("no panic"), [SendReport { unsent: 1, sends: 1 }]);
        }
    }
}
