//! Heads of responses, staged piece by piece, always in the same order and never malformed.
//!
//! A value that could break out of its field can not be staged: [`FieldValue`] and [`FieldName`] exist
//! only when valid. Nothing here allocates.

use std::ops::Range;

use crate::clock;
pub use crate::field::{FieldName, FieldValue};
use crate::head::{Head, Version};
pub use crate::lines::Lines;
use crate::out::Out;
use crate::service::Refusal;

/// The media type of text that this server wrote itself.
pub const PLAIN_TEXT: FieldValue<'static> = FieldValue::constant("text/plain; charset=utf-8");

/// The head of a response that is being staged: a status line, `Server`, `Date` and `Connection`, then
/// what is added, and the empty line when it is dropped or [ended](ResponseHead::end).
///
/// The order of the fields is that of the calls. Callers keep to it everywhere: the content's type and
/// length first, then the others.
pub struct ResponseHead<'o> {
    out: &'o mut Out,
}

impl<'o> ResponseHead<'o> {
    /// Begins the response to `request`, whose version and persistence decide about `Connection`.
    pub fn answering(request: &Head<'_>, status: u16, out: &'o mut Out) -> ResponseHead<'o> {
        ResponseHead::begin(status, request.version, request.persistent, out)
    }

    /// Begins a response: the connection goes on after it where it is `persistent`.
    pub fn begin(status: u16, version: Version, persistent: bool, out: &'o mut Out) -> ResponseHead<'o> {
        match preamble(status) {
            Some(text) => out.stage(text.as_bytes()),
            None => {
                out.stage(b"HTTP/1.1 ");
                out.stage(Decimal::new(u64::from(status)).as_bytes());
                out.stage(b" \r\nServer: tenfold\r\nDate: ");
            }
        }
        clock::with_date(|date| out.stage(date));
        out.stage(match (persistent, version) {
            (true, Version::Http11) => b"\r\n",
            (true, Version::Http10) => b"\r\nConnection: keep-alive\r\n",
            (false, _) => b"\r\nConnection: close\r\n",
        });
        ResponseHead { out }
    }

    /// `Content-Type`.
    pub fn content_type(&mut self, value: FieldValue<'_>) {
        self.bytes("Content-Type", value.as_bytes());
    }

    /// `Content-Length`, in bytes.
    pub fn content_length(&mut self, length: u64) {
        self.bytes("Content-Length", Decimal::new(length).as_bytes());
    }

    /// `Content-Range` of a 206: these bytes, at least one, of `size` (RFC 9110 §14.4).
    pub fn content_range(&mut self, range: &Range<u64>, size: u64) {
        debug_assert!(range.start < range.end && range.end <= size);
        self.out.stage(b"Content-Range: bytes ");
        self.out.stage(Decimal::new(range.start).as_bytes());
        self.out.stage(b"-");
        self.out.stage(Decimal::new(range.end.saturating_sub(1)).as_bytes());
        self.out.stage(b"/");
        self.out.stage(Decimal::new(size).as_bytes());
        self.out.stage(b"\r\n");
    }

    /// `Content-Range` of a 416: what the size is.
    pub fn unsatisfied_range(&mut self, size: u64) {
        self.out.stage(b"Content-Range: bytes */");
        self.out.stage(Decimal::new(size).as_bytes());
        self.out.stage(b"\r\n");
    }

    /// Any field. Those that frame the message have their own methods.
    pub fn field(&mut self, name: FieldName<'_>, value: FieldValue<'_>) {
        self.bytes(name.as_str(), value.as_bytes());
    }

    /// A field whose value is a number.
    pub fn number(&mut self, name: FieldName<'_>, value: u64) {
        self.bytes(name.as_str(), Decimal::new(value).as_bytes());
    }

    /// A field whose value is a date, given in seconds since 1970.
    pub fn date(&mut self, name: FieldName<'_>, unix_seconds: u64) {
        self.bytes(name.as_str(), &clock::format_date(unix_seconds));
    }

    /// Ends the head. Its body, where it has one, is staged or pushed next.
    pub fn end(self) {}

    fn bytes(&mut self, name: &str, value: &[u8]) {
        self.out.stage(name.as_bytes());
        self.out.stage(b": ");
        self.out.stage(value);
        self.out.stage(b"\r\n");
    }
}

impl Drop for ResponseHead<'_> {
    fn drop(&mut self) {
        if self.out.has_fields() {
            let fields = self.out.take_fields();
            self.out.stage(fields.as_bytes());
        }
        self.out.stage(b"\r\n");
    }
}

/// Stages the whole response to what is not served, as a line of text, and says how long its body is. The
/// connection closes after it.
pub fn refusal(refusal: Refusal, out: &mut Out) -> u64 {
    let status = refusal.status();
    let code = Decimal::new(u64::from(status));
    let line = [code.as_bytes(), b" ", reason(status).as_bytes(), b": ", refusal.words().as_bytes(), b"\n"];
    let length = line.iter().map(|piece| piece.len() as u64).sum();
    let mut head = ResponseHead::begin(status, Version::Http11, false, out);
    head.content_type(PLAIN_TEXT);
    head.content_length(length);
    head.field(FieldName::X_CONTENT_TYPE_OPTIONS, FieldValue::constant("nosniff"));
    if refusal == Refusal::Busy {
        head.number(FieldName::RETRY_AFTER, 1);
    }
    head.end();
    line.iter().for_each(|piece| out.stage(piece));
    length
}

