//! Response heads in the format of HTTP/1 (RFC 9112 §4, §5).

use crate::clock;
use crate::limits::WriteMode;
use crate::message::decimal::Decimal;
use crate::message::header_lines::HeaderLines;
use crate::message::request::Version;
use crate::message::server_field;
use crate::message::status::with_statuses;
use crate::out::Out;

/// The interim response that demands the content of a request (RFC 9110 §15.2.1).
pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Encodes a response. The fields are the properties of the request that the encoding depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Http1Encoder {
    pub(crate) version: Version,
    /// Whether the connection persists after the response.
    pub(crate) persistent: bool,
    pub(crate) write: WriteMode,
}

impl Http1Encoder {
    /// The encoder for HTTP/1.1 and a persistent connection.
    pub(crate) const PERSISTENT: Http1Encoder =
        Http1Encoder { version: Version::Http11, persistent: true, write: WriteMode::Joined };

    /// Returns the encoder of the last response on a connection.
    pub(crate) const fn last(write: WriteMode) -> Http1Encoder {
        Http1Encoder { version: Version::Http11, persistent: false, write }
    }

    /// Returns the line after `Date`: `Connection`, if it differs from the default of the version (RFC 9112
    /// §9.3).
    #[inline]
    fn connection(self) -> &'static [u8] {
        match (self.persistent, self.version) {
            (true, Version::Http11 | Version::Http2) => b"",
            (true, Version::Http10) => b"Connection: keep-alive\r\n",
            (false, _) => b"Connection: close\r\n",
        }
    }

    /// Stages a status line, `Server`, `Date` and `Connection`.
    pub(crate) fn begin(self, status: u16, out: &mut Out) {
        let shown = server_field::is_shown();
        match preamble(status, shown) {
            Some(text) => out.stage(text.as_bytes()),
            None => {
                out.stage(b"HTTP/1.1 ");
                out.stage(Decimal::new(u64::from(status)).as_bytes());
                out.stage(if shown { b" \r\nServer: tenfold\r\nDate: " } else { b" \r\nDate: " });
            }
        }
        clock::with_date(|date| out.stage(date));
        out.stage(b"\r\n");
        out.stage(self.connection());
    }

    pub(crate) fn field(self, name: &str, value: &[u8], out: &mut Out) {
        for piece in [name.as_bytes(), b": ", value, b"\r\n"] {
            out.stage(piece);
        }
    }

    /// Stages the empty line after the head that began at `mark`, and separates the head as the write mode
    /// demands.
    #[inline]
    pub(crate) fn end(self, mark: usize, out: &mut Out) {
        out.stage(b"\r\n");
        match self.write {
            WriteMode::Joined => {}
            WriteMode::Split => out.isolate(mark, false),
            WriteMode::PerHeader => out.isolate(mark, true),
        }
    }

    /// Stages an interim response (RFC 9110 §15.2) with these fields.
    pub(crate) fn interim(self, status: u16, phrase: &str, fields: &HeaderLines, out: &mut Out) {
        let (mark, status) = (out.mark(), Decimal::new(u64::from(status)));
        for piece in [b"HTTP/1.1 ", status.as_bytes(), b" ", phrase.as_bytes(), b"\r\n", fields.as_bytes()] {
            out.stage(piece);
        }
        self.end(mark, out);
    }
}

macro_rules! preambles {
    ($($code:literal $reason:literal)*) => {
        /// Returns the part of a head before its date. `shown`: with `Server`.
        const fn preamble(status: u16, shown: bool) -> Option<&'static str> {
            Some(match (status, shown) {
                $(($code, true) => concat!("HTTP/1.1 ", $code, " ", $reason, "\r\nServer: tenfold\r\nDate: "),)*
                $(($code, false) => concat!("HTTP/1.1 ", $code, " ", $reason, "\r\nDate: "),)*
                _ => return None,
            })
        }
    };
}

with_statuses!(preambles);
