//! Lines of the formats `common` (client, time, request line, status, bytes) and `combined` (also `Referer` and
//! `User-Agent`).
//!
//! Text from clients is escaped. So a request is always one line, its fields keep their positions, and no control
//! sequence reaches a terminal.

use tenfold_http::Peer;

use super::line::{LogFields, put_number, put_peer};

/// The most bytes of a client's text in a line, after escaping. A longer text is cut and ends with `...`.
pub(super) const MOST_BYTES: usize = 8 * 1024;
/// The most bytes of an escaped byte: `\xHH`.
const WIDEST: usize = 4;

/// Writes a line up to the number of bytes: `127.0.0.1 - - [...] "GET / HTTP/1.1" 200 `.
pub(super) fn begin(line: &mut Vec<u8>, date: &[u8], peer: &Peer, request: &[u8], status: u16) {
    put_peer(line, peer);
    line.extend_from_slice(b" - - [");
    line.extend_from_slice(date);
    line.extend_from_slice(b"] \"");
    escape(line, request);
    line.extend_from_slice(b"\" ");
    put_number(line, u64::from(status));
    line.push(b' ');
}

/// Writes the rest of a `common` line, including its end. Zero bytes are shown as `-`.
pub(super) fn end_common(line: &mut Vec<u8>, bytes: u64) {
    put_bytes(line, bytes);
    line.push(b'\n');
}

/// Writes the rest of a `combined` line, including its end.
pub(super) fn end(line: &mut Vec<u8>, bytes: u64, fields: LogFields<'_>) {
    put_bytes(line, bytes);
    for field in [fields.referer, fields.agent] {
        line.extend_from_slice(b" \"");
        match field {
            Some(value) => escape(line, value),
            None => line.push(b'-'),
        }
        line.push(b'"');
    }
    line.push(b'\n');
}

fn put_bytes(line: &mut Vec<u8>, bytes: u64) {
    match bytes {
        0 => line.push(b'-'),
        _ => put_number(line, bytes),
    }
}

/// Writes `text`. Quotes, backslashes and bytes that are not printable ASCII become `\xHH`.
pub(crate) fn escape(line: &mut Vec<u8>, text: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let shown = cut(text, WIDEST, |byte| if PLAIN[usize::from(byte)] { 1 } else { WIDEST });
    let mut plain = 0;
    for (at, &byte) in shown.iter().enumerate() {
        if !PLAIN[usize::from(byte)] {
            line.extend_from_slice(&shown[plain..at]);
            line.extend_from_slice(&[
                b'\\',
                b'x',
                DIGITS[usize::from(byte >> 4)],
                DIGITS[usize::from(byte & 15)],
            ]);
            plain = at + 1;
        }
    }
    line.extend_from_slice(&shown[plain..]);
    if shown.len() < text.len() {
        line.extend_from_slice(b"...");
    }
}

/// The beginning of `text` that takes at most [`MOST_BYTES`] after escaping. A byte takes `width` bytes, at most
/// `widest`.
pub(super) fn cut(text: &[u8], widest: usize, width: impl Fn(u8) -> usize) -> &[u8] {
    if text.len() <= MOST_BYTES / widest {
        return text;
    }
    let mut taken = 0;
    let fitting = text.iter().take_while(|byte| {
        taken += width(**byte);
        taken <= MOST_BYTES
    });
    &text[..fitting.count()]
}

static PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = b' ' as usize;
    while byte <= b'~' as usize {
        table[byte] = byte != b'"' as usize && byte != b'\\' as usize;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tenfold_http::{Instant, clock};

    use super::*;
    use crate::log::line::Date;

    fn line(peer: &str, request: &[u8], status: u16, bytes: u64, agent: Option<&[u8]>) -> String {
        clock::set(Instant(1), 1_795_248_000);
        let mut line = Vec::new();
        let peer = Peer::Internet(peer.parse().expect("an address"));
        begin(&mut line, Date::default().common(), &peer, request, status);
        end(&mut line, bytes, LogFields { agent, ..LogFields::default() });
        String::from_utf8(line).expect("a line is ASCII")
    }

    #[test]
    fn a_line_has_the_format_that_log_tools_read() {
        assert_eq!(
            line("127.0.0.1:5000", b"GET /site.css HTTP/1.1", 200, 11873, Some(b"Mozilla/5.0 (X11)")),
            "127.0.0.1 - - [21/Nov/2026:08:00:00 +0000] \"GET /site.css HTTP/1.1\" 200 11873 \"-\" \
             \"Mozilla/5.0 (X11)\"\n"
        );
    }

    #[test]
    fn no_bytes_are_a_dash_and_mapped_addresses_are_those_of_ipv4() {
        assert_eq!(
            line("[::ffff:10.0.0.255]:5000", b"HEAD / HTTP/1.1", 304, 0, None),
            "10.0.0.255 - - [21/Nov/2026:08:00:00 +0000] \"HEAD / HTTP/1.1\" 304 - \"-\" \"-\"\n"
        );
        assert!(line("[2001:db8::1]:5000", b"", 400, 9, None).starts_with("2001:db8::1 - - ["));
    }

    #[test]
    fn h55_control_characters_quotes_and_terminal_escapes_are_escaped() {
        let shown = line("127.0.0.1:1", b"GET /\x1b[31m\"\\\r\n\x7f\xc2\x9b HTTP/1.1", 400, 9, Some(b"\x07"));
        assert!(
            shown.contains(r#""GET /\x1B[31m\x22\x5C\x0D\x0A\x7F\xC2\x9B HTTP/1.1" 400 9 "-" "\x07""#),
            "{shown}"
        );
    }

    #[test]
    fn long_text_is_cut_with_a_mark() {
        let mut text = Vec::new();
        escape(&mut text, &[b'a'; MOST_BYTES]);
        assert_eq!(text.len(), MOST_BYTES);
        text.clear();
        escape(&mut text, &[b'a'; MOST_BYTES + 1]);
        assert!(text.ends_with(b"a...") && text.len() == MOST_BYTES + 3);
        text.clear();
        escape(&mut text, &[b'\n'; MOST_BYTES]);
        assert!(text.ends_with(b"\\x0A...") && text.len() == MOST_BYTES + 3, "{} bytes", text.len());
    }

    proptest! {
        /// A request is one line of printable ASCII with its quotes in place, and every byte of the request can be
        /// recovered.
        #[test]
        fn any_request_is_one_line_with_six_quotes(
            request in prop::collection::vec(any::<u8>(), 0..200),
            agent in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let shown = line("127.0.0.1:1", &request, 200, 1, Some(&agent));
            let body = shown.strip_suffix('\n').expect("a line ends");
            prop_assert!(body.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            let parts: Vec<_> = body.split('"').collect();
            prop_assert_eq!(parts.len(), 7);
            prop_assert_eq!(unescape(parts[1]), request);
            prop_assert_eq!(unescape(parts[5]), agent);
        }
    }

    fn unescape(text: &str) -> Vec<u8> {
        let (mut bytes, mut rest) = (Vec::new(), text);
        while let Some(at) = rest.find("\\x") {
            bytes.extend_from_slice(&rest.as_bytes()[..at]);
            bytes.push(u8::from_str_radix(&rest[at + 2..at + 4], 16).expect("two digits"));
            rest = &rest[at + 4..];
        }
        bytes.extend_from_slice(rest.as_bytes());
        bytes
    }
}
