//! A response that is written once and sent often: only its date and its `Connection` field change.

use tenfold_http::clock::{self, DATE_BYTES};
use tenfold_http::response::ResponseHead;
use tenfold_http::{Head, Out, Version};

/// A head, and often its body, as one run of bytes with the date of a moment in it.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    bytes: Box<[u8]>,
    /// Where the date begins.
    date: usize,
    /// Where the body begins.
    body: usize,
    /// The second that the date in `bytes` is of.
    second: u64,
}

impl Template {
    /// The response with this status, the fields that `describe` writes, and `body` behind them.
    pub(crate) fn new(status: u16, body: &[u8], describe: impl FnOnce(&mut ResponseHead<'_>)) -> Template {
        const DATE: &[u8] = b"\r\nDate: ";
        let mut out = Out::new();
        let second = clock::unix_seconds();
        let mut head = ResponseHead::begin(status, Version::Http11, true, &mut out);
        describe(&mut head);
        head.end();
        let head = out.staged_alone().expect("a head is staged bytes");
        let date = head.windows(DATE.len()).position(|window| window == DATE);
        let date = date.expect("every head has a date") + DATE.len();
        Template { bytes: [head, body].concat().into(), date, body: head.len(), second }
    }

    /// Stages the head, and the body that stands behind it where `whole` is said, as [`ResponseHead`]
    /// would for this request.
    #[inline]
    pub(crate) fn stage(&mut self, request: &Head<'_>, whole: bool, out: &mut Out) {
        self.renew_date();
        let connection: &[u8] = match (request.persistent, request.version) {
            (true, Version::Http11) if !out.has_fields() => {
                return out.stage(if whole { &self.bytes } else { &self.bytes[..self.body] });
            }
            (true, Version::Http11) => b"",
            (true, Version::Http10) => b"\r\nConnection: keep-alive",
            (false, _) => b"\r\nConnection: close",
        };
        self.stage_with(connection, whole, out);
    }

    /// The same for who is not heard any longer: the connection ends.
    pub(crate) fn stage_last(&mut self, out: &mut Out) {
        self.renew_date();
        self.stage_with(b"\r\nConnection: close", true, out);
    }

    /// Stages it with a field behind the date, and the fields that the output has for the next head.
    fn stage_with(&self, connection: &[u8], whole: bool, out: &mut Out) {
        let (head, body) = self.bytes.split_at(self.body);
        let (begin, rest) = head.split_at(self.date + DATE_BYTES);
        let rest = rest.strip_suffix(b"\r\n").expect("a head ends with an empty line");
        let fields = out.take_fields();
        let body: &[u8] = if whole { body } else { b"" };
        for piece in [begin, connection, rest, fields.as_bytes(), b"\r\n", body] {
            out.stage(piece);
        }
    }

    /// The body that stands behind the head.
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.body..]
    }

    /// Bytes of memory beside this value itself.
    pub(crate) fn weight(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    fn renew_date(&mut self) {
        let second = clock::unix_seconds();
        if self.second != second {
            let place = self.date..self.date + DATE_BYTES;
            clock::with_date(|date| self.bytes[place].copy_from_slice(date));
            self.second = second;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenfold_http::Instant;
    use tenfold_http::head::parse_head;
    use tenfold_http::response::{FieldName, FieldValue, Lines, PLAIN_TEXT};

    fn describe(head: &mut ResponseHead<'_>) {
        head.content_type(PLAIN_TEXT);
        head.content_length(4);
    }

    #[test]
    fn it_is_what_a_head_written_anew_would_be() {
        clock::set(Instant(0), 784_111_777);
        let mut template = Template::new(200, b"body", describe);
        for (second, request) in [
            (784_111_777, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
            (784_111_778, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
            (784_111_779, "GET / HTTP/1.0\r\n\r\n"),
            (784_111_779, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
        ] {
            clock::set(Instant(0), second);
            parse_head(&mut request.as_bytes().to_vec(), |head| {
                let head = head.expect("the request is good");
                let mut fields = Lines::default();
                if second == 784_111_777 || request.starts_with("GET / HTTP/1.0\r\n\r\n") {
                    fields.field(FieldName::VARY, FieldValue::constant("Origin"));
                }
                let (mut anew, mut whole, mut alone) = (Out::new(), Out::new(), Out::new());
                [&mut anew, &mut whole, &mut alone].into_iter().for_each(|out| out.add_fields(&fields));
                let mut written = ResponseHead::answering(&head, 200, &mut anew);
                describe(&mut written);
                written.end();
                template.stage(&head, false, &mut alone);
                assert_eq!(alone.staged_alone(), anew.staged_alone());
                anew.stage(b"body");
                template.stage(&head, true, &mut whole);
                assert_eq!(whole.staged_alone(), anew.staged_alone());
            });
        }
    }
}
