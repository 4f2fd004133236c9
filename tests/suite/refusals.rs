//! Invalid requests: a status, and a close that reaches the peer.

use tenfold_tests::cases;
use tenfold_tests::harness::Theme;
use tenfold_tests::server::Server;
use tenfold_tests::wire::{ConnectionEnd, request};

pub(crate) const THEME: Theme = Theme {
    name: "refusals",
    cases: cases![
        Shared on SEMANTICS + ONE_TLS + ANOTHER: malformed_heads_are_400,
            h19_h20_unknown_things_are_501_and_505, h21_h22_sizes_at_their_bounds,
            h20_methods_that_do_not_apply_are_405;
        Shared on MECHANISMS + TLS + ANOTHER_TLS: h15_a_rejection_arrives_although_more_was_sent,
            bytes_after_a_rejected_request_are_ignored;
    ],
};

/// The bytes, and the expected status; `0` for a close without a response.
const HEADS: &[(&str, &str)] = &[
    ("a bare line feed behind the request line", "GET / HTTP/1.1\nHost: localhost\r\n\r\n"),
    ("a bare line feed behind a field", "GET / HTTP/1.1\r\nHost: localhost\n\r\n"),
    ("bare line feeds only", "GET / HTTP/1.1\nHost: localhost\n\n"),
    ("a bare carriage return", "GET / HTTP/1.1\r\nHost: localhost\r\nX: a\rb\r\n\r\n"),
    ("a space before the colon", "GET / HTTP/1.1\r\nHost : localhost\r\n\r\n"),
    ("a space before the first field", "GET / HTTP/1.1\r\n Host: localhost\r\n\r\n"),
    ("a folded field", "GET / HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n"),
    ("a field without name", "GET / HTTP/1.1\r\nHost: localhost\r\n: b\r\n\r\n"),
    ("a field without colon", "GET / HTTP/1.1\r\nHost: localhost\r\nX\r\n\r\n"),
    ("a NUL in a value", "GET / HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n"),
    ("a control character in a name", "GET / HTTP/1.1\r\nHost: localhost\r\nX\x01: a\r\n\r\n"),
    ("no Host", "GET / HTTP/1.1\r\n\r\n"),
    ("two Hosts", "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"),
    ("a Host that is none", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
    (
        "a length and chunks",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
    ),
    ("two lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n"),
    ("a list of lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 4\r\n\r\n"),
    ("the length +5", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n"),
    ("the length -1", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"),
    ("the length 0x5", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\n"),
    ("the length 5 6", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5 6\r\n\r\n"),
    ("no length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n"),
    ("the length 2^64", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n"),
    ("chunks in 1.0", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ("chunks that are not last", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n"),
    ("no version", "GET /\r\n\r\n"),
    ("a version in small letters", "GET / http/1.1\r\nHost: localhost\r\n\r\n"),
    ("two spaces", "GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("a space behind the version", "GET / HTTP/1.1 \r\nHost: localhost\r\n\r\n"),
    ("no target", "GET HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("a target that is no path", "GET 1k.html HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("a fragment", "GET /#a HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("a method that is no token", "G(T / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("an encoded NUL", "GET /1k.html%00 HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("half an encoded byte", "GET /%4 HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("an encoded byte that is none", "GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("a TLS greeting", "\x16\x03\x01\x02\0\x01\0\x01\r\n\r\n"),
];

#[track_caller]
fn expect_refusal(server: &Server, what: &str, bytes: impl AsRef<[u8]>, status: u16) {
    let mut wire = server.connect();
    wire.send(bytes);
    let response = wire.response();
    assert_eq!(response.status, status, "{what}");
    assert!(response.closes(), "{what}: the response does not say that it is the last: {}", response.head);
    let (rest, end) = wire.rest();
    assert!(
        rest.is_empty() && end == ConnectionEnd::Closed,
        "{what}: {} bytes more, then {end:?}",
        rest.len()
    );
}

fn malformed_heads_are_400(server: &Server) {
    for (what, bytes) in HEADS {
        // An invalid target does not invalidate the framing, so the connection may persist.
        let mut wire = server.connect();
        wire.send(bytes);
        let response = wire.response();
        assert_eq!(response.status, 400, "{what}");
        if !what.contains("encoded") {
            assert!(response.closes(), "{what}: the response does not say that it is the last");
            wire.expect_end();
        }
    }
}

fn h19_h20_unknown_things_are_501_and_505(server: &Server) {
    expect_refusal(server, "an unknown method", request("BREW", "/", &[]), 501);
    let gzip = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n";
    expect_refusal(server, "an unknown coding", gzip, 501);
    expect_refusal(server, "HTTP/3.7", "GET / HTTP/3.7\r\nHost: a\r\n\r\n", 505);
    expect_refusal(server, "HTTP/2.0", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505);
    let expects = "POST / HTTP/1.1\r\nHost: a\r\nExpect: more\r\nContent-Length: 3\r\n\r\n";
    expect_refusal(server, "an unknown expectation", expects, 417);
    let mut wire = server.connect();
    wire.send("GET /1k.html HTTP/1.7\r\nHost: a\r\n\r\n");
    assert_eq!(wire.response().status, 200, "a later 1.x is served as 1.1");
}

/// The response status for bytes on a new connection.
#[track_caller]
fn answer(server: &Server, bytes: impl AsRef<[u8]>) -> u16 {
    let mut wire = server.connect();
    wire.send(bytes);
    wire.response().status
}

fn h21_h22_sizes_at_their_bounds(server: &Server) {
    let target = |length: usize| format!("/{}", "a".repeat(length - 1));
    assert_eq!(server.get(&target(8 * 1024)).status, 404, "a target of 8 KiB");
    expect_refusal(server, "a target of 8 KiB and one", request("GET", &target(8 * 1024 + 1), &[]), 414);
    expect_refusal(server, "a target of 100 KiB", request("GET", &target(100 * 1024), &[]), 414);

    let head = |length: usize| {
        let bare = request("GET", "/1k.html", &[("X", "")]).len();
        request("GET", "/1k.html", &[("X", &"x".repeat(length - bare))])
    };
    assert_eq!(answer(server, head(16 * 1024)), 200, "a head of 16 KiB");
    expect_refusal(server, "a head of 16 KiB and one", head(16 * 1024 + 1), 431);
    expect_refusal(server, "a head of 200 KiB", head(200 * 1024), 431);

    let fields = |count: usize| request("GET", "/1k.html", &vec![("X", "y"); count - 1]);
    assert_eq!(answer(server, fields(100)), 200, "100 fields");
    expect_refusal(server, "101 fields", fields(101), 431);
}

/// A peer that is still sending receives the response: no reset destroys it.
fn h15_a_rejection_arrives_although_more_was_sent(server: &Server) {
    for length in [100, 10_000, 200_000] {
        let mut bytes = b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n".to_vec();
        bytes.resize(bytes.len() + length, b'x');
        expect_refusal(server, &format!("{length} bytes behind it"), bytes, 400);
    }
}

fn h20_methods_that_do_not_apply_are_405(server: &Server) {
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let response = server.ask(method, "/1k.html", &[]);
        assert_eq!(response.status, 405, "{method}");
        let allow: Vec<&str> = response.need("Allow").split(", ").collect();
        assert!(allow.contains(&"GET") && allow.contains(&"HEAD"), "{method}: Allow: {allow:?}");
        assert!(!allow.contains(&method), "{method}: Allow: {allow:?}");
    }
    for (method, target) in [("TRACE", "/"), ("CONNECT", "localhost:80")] {
        let status = server.ask(method, target, &[]).status;
        assert!(matches!(status, 400 | 405 | 501), "{method}: {status}");
    }
    let everything = server.ask("OPTIONS", "*", &[]);
    assert!(matches!(everything.status, 200 | 204), "OPTIONS *: {}", everything.status);
    assert!(everything.need("Allow").contains("GET"), "OPTIONS *: {}", everything.head);
    let one = server.ask("OPTIONS", "/1k.html", &[]);
    assert!(matches!(one.status, 200 | 204 | 405), "OPTIONS: {}", one.status);
    assert!(one.need("Allow").contains("GET"), "OPTIONS: {}", one.head);
}

fn bytes_after_a_rejected_request_are_ignored(server: &Server) {
    let mut bytes = request("GET", "/1k.html", &[]);
    bytes.extend(request("GET", "/1k.html", &[("Content-Length", "x")]));
    bytes.extend(request("GET", "/1k.html", &[]));
    let mut wire = server.connect();
    wire.send(bytes);
    assert_eq!(wire.response().status, 200);
    assert_eq!(wire.response().status, 400);
    wire.expect_end();
}
