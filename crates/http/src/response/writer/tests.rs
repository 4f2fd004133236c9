//! Responses in the format of HTTP/1.

use std::fs::File;
use std::io::IoSlice;
use std::sync::Arc;

use super::*;
use crate::clock::Instant;
use crate::limits::WriteMode;
use crate::message::request::Version;
use crate::out::OpenFile;

const ENCODER: Http1Encoder = Http1Encoder::PERSISTENT;

fn written(encoder: Http1Encoder, write: impl FnOnce(&mut ResponseWriter<'_>)) -> String {
    clock::set(Instant(0), 784_111_777);
    let mut out = Out::new();
    write(&mut ResponseWriter::new(&mut out, Encoder::Http1(encoder)));
    String::from_utf8(out.staged_alone().expect("nothing but staged bytes").to_vec()).expect("text")
}

#[test]
fn a_head_has_its_fields_in_order() {
    let text = written(ENCODER, |response| {
        let mut head = response.head(206);
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
    let longest =
        written(ENCODER, |response| response.head(206).content_range(&(u64::MAX - 1..u64::MAX), u64::MAX));
    assert!(
        longest.contains(
            "Content-Range: bytes 18446744073709551614-18446744073709551614/18446744073709551615\r\n"
        )
    );
    let unsatisfied = written(ENCODER, |response| response.head(416).unsatisfied_range(u64::MAX));
    assert!(unsatisfied.contains("Content-Range: bytes */18446744073709551615\r\n"));
}

#[test]
fn connection_is_sent_if_it_differs_from_the_default_of_the_version() {
    let sent = |version, persistent| {
        let text =
            written(Http1Encoder { version, persistent, ..ENCODER }, |response| response.head(200).end());
        assert!(text.starts_with("HTTP/1.1 200 OK\r\nServer: tenfold\r\nDate: "));
        text.lines().find_map(|line| line.strip_prefix("Connection: ").map(str::to_owned))
    };
    assert_eq!(sent(Version::Http11, true), None);
    assert_eq!(sent(Version::Http11, false).as_deref(), Some("close"));
    assert_eq!(sent(Version::Http10, true).as_deref(), Some("keep-alive"));
    assert_eq!(sent(Version::Http10, false).as_deref(), Some("close"));
}

#[test]
fn a_refusal_is_a_whole_response() {
    let mut length = 0;
    let text =
        written(ENCODER, |response| length = response.refusal(Refusal::Malformed("Host is missing"), true));
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
    let text = written(ENCODER, |response| response.head(599).end());
    assert!(text.starts_with("HTTP/1.1 599 \r\nServer: tenfold\r\n"), "{text}");
}

#[test]
fn h82_replaced_and_added_fields_belong_to_the_final_head() {
    let mut hints = HeaderLines::default();
    hints.field(FieldName::CACHE_CONTROL, FieldValue::constant("of a hint"));
    let mut added = HeaderLines::default();
    added.field(FieldName::constant("cache-control"), FieldValue::constant("max-age=1"));
    added.field(FieldName::VARY, FieldValue::constant("Origin"));
    let text = written(ENCODER, |response| {
        response.replace_field(FieldName::CACHE_CONTROL, FieldValue::constant("private"));
        response.add_fields(&added);
        response.early_hints(&hints);
        response.early_hints(&hints);
        let mut head = response.head(200);
        head.field(FieldName::CACHE_CONTROL, FieldValue::constant("public"));
        head.content_length(4);
        head.end();
        response.body(b"HTTP/1.1 200 OK\r\n\r\n");
        response.head(204).end();
    });
    let hint = "HTTP/1.1 103 Early Hints\r\nCache-Control: of a hint\r\n\r\n";
    let begin =
        |status| format!("HTTP/1.1 {status}\r\nServer: tenfold\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    let head = begin("200 OK") + "Content-Length: 4\r\nVary: Origin\r\nCache-Control: private\r\n\r\n";
    assert_eq!(text, format!("{hint}{hint}{head}HTTP/1.1 200 OK\r\n\r\n{}\r\n", begin("204 No Content")));
}

/// Returns the bytes of each call, and whether the call announces more.
fn calls(out: &mut Out) -> Vec<(String, bool)> {
    let mut calls = Vec::new();
    while !out.is_empty() {
        if let Some((_, range, more)) = out.file() {
            let count = range.end - range.start;
            calls.push((format!("file {count}"), more));
            out.advance(count);
            continue;
        }
        let mut slices = [IoSlice::new(&[]); 8];
        let (filled, more) = out.memory(&mut slices);
        let bytes: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.iter().copied()).collect();
        out.advance(bytes.len() as u64);
        calls.push((String::from_utf8(bytes).expect("text"), more));
    }
    calls
}

fn answer(out: &mut Out, write: WriteMode, body: &[u8]) {
    clock::set(Instant(0), 784_111_777);
    let mut response = ResponseWriter::new(out, Encoder::Http1(Http1Encoder { write, ..ENCODER }));
    response.head(200).content_length(4);
    response.body(body);
}

const HEAD: &str = "HTTP/1.1 200 OK\r\nServer: tenfold\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
                    Content-Length: 4\r\n\r\n";

#[test]
fn a_split_response_leaves_in_two_calls_that_promise_nothing() {
    let mut out = Out::new();
    answer(&mut out, WriteMode::Joined, b"zero");
    answer(&mut out, WriteMode::Split, b"one.");
    answer(&mut out, WriteMode::Split, b"");
    answer(&mut out, WriteMode::Split, b"two.");
    let (head, body) = (|| (HEAD.to_owned(), false), |text: &str| (text.to_owned(), false));
    let joined = (format!("{HEAD}zero"), false);
    assert_eq!(calls(&mut out), [joined, head(), body("one."), head(), head(), body("two.")]);
}

#[test]
fn h82_a_final_head_leaves_apart_from_the_interim_response_before_it() {
    let mut hints = HeaderLines::default();
    hints.field(FieldName::constant("Link"), FieldValue::constant("</a>; rel=preload"));
    let mut out = Out::new();
    ResponseWriter::new(&mut out, Encoder::Http1(Http1Encoder { write: WriteMode::Split, ..ENCODER }))
        .early_hints(&hints);
    answer(&mut out, WriteMode::Split, b"body");
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n";
    assert_eq!(calls(&mut out), [interim, HEAD, "body"].map(|text| (text.to_owned(), false)));
}

#[test]
fn each_line_of_a_head_leaves_by_itself() {
    let mut out = Out::new();
    answer(&mut out, WriteMode::PerHeader, b"body");
    let sent = calls(&mut out);
    let lines: Vec<_> = sent.iter().map(|(line, _)| line.as_str()).collect();
    let expected: Vec<_> = HEAD.split_inclusive('\n').chain(["body"]).collect();
    assert_eq!(lines, expected);
    assert!(sent.iter().all(|(_, more)| !more));
}

#[test]
fn a_body_that_is_a_file_is_apart_from_heads_and_its_parts_are_together() {
    let file = Arc::new(OpenFile::new(File::open("/dev/null").expect("Linux has it"), 9));
    let mut out = Out::new();
    for _ in 0..2 {
        answer(&mut out, WriteMode::Split, b"--part");
        let mut response = ResponseWriter::http1(&mut out);
        response.push(Part::File(file.clone(), 0..9));
        response.body(b"--end");
        response.observe(Box::new(|_| {}));
    }
    let once =
        [(HEAD.to_owned(), false), ("--part".into(), true), ("file 9".into(), true), ("--end".into(), false)];
    assert_eq!(calls(&mut out), [once.clone(), once].concat());
}

#[test]
fn memory_that_is_moved_out_keeps_its_pieces() {
    let mut out = Out::new();
    answer(&mut out, WriteMode::Split, b"body");
    answer(&mut out, WriteMode::Split, b"body");
    let mut pieces = Vec::new();
    while let Some(crate::out::Memory::Staged(bytes, from)) = out.pop_memory(Vec::new()) {
        pieces.push((bytes.len() - from, out.follows()));
    }
    let once = [(HEAD.len(), false), (4, false)];
    assert_eq!(pieces, [once, once].concat());
}
