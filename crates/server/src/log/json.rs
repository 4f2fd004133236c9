//! A line of the `json` format: an object (RFC 8259) that describes a response.
//!
//! A key with an unknown value is absent. Text of a client is one string. Each byte beyond ASCII is written as `\u00XX`
//! (ISO 8859-1, as in field values, RFC 9110 §5.5). So every line is ASCII, and every byte can be recovered. A string
//! longer than [`super::combined::MOST_BYTES`] is truncated, and a separate key marks that.

use std::io::Write;
use std::time::Duration;

use tenfold_http::{RequestSummary, TlsFacts};

use super::combined::cut;
use super::line::{LineStart, LogFields, Times, put_number, put_peer};

/// Writes the part of an object before the number of bytes.
pub(super) fn begin(line: &mut Vec<u8>, date: &[u8], start: LineStart<'_>) {
    let LineStart { peer, request, summary, status, fields } = start;
    line.extend_from_slice(b"{\"time\":\"");
    line.extend_from_slice(date);
    line.extend_from_slice(b"\",\"client\":\"");
    put_peer(line, peer);
    line.push(b'"');
    for (key, text) in [("user", fields.user), ("request_id", fields.request_id)] {
        if let Some(text) = text {
            put_text(line, key, text);
        }
    }
    put_text(line, "request", request);
    let (method, protocol) = match summary {
        RequestSummary::Parsed { method, version, .. } => (Some(method.as_str()), Some(version.as_str())),
        RequestSummary::Unparsed(_) => (None, None),
    };
    for (key, text) in [
        ("method", method),
        ("host", fields.host),
        ("path", fields.path),
        ("query", fields.query),
        ("protocol", protocol),
    ] {
        if let Some(text) = text {
            put_text(line, key, text.as_bytes());
        }
    }
    line.extend_from_slice(b",\"status\":");
    put_number(line, u64::from(status));
    if let Some(reason) = fields.reason {
        put_text(line, "reason", reason.as_bytes());
    }
}

/// Writes the number of bytes, and the rest of the line.
pub(super) fn end(line: &mut Vec<u8>, bytes: u64, fields: LogFields<'_>, times: Times) {
    line.extend_from_slice(b",\"bytes\":");
    put_number(line, bytes);
    for (key, field) in [("referer", fields.referer), ("agent", fields.agent)] {
        if let Some(value) = field {
            put_text(line, key, value);
        }
    }
    if let Some(tls) = fields.tls {
        put_tls(line, tls);
    }
    let microseconds = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    for (key, number) in [
        ("process_us", times.process.map(microseconds)),
        ("send_us", times.send.map(microseconds)),
        ("sends", times.sends.map(u64::from)),
    ] {
        if let Some(number) = number {
            put_key(line, key);
            put_number(line, number);
        }
    }
    if let (Some(process), Some(send)) = (times.process, times.send) {
        put_key(line, "milliseconds");
        let all = microseconds(process + send);
        write!(line, "{}.{:03}", all / 1000, all % 1000).expect("memory does not fail to be written");
    }
    line.extend_from_slice(b"}\n");
}

fn put_tls(line: &mut Vec<u8>, tls: &TlsFacts) {
    for (key, text) in [
        ("tls_version", Some(tls.version)),
        ("tls_cipher", Some(tls.cipher)),
        ("tls_server_name", tls.server_name.as_deref()),
        ("tls_alpn", tls.alpn),
    ] {
        if let Some(text) = text {
            put_text(line, key, text.as_bytes());
        }
    }
    put_key(line, "tls_resumed");
    line.extend_from_slice(if tls.resumed { b"true" } else { b"false" });
}

fn put_key(line: &mut Vec<u8>, key: &str) {
    line.extend_from_slice(b",\"");
    line.extend_from_slice(key.as_bytes());
    line.extend_from_slice(b"\":");
}

/// The most bytes of an escaped byte: `\u00XX`.
const WIDEST: usize = 6;

