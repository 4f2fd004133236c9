//! The Host field, and the authority and target of requests.

use tenfold_http::script::Script;

use crate::common::only_response;
use crate::{all_refused, get, refused, run, understood};

#[test]
fn h13_a_host_is_there_once_and_valid() {
    all_refused(["GET /a HTTP/1.1\r\n\r\n", "GET /a HTTP/1.0\r\nHost: here\r\nHost: there\r\n\r\n"], 400);
    all_refused(["Host: here\r\nHost: here\r\n", "Host: here\r\nhost: there\r\n"].map(get), 400);
    for host in [
        "a b",
        "a/b",
        "a?b",
        "a#b",
        "user@a",
        "a:b",
        "a:80:80",
        ":80",
        "a:99999",
        "a:65536",
        "a:-1",
        "a:+1",
        "[",
        "[]",
        "[::1",
        "::1",
        "[::1]a",
        "[::1]:a",
        "[::g]",
        "[::1%25eth0]",
        "[v1.a]",
        "a%",
        "a%4",
        "a%gg",
        "a\\b",
        "a<b",
        "\u{e4}",
        "http://a",
        "a\"",
        "{a}",
        "a|b",
        "a^b",
        "a`b",
    ] {
        refused(get(format!("Host: {host}\r\n")), 400);
    }
    refused(get(format!("Host: {}\r\n", "a".repeat(256))), 400);
    // No http URL has an empty host (RFC 9110 §4.2.1).
    all_refused(["Host:\r\n", "Host: \r\n"].map(get), 400);
    all_refused(["OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n", "GET /a HTTP/1.0\r\nHost:\r\n\r\n"], 400);
    let long = "a".repeat(255);
    for host in [
        "a",
        "a:80",
        "a:",
        "a:65535",
        "a:0",
        "127.0.0.1:8080",
        "[::1]",
        "[::1]:80",
        "a%20b",
        "a,b",
        "A.b-c_d~e",
        &long,
    ] {
        let text = understood(&format!("GET /a HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(text, format!("GET /a None host={host} Empty\n"));
    }
    // HTTP/1.0 does not require Host.
    let outcome = run(Script::new().sends("GET /a HTTP/1.0\r\n\r\n"));
    assert_eq!(only_response(&outcome.sent).text(), "GET /a None host=none Empty\n");
}

#[test]
fn h14_the_authority_of_an_absolute_target_wins() {
    for (target, understood_as) in [
        ("http://there/a", "/a None host=there"),
        ("HTTP://there:80/a?b=c", "/a Some(\"b=c\") host=there:80"),
        ("http://[::1]:8443/a", "/a None host=[::1]:8443"),
        ("http://there", "/ None host=there"),
        ("http://there?b", "/ Some(\"b\") host=there"),
        ("http://there//a", "//a None host=there"),
        ("/http://there/a", "/http://there/a None host=here"),
    ] {
        let text = understood(&format!("GET {target} HTTP/1.1\r\nHost: here\r\n\r\n"));
        assert_eq!(text, format!("GET {understood_as} Empty\n"), "{target}");
    }
    // The connection has no TLS (RFC 9110 §7.4).
    for target in ["https://here/a", "HTTPS://here", "https://here?b"] {
        refused(format!("GET {target} HTTP/1.1\r\nHost: here\r\n\r\n"), 421);
    }
    for target in [
        "http://",
        "http:///a",
        "http://user@there/a",
        "http://user:word@there/a",
        "http://there:x/a",
        "http://:80/a",
        "http://the re/a",
        "ftp://there/a",
        "file:///etc/passwd",
        "javascript://a",
        "http:/a",
        "http:a",
        "there/a",
        "a",
        "there:80",
        "*",
        "**",
        "?a",
        "#a",
        "http://there#a",
        "http://there/a#b",
        "\\a",
        "http://there\\a/b",
    ] {
        refused(format!("GET {target} HTTP/1.1\r\nHost: here\r\n\r\n"), 400);
    }
    let text = understood("GET http://there/a HTTP/1.1\r\nHost:\r\n\r\n");
    assert_eq!(text, "GET /a None host=there Empty\n");
    // Host is still required, and must be valid.
    all_refused(
        ["GET http://there/a HTTP/1.1\r\n\r\n", "GET http://there/a HTTP/1.1\r\nHost: a b\r\n\r\n"],
        400,
    );
}

#[test]
fn targets_have_only_allowed_bytes() {
    for byte in 0x21..=0xff_u8 {
        let path = [b"GET /a", &[byte][..], b"b HTTP/1.1\r\nHost: here\r\n\r\n"].concat();
        if b"\"#<>\\^`{}\x7f".contains(&byte) || byte >= 0x80 {
            refused(path, 400);
        } else {
            understood(std::str::from_utf8(&path).expect("ASCII"));
        }
        let query = [b"GET /a?", &[byte][..], b"b HTTP/1.1\r\nHost: here\r\n\r\n"].concat();
        if byte == b'#' || byte >= 0x7f {
            refused(query, 400);
        } else {
            understood(std::str::from_utf8(&query).expect("ASCII"));
        }
    }
    refused("GET /\u{e4} HTTP/1.1\r\nHost: here\r\n\r\n", 400);
}