/// Defines what is said of each status: its reason phrase, and all of a head in front of its date.
macro_rules! statuses {
    ($($code:literal $reason:literal)*) => {
        /// The reason phrase of `status` (RFC 9110 §15); empty where this server never sends it.
        pub const fn reason(status: u16) -> &'static str {
            match status {
                $($code => $reason,)*
                _ => "",
            }
        }

        const fn preamble(status: u16) -> Option<&'static str> {
            Some(match status {
                $($code => concat!("HTTP/1.1 ", $code, " ", $reason, "\r\nServer: tenfold\r\nDate: "),)*
                _ => return None,
            })
        }
    };
}

statuses! {
    200 "OK"
    201 "Created"
    204 "No Content"
    206 "Partial Content"
    301 "Moved Permanently"
    302 "Found"
    303 "See Other"
    304 "Not Modified"
    307 "Temporary Redirect"
    308 "Permanent Redirect"
    400 "Bad Request"
    401 "Unauthorized"
    403 "Forbidden"
    404 "Not Found"
    405 "Method Not Allowed"
    406 "Not Acceptable"
    408 "Request Timeout"
    409 "Conflict"
    410 "Gone"
    411 "Length Required"
    412 "Precondition Failed"
    413 "Content Too Large"
    414 "URI Too Long"
    415 "Unsupported Media Type"
    416 "Range Not Satisfiable"
    417 "Expectation Failed"
    421 "Misdirected Request"
    422 "Unprocessable Content"
    429 "Too Many Requests"
    431 "Request Header Fields Too Large"
    500 "Internal Server Error"
    501 "Not Implemented"
    503 "Service Unavailable"
    505 "HTTP Version Not Supported"
}

/// A number in decimal digits, without allocation.
pub struct Decimal {
    digits: [u8; 20],
    begin: usize,
}

impl Decimal {
    /// `number` in digits.
    pub const fn new(mut number: u64) -> Decimal {
        let mut digits = [b'0'; 20];
        let mut begin = digits.len();
        loop {
            begin -= 1;
            digits[begin] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return Decimal { digits, begin };
            }
        }
    }

    /// The digits.
    pub fn as_bytes(&self) -> &[u8] {
        &self.digits[self.begin..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Instant;

    fn staged(write: impl FnOnce(&mut Out)) -> String {
        clock::set(Instant(0), 784_111_777);
        let mut out = Out::new();
        write(&mut out);
        String::from_utf8(out.staged_alone().expect("nothing but staged bytes").to_vec()).expect("text")
    }

    #[test]
    fn a_head_has_its_fields_in_order() {
        let text = staged(|out| {
            let mut head = ResponseHead::begin(206, Version::Http11, true, out);
            head.content_type(FieldValue::constant("image/png"));
            head.content_length(18_446_744_073_709_551_615);
            head.content_range(&(0..5), 10);
            head.date(FieldName::LAST_MODIFIED, 0);
            head.field(FieldName::ETAG, FieldValue::constant("\"a\""));
            head.number(FieldName::RETRY_AFTER, 0);
            head.end();
        });
        assert_eq!(
            text,
            "HTTP/1.1 206 Partial Content\r\nServer: tenfold\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
             Content-Type: image/png\r\nContent-Length: 18446744073709551615\r\n\
             Content-Range: bytes 0-4/10\r\nLast-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\nETag: \"a\"\r\n\
             Retry-After: 0\r\n\r\n"
        );
    }

    #[test]
    fn connection_is_said_where_it_differs_from_what_the_version_means() {
        let says = |version, persistent| {
            let text = staged(|out| ResponseHead::begin(200, version, persistent, out).end());
            assert!(text.starts_with("HTTP/1.1 200 OK\r\nServer: tenfold\r\nDate: "));
            text.lines().find_map(|line| line.strip_prefix("Connection: ").map(str::to_owned))
        };
        assert_eq!(says(Version::Http11, true), None);
        assert_eq!(says(Version::Http11, false).as_deref(), Some("close"));
        assert_eq!(says(Version::Http10, true).as_deref(), Some("keep-alive"));
        assert_eq!(says(Version::Http10, false).as_deref(), Some("close"));
    }

    #[test]
    fn a_refusal_is_a_whole_response() {
        let mut length = 0;
        let text = staged(|out| length = refusal(Refusal::Malformed("Host is missing"), out));
        assert_eq!(
            text,
            "HTTP/1.1 400 Bad Request\r\nServer: tenfold\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
             Connection: close\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 33\r\n\
             X-Content-Type-Options: nosniff\r\n\r\n400 Bad Request: Host is missing\n"
        );
        assert_eq!(length, 33);
    }

    #[test]
    fn a_status_without_a_phrase_is_still_a_status_line() {
        let text = staged(|out| ResponseHead::begin(599, Version::Http11, true, out).end());
        assert!(text.starts_with("HTTP/1.1 599 \r\nServer: tenfold\r\n"), "{text}");
    }

    #[test]
    fn decimals_are_those_of_the_standard_library() {
        for number in [0, 1, 9, 10, 99, 100, 12_345, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            assert_eq!(Decimal::new(number).as_bytes(), number.to_string().as_bytes());
        }
    }
}