fn put_text(line: &mut Vec<u8>, key: &str, text: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let shown = cut(text, WIDEST, |byte| match byte {
        b'"' | b'\\' => 2,
        b' '..=b'~' => 1,
        _ => WIDEST,
    });
    put_key(line, key);
    line.push(b'"');
    for &byte in shown {
        match byte {
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', byte]),
            b' '..=b'~' => line.push(byte),
            _ => {
                line.extend_from_slice(b"\\u00");
                line.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
            }
        }
    }
    line.push(b'"');
    if shown.len() < text.len() {
        line.extend_from_slice(b",\"");
        line.extend_from_slice(key.as_bytes());
        line.extend_from_slice(b"_truncated\":true");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use serde_json::Value;
    use tenfold_http::{Method, Peer, Version};

    use super::*;
    use crate::log::combined::MOST_BYTES;

    fn line(request: &[u8], bytes: u64, fields: LogFields<'_>, times: Times) -> String {
        let mut line = Vec::new();
        let summary = RequestSummary::Unparsed(request);
        let start = LineStart { peer: &Peer::Unix, request, summary, status: 200, fields };
        begin(&mut line, b"2026-11-21T08:00:00Z", start);
        end(&mut line, bytes, fields, times);
        String::from_utf8(line).expect("a line is ASCII")
    }

    #[test]
    fn unknown_values_are_absent() {
        assert_eq!(
            line(b"GET / HTTP/1.1", 0, LogFields::default(), Times::default()),
            "{\"time\":\"2026-11-21T08:00:00Z\",\"client\":\"unix:\",\"request\":\"GET / HTTP/1.1\",\
             \"status\":200,\"bytes\":0}\n"
        );
    }

    #[test]
    fn known_values_are_present_even_if_they_are_empty() {
        let times = Times {
            process: Some(Duration::from_nanos(999)),
            send: Some(Duration::from_micros(1500)),
            sends: Some(2),
        };
        let fields = LogFields { referer: Some(b""), agent: Some(b"a \"b\""), ..LogFields::default() };
        let shown = line(b"GET /\x1b\xe9 HTTP/1.1", 5, fields, times);
        assert!(
            shown.ends_with(
                "\"request\":\"GET /\\u001b\\u00e9 HTTP/1.1\",\"status\":200,\"bytes\":5,\"referer\":\"\",\
                 \"agent\":\"a \\\"b\\\"\",\"process_us\":0,\"send_us\":1500,\"sends\":2,\"milliseconds\":1.500}\n"
            ),
            "{shown}"
        );
    }

    #[test]
    fn the_parts_of_a_request_have_keys_of_their_own() {
        let (host, path, query) = (Some("a.example:80"), Some("/a%20b"), Some("c=\"d\""));
        let fields = LogFields { host, path, query, ..LogFields::default() };
        let (method, version) = (Method::Head, Version::Http11);
        let summary = RequestSummary::Parsed { method, target: "/a%20b?c=\"d\"", version };
        let mut shown = Vec::new();
        let start = LineStart { peer: &Peer::Unix, request: b"HEAD", summary, status: 200, fields };
        begin(&mut shown, b"2026-11-21T08:00:00Z", start);
        assert_eq!(
            String::from_utf8_lossy(&shown),
            "{\"time\":\"2026-11-21T08:00:00Z\",\"client\":\"unix:\",\"request\":\"HEAD\",\"method\":\"HEAD\",\
             \"host\":\"a.example:80\",\"path\":\"/a%20b\",\"query\":\"c=\\\"d\\\"\",\"protocol\":\"HTTP/1.1\",\
             \"status\":200"
        );
    }

    #[test]
    fn an_error_has_its_reason_after_its_status() {
        let fields = LogFields { reason: Some("no such file"), ..LogFields::default() };
        let shown = line(b"GET /a HTTP/1.1", 14, fields, Times::default());
        assert!(shown.ends_with(",\"status\":200,\"reason\":\"no such file\",\"bytes\":14}\n"), "{shown}");
    }

    #[test]
    fn a_connection_over_tls_has_the_result_of_its_handshake() {
        let (version, cipher) = ("TLSv1.3", "TLS_AES_128_GCM_SHA256");
        let facts = |server_name: Option<&str>, alpn, resumed| {
            Arc::new(TlsFacts {
                version,
                cipher,
                server_name: server_name.map(Box::from),
                alpn,
                resumed,
                certificate_names: None,
            })
        };
        let shown = |tls: &Arc<TlsFacts>| {
            let fields = LogFields { tls: Some(tls), ..LogFields::default() };
            line(b"GET / HTTP/1.1", 0, fields, Times::default())
        };
        let whole = shown(&facts(Some("a.test"), Some("http/1.1"), true));
        assert!(
            whole.ends_with(
                "\"bytes\":0,\"tls_version\":\"TLSv1.3\",\"tls_cipher\":\"TLS_AES_128_GCM_SHA256\",\
                 \"tls_server_name\":\"a.test\",\"tls_alpn\":\"http/1.1\",\"tls_resumed\":true}\n"
            ),
            "{whole}"
        );
        let short = shown(&facts(None, None, false));
        assert!(
            short.ends_with("\"tls_cipher\":\"TLS_AES_128_GCM_SHA256\",\"tls_resumed\":false}\n"),
            "{short}"
        );
    }

    #[test]
    fn a_line_has_a_bound_and_names_its_cut_fields() {
        for byte in *b"a\"\n\xff" {
            let sent = vec![byte; 64 * 1024];
            let fields = LogFields { referer: Some(&sent), agent: Some(&sent), ..LogFields::default() };
            let shown = line(&sent, u64::MAX, fields, Times::default());
            assert!(shown.len() < 3 * MOST_BYTES + 300, "{} bytes", shown.len());
            assert!(shown.len() > 3 * (MOST_BYTES - WIDEST), "{} bytes", shown.len());
            let value: Value = serde_json::from_str(&shown).expect("it is JSON");
            for key in ["request", "referer", "agent"] {
                assert_eq!(value[format!("{key}_truncated")], true);
                let text = value[key].as_str().expect("a string");
                assert!(text.chars().all(|letter| letter as u32 == u32::from(byte)), "the beginning of it");
            }
        }
        let whole = vec![b'a'; MOST_BYTES];
        assert!(!line(&whole, 1, LogFields::default(), Times::default()).contains("truncated"));
    }

    proptest! {
        /// Another JSON parser recovers every byte of the request.
        #[test]
        fn any_request_is_one_line_of_valid_json(
            request in prop::collection::vec(any::<u8>(), 0..200),
            agent in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let fields = LogFields { agent: Some(&agent), ..LogFields::default() };
            let shown = line(&request, 1, fields, Times::default());
            prop_assert!(shown.trim_end_matches('\n').bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            let value: Value = serde_json::from_str(&shown).expect("it is JSON");
            for (key, sent) in [("request", &request), ("agent", &agent)] {
                let letters = value[key].as_str().expect("a string").chars();
                let bytes: Vec<u8> = letters.map(|letter| letter as u8).collect();
                prop_assert_eq!(&bytes, sent);
            }
        }
    }
}
