//! What a hostile or unlucky peer may do to the framing and the bounds of HTTP, by the numbers of
//! `docs/hardening.md`. Every refusal is sent, closes the connection, and nothing behind it is read.

mod common;

use std::time::Duration;

use common::{Response, Site, limits, only_response, responses, statuses};
use tenfold_http::script::{Outcome, Script};
use tenfold_http::{Finish, Limits, Next, Out};

const BEHIND: &str = "GET /smuggled HTTP/1.1\r\nHost: here\r\n\r\n";

fn run(script: Script) -> Outcome {
    script.run(&Site::default(), &limits())
}

/// Sends `request` and another behind it; the first is refused with `status`, and the second never read.
#[track_caller]
fn refused_with(limits: &Limits, request: impl AsRef<[u8]>, status: u16) -> Response {
    let site = Site::default();
    let shown = request.as_ref().escape_ascii().to_string();
    let outcome = Script::new().sends([request.as_ref(), BEHIND.as_bytes()].concat()).run(&site, limits);
    let response = only_response(&outcome.sent);
    assert_eq!(response.status, status, "{shown}: {}", response.text());
    assert_eq!(response.field("Connection"), Some("close"), "{shown}");
    assert_eq!((outcome.next, outcome.finish), (Next::Linger, Some(Finish::Linger)), "{shown}");
    assert_eq!(*site.asked.lock().expect("no test panics there"), [""; 0], "{shown}");
    response
}

#[track_caller]
fn refused(request: impl AsRef<[u8]>, status: u16) -> Response {
    refused_with(&limits(), request, status)
}

/// Sends `request`; it is answered and the connection goes on. Says what it was understood as.
#[track_caller]
fn understood(request: &str) -> String {
    let outcome = run(Script::new().sends(format!("{request}GET /next HTTP/1.1\r\nHost: a\r\n\r\n")));
    let found = responses(&outcome.sent);
    assert_eq!(found.len(), 2, "{request:?}: {}", found[0].text());
    assert_eq!(found[1].text(), "GET /next None host=a Empty\n");
    found[0].text().to_owned()
}

/// A POST with these fields.
fn post(fields: &str) -> String {
    format!("POST /a HTTP/1.1\r\nHost: here\r\n{fields}\r\n")
}

/// A GET with these lines behind its request line.
fn get(lines: impl AsRef<[u8]>) -> Vec<u8> {
    [b"GET /a HTTP/1.1\r\n", lines.as_ref(), b"\r\n"].concat()
}

#[test]
fn h01_a_length_beside_a_transfer_coding_is_refused() {
    refused(post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), 400);
    refused(post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), 400);
    refused(post("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n"), 400);
    refused(post("Transfer-Encoding: gzip, chunked\r\nContent-Length: 5\r\n"), 400);
    refused(post("Content-Length: 5\r\nTransfer-Encoding: gzip, chunked\r\n"), 400);
}

#[test]
fn h02_a_length_that_stands_twice_is_refused_even_where_it_is_the_same() {
    refused(post("Content-Length: 5\r\nContent-Length: 6\r\n"), 400);
    refused(post("Content-Length: 5\r\ncontent-length: 5\r\n"), 400);
    refused(post("Content-Length: 5, 6\r\n"), 400);
    refused(post("Content-Length: 5, 5\r\n"), 400);
    refused(post("Content-Length: 5,\r\n"), 400);
}

#[test]
fn h03_a_length_is_digits_that_fit_and_nothing_else() {
    for length in [
        "+5",
        "-1",
        "0x5",
        "5 6",
        "",
        "5;",
        "5.0",
        "1e1",
        "\u{0665}",
        "18446744073709551616",
        "18446744073709551615",
        "9223372036854775808",
        "00000000000000000000",
    ] {
        refused(post(&format!("Content-Length: {length}\r\n")), 400);
    }
    // The greatest length there is, and one of a server that pads: both numbers, the first one large.
    let outcome = run(Script::new().sends(post("Content-Length: 9223372036854775807\r\n")));
    assert_eq!(only_response(&outcome.sent).text(), "POST /a None host=here Length(9223372036854775807)\n");
    assert_eq!(understood(&(post("Content-Length: 0002\r\n") + "xy")), "POST /a None host=here Length(2)\n");
    assert_eq!(understood(&post("Content-Length: 0\r\n")), "POST /a None host=here Empty\n");
}

#[test]
fn h04_a_transfer_coding_is_chunked_or_refused() {
    refused(post("Transfer-Encoding: gzip, chunked\r\n"), 501);
    for coding in [
        "",
        "identity",
        "gzip",
        "chunked, gzip",
        "chunked, identity",
        "xchunked",
        "chunkedx",
        "chunked;q=1",
        "\"chunked\"",
        "chunked chunked",
        "chunked, chunked",
        ", chunked",
        "chunked,",
        "gzip,, chunked",
        "chun\tked",
        "\u{212a}hunked",
    ] {
        refused(post(&format!("Transfer-Encoding: {coding}\r\n")), 400);
    }
    refused(post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400);
    refused(post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"), 400);
    refused(post("Transfer-Encoding: gzip, chunked\r\nTransfer-Encoding: chunked\r\n"), 400);
    refused(post("Transfer_Encoding : chunked\r\n"), 400);
}

#[test]
fn h05_a_transfer_coding_in_http_1_0_is_refused() {
    refused("POST /a HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 400);
    refused("POST /a HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: identity\r\n\r\n", 400);
}

#[test]
fn h06_folded_lines_are_refused() {
    refused(get("Host: here\r\nX: a\r\n b\r\n"), 400);
    refused(get("Host: here\r\nX: a\r\n\tb\r\n"), 400);
    refused(get("Host: here\r\nX:\r\n b\r\n"), 400);
    refused(get("Host: here\r\nX: a\r\n \r\n"), 400);
    refused(post("Transfer-Encoding:\r\n chunked\r\n"), 400);
}

#[test]
fn h07_white_space_around_a_name_is_refused() {
    refused(get("Host : here\r\n"), 400);
    refused(get("Host\t: here\r\n"), 400);
    refused(get(" Host: here\r\n"), 400);
    refused(get("\tHost: here\r\n"), 400);
    refused(get(" \r\nHost: here\r\n"), 400);
    refused(post("Content-Length : 5\r\n"), 400);
    refused(get("Host: here\r\nX Y: z\r\n"), 400);
    refused(get("Host: here\r\n: z\r\n"), 400);
    refused(get("Host: here\r\nX\r\n"), 400);
    refused(" GET /a HTTP/1.1\r\nHost: here\r\n\r\n", 400);
    // White space around a value is not part of it.
    assert_eq!(understood("GET /a HTTP/1.1\r\nHost: \t here \t\r\n\r\n"), "GET /a None host=here Empty\n");
    assert_eq!(understood("GET /a HTTP/1.1\r\nHost:here\r\n\r\n"), "GET /a None host=here Empty\n");
}

#[test]
fn h08_a_bare_line_feed_is_refused() {
    refused("GET /a HTTP/1.1\nHost: here\r\n\r\n", 400);
    refused("GET /a HTTP/1.1\r\nHost: here\n\r\n", 400);
    refused("GET /a HTTP/1.1\r\nHost: here\r\n\n", 400);
    refused("GET /a HTTP/1.1\r\nHost: here\n\n", 400);
    refused("\nGET /a HTTP/1.1\r\nHost: here\r\n\r\n", 400);
    refused("\r\n\nGET /a HTTP/1.1\r\nHost: here\r\n\r\n", 400);
    refused(get("Host: here\r\nX: a\nTransfer-Encoding: chunked\r\n"), 400);
}

#[test]
fn h08_an_empty_line_in_front_is_passed_over_and_two_are_refused() {
    assert_eq!(understood("\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n"), "GET /a None host=a Empty\n");
    let between = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n\r\n";
    assert_eq!(understood(between), "GET /a None host=a Empty\n");
    refused("\r\n\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    refused("\r\n\r\n", 400);
}

#[test]
fn h09_a_bare_carriage_return_is_refused() {
    refused("GET /a HTTP/1.1\rHost: here\r\n\r\n", 400);
    refused("GET /a\rb HTTP/1.1\r\nHost: here\r\n\r\n", 400);
    refused("GET /a HTTP/1.1\r\r\nHost: here\r\n\r\n", 400);
    refused("\rGET /a HTTP/1.1\r\nHost: here\r\n\r\n", 400);
    refused(get("Host: here\r\nX: a\rb\r\n"), 400);
    refused(get("Host: here\r\nX: a\rTransfer-Encoding: chunked\r\n"), 400);
    refused(get("Host: here\r\r\n"), 400);
    refused(get("Host: here\r\nX\r: a\r\n"), 400);
}

#[test]
fn h10_control_characters_are_refused_everywhere() {
    for control in (0..b' ').chain([0x7f]).filter(|byte| !b"\t\r\n".contains(byte)) {
        refused(get([b"Host: here\r\nX: a", &[control][..], b"b\r\n"].concat()), 400);
        refused(get([b"Host: here\r\nX: ", &[control][..], b"\r\n"].concat()), 400);
        refused(get([b"Host: here\r\nX", &[control][..], b"Y: b\r\n"].concat()), 400);
        refused([b"GET /a", &[control][..], b" HTTP/1.1\r\nHost: here\r\n\r\n"].concat(), 400);
        refused([b"GET", &[control][..], b" /a HTTP/1.1\r\nHost: here\r\n\r\n"].concat(), 400);
        refused([b"GET /a HTTP/1.1", &[control][..], b"\r\nHost: here\r\n\r\n"].concat(), 400);
        refused(get([b"Host: he", &[control][..], b"re\r\n"].concat()), 400);
    }
    for wrong in b"\"(),/;<=>?@[\\]{} \x80\xff" {
        refused(get([b"Host: here\r\nX", &[*wrong][..], b"Y: b\r\n"].concat()), 400);
    }
}

#[test]
fn h13_a_host_is_there_once_and_valid() {
    refused("GET /a HTTP/1.1\r\n\r\n", 400);
    refused(get("Host: here\r\nHost: here\r\n"), 400);
    refused(get("Host: here\r\nhost: there\r\n"), 400);
    refused("GET /a HTTP/1.0\r\nHost: here\r\nHost: there\r\n\r\n", 400);
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
    let long = "a".repeat(255);
    for host in [
        "a",
        "",
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
    // HTTP/1.0 had no Host.
    let outcome = run(Script::new().sends("GET /a HTTP/1.0\r\n\r\n"));
    assert_eq!(only_response(&outcome.sent).text(), "GET /a None host=none Empty\n");
}

#[test]
fn h14_the_authority_of_an_absolute_target_wins() {
    for (target, path, host) in [
        ("http://there/a", "/a None", "there"),
        ("HTTP://there:80/a?b=c", "/a Some(\"b=c\")", "there:80"),
        ("https://[::1]:8443/a", "/a None", "[::1]:8443"),
        ("http://there", "/ None", "there"),
        ("http://there?b", "/ Some(\"b\")", "there"),
        ("http://there//a", "//a None", "there"),
        ("/http://there/a", "/http://there/a None", "here"),
    ] {
        let text = understood(&format!("GET {target} HTTP/1.1\r\nHost: here\r\n\r\n"));
        assert_eq!(text, format!("GET {path} host={host} Empty\n"), "{target}");
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
    // The Host beside it still has to be there, and valid.
    refused("GET http://there/a HTTP/1.1\r\n\r\n", 400);
    refused("GET http://there/a HTTP/1.1\r\nHost: a b\r\n\r\n", 400);
}

#[test]
fn a_target_holds_only_what_a_target_may() {
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

#[test]
fn h16_an_upgrade_is_never_a_blind_switch() {
    for upgrade in ["h2c", "websocket", "TLS/1.0"] {
        let request =
            format!("GET /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: {upgrade}\r\n\r\n");
        assert_eq!(understood(&request), "GET /a None host=a Empty\n");
    }
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    refused(preface, 505);
    let upgrade = "GET /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n";
    let outcome = run(Script::new().sends(format!("{upgrade}{preface}")));
    assert_eq!((statuses(&outcome.sent), outcome.next), (vec![200, 505], Next::Linger));
}

#[test]
fn h17_a_thousand_pipelined_requests_are_answered_in_order_in_bounded_memory() {
    let requests: String = (0..1000).map(|n| format!("GET /{n} HTTP/1.1\r\nHost: here\r\n\r\n")).collect();
    for script in [Script::new(), Script::new().takes(100, Duration::ZERO)] {
        let outcome = script.sends(&requests).run(&Site::default(), &limits());
        let found = responses(&outcome.sent);
        assert_eq!(found.len(), 1000);
        for (n, response) in found.iter().enumerate() {
            assert_eq!(response.text(), format!("GET /{n} None host=here Empty\n"));
        }
        assert!(outcome.most_to_send < Out::STAGED_BOUND as u64 + 1000, "{} bytes", outcome.most_to_send);
    }
}

#[test]
fn h17_output_that_is_full_waits_for_a_flush() {
    let requests = "GET /shared HTTP/1.1\r\nHost: here\r\n\r\n".repeat(1000);
    // All of them at once in hand: the bound on a head does not bound what is in hand behind one.
    let limits = Limits { max_head: 1 << 20, ..limits() };
    let outcome = Script::new().sends(&requests).run(&Site::default(), &limits);
    assert_eq!(statuses(&outcome.sent).len(), 1000);
    assert_eq!(outcome.receives, 1);
    assert!(outcome.flushes >= 1000 / Out::PARTS_BOUND, "{} flushes", outcome.flushes);
    assert!(outcome.most_to_send < 10_000, "{} bytes", outcome.most_to_send);
}

#[test]
fn h18_one_byte_at_a_time_gives_the_same_answer_for_linear_work() {
    let request = format!("GET /a HTTP/1.1\r\nHost: here\r\nX: {}\r\n\r\n", "x".repeat(900));
    let whole = run(Script::new().sends(&request));
    let drips = run(Script::new().drips(&request, Duration::ZERO));
    assert_eq!(drips.sent, whole.sent);
    assert_eq!(drips.receives, request.len());
    assert!(drips.operations <= request.len() + 2, "{} operations", drips.operations);
}

#[test]
fn h19_another_expectation_is_417() {
    for expectation in ["", "200-ok", "100-continue, x", "100-continue;x", "100"] {
        refused(post(&format!("Expect: {expectation}\r\n")), 417);
    }
}

#[test]
fn h20_versions() {
    refused("GET /a\r\n\r\n", 400);
    refused("GET /a \r\n\r\n", 400);
    refused("GET /\r\n\r\n", 400);
    for version in ["HTTP/3.7", "HTTP/2.0", "HTTP/0.9", "HTTP/9.9"] {
        refused(format!("GET /a {version}\r\nHost: a\r\n\r\n"), 505);
    }
    for version in [
        "HTTP/1",
        "HTTP/2",
        "HTTP/1.",
        "HTTP/1.10",
        "HTTP/01.1",
        "HTTP/11.1",
        "http/1.1",
        "Http/1.1",
        "HTTP/1,1",
        "HTTP/-1.1",
        "HTTP/1.1 ",
        "HTTP /1.1",
        "HTTPS/1.1",
        "XTTP/1.1",
        "HTTP/1.x",
        "HTTP/a.1",
        "",
    ] {
        refused(format!("GET /a {version}\r\nHost: a\r\n\r\n"), 400);
    }
    for minor in 2..=9 {
        let request = format!("GET /a HTTP/1.{minor}\r\nHost: a\r\n\r\n");
        assert_eq!(understood(&request), "GET /a None host=a Empty\n");
        refused(format!("GET /a HTTP/1.{minor}\r\n\r\n"), 400);
    }
}

#[test]
fn h20_methods_and_request_lines() {
    for method in ["", "G@T", "G\"T", "GET,", "G(T)", "GE\u{e4}T", "[GET]"] {
        refused(format!("{method} /a HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
    }
    for method in ["get", "Get", "BREW", "GETT", "GE", "PROPFIND", "M-SEARCH", "!#$%&'*+-.^_`|~"] {
        refused(format!("{method} /a HTTP/1.1\r\nHost: a\r\n\r\n"), 501);
    }
    for line in
        ["GET  /a HTTP/1.1", "GET /a  HTTP/1.1", "GET\t/a HTTP/1.1", "GET /a\tHTTP/1.1", "GET /a b HTTP/1.1"]
    {
        refused(format!("{line}\r\nHost: a\r\n\r\n"), 400);
    }
    for method in ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"] {
        let outcome = run(Script::new().sends(format!("{method} /a HTTP/1.1\r\nHost: a\r\n\r\n")));
        assert!(outcome.sent.starts_with(b"HTTP/1.1 200 "), "a known method reaches the service");
    }
}

#[test]
fn h20_options_of_everything_and_connect_have_targets_of_their_own() {
    assert_eq!(understood("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), "OPTIONS * None host=a Empty\n");
    let connect = |target: &str| format!("CONNECT {target} HTTP/1.1\r\nHost: a\r\n\r\n");
    for target in ["b:443", "[::1]:443"] {
        // What follows may be meant for the other end of the tunnel: it is not read.
        let outcome = run(Script::new().sends(connect(target) + BEHIND));
        let response = only_response(&outcome.sent);
        assert_eq!(response.text(), format!("CONNECT * None host={target} Empty\n"));
        assert_eq!((response.field("Connection"), outcome.next), (Some("close"), Next::Linger));
    }
    for target in
        ["b", "b:", "b:x", ":443", "b:0x1", "b:70000", "/a", "*", "http://b:443/", "[::1]", "u@b:443"]
    {
        refused(connect(target), 400);
    }
}

#[test]
fn h21_the_bounds_on_heads_are_exact() {
    let head = |length: usize| {
        let begin = "GET /a HTTP/1.1\r\nHost: here\r\nX: ";
        format!("{begin}{}\r\n\r\n", "x".repeat(length - begin.len() - 4))
    };
    let bound = limits().max_head;
    understood(&head(bound - 1));
    understood(&head(bound));
    understood(&format!("\r\n{}", head(bound)));
    refused(head(bound + 1), 431);
    refused("X".repeat(bound + 1), 431);
    refused(head(bound * 100), 431);
    let fields = |count: usize| {
        let fields: String = (1..count).map(|n| format!("X{n}: y\r\n")).collect();
        format!("GET /a HTTP/1.1\r\nHost: here\r\n{fields}\r\n")
    };
    let bound = limits().max_headers;
    understood(&fields(bound));
    refused(fields(bound + 1), 431);
    refused(fields(10_000), 431);
    let wide = Limits { max_head: 1 << 20, max_headers: Limits::MOST_HEADERS, ..limits() };
    refused_with(&wide, fields(10_000), 431);
    refused_with(&wide, fields(Limits::MOST_HEADERS + 1), 431);
}

#[test]
fn h21_a_head_that_is_too_large_by_drops_is_refused_alike() {
    let head = format!("GET /a HTTP/1.1\r\nHost: here\r\nX: {}\r\n\r\n", "x".repeat(2000));
    let outcome = run(Script::new().drips(&head, Duration::ZERO));
    assert_eq!(only_response(&outcome.sent).status, 431);
    assert_eq!(outcome.receives, limits().max_head);
}

#[test]
fn h22_the_bound_on_targets_is_exact() {
    let request = |length: usize, more: &str| {
        format!("GET /{} HTTP/1.1\r\nHost: a\r\n{more}\r\n", "x".repeat(length - 1))
    };
    let bound = limits().max_target;
    understood(&request(bound, ""));
    refused(request(bound + 1, ""), 414);
    refused(request(10_000, ""), 414);
    // A long target that is still within its bound does not take the blame for the rest of the head.
    refused(request(bound, &format!("X: {}\r\n", "x".repeat(2000))), 431);
    refused(request(bound + 1, &format!("X: {}\r\n", "x".repeat(2000))), 414);
}

#[test]
fn h27_a_reset_at_any_byte_is_a_close() {
    let request = post("Content-Length: 10\r\n") + "12345";
    for at in 0..request.len() {
        let outcome = run(Script::new().sends(&request[..at]).resets());
        assert_eq!(outcome.next, Next::Close, "a reset at {at}");
    }
}
