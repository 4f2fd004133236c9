//! Methods, versions, expectations, and attempts to change the protocol.

use tenfold_http::Next;
use tenfold_http::script::Script;

use crate::common::{only_response, statuses};
use crate::{BEHIND, all_refused, post, refused, run, understood};

#[test]
fn h16_an_upgrade_is_never_a_blind_switch() {
    for upgrade in ["h2c", "websocket", "TLS/1.0"] {
        let request =
            format!("GET /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: {upgrade}\r\n\r\n");
        assert_eq!(understood(&request), "GET /a None host=a Empty\n");
    }
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let upgrade = "GET /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n";
    let outcome = run(Script::new().sends(format!("{upgrade}{preface}")));
    assert_eq!((statuses(&outcome.sent), outcome.next), (vec![200, 505], Next::Linger));
}

#[test]
fn h19_another_expectation_is_417() {
    for expectation in ["", "200-ok", "100-continue, x", "100-continue;x", "100"] {
        refused(post(&format!("Expect: {expectation}\r\n")), 417);
    }
}

#[test]
fn h20_versions() {
    all_refused(["GET /a\r\n\r\n", "GET /a \r\n\r\n", "GET /\r\n\r\n"], 400);
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
        assert!(outcome.sent.starts_with(b"HTTP/1.1 200 "), "{method} does not reach the service");
    }
}

#[test]
fn h20_options_of_everything_and_connect_have_targets_of_their_own() {
    assert_eq!(understood("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), "OPTIONS * None host=a Empty\n");
    let connect = |target: &str| format!("CONNECT {target} HTTP/1.1\r\nHost: a\r\n\r\n");
    for target in ["b:443", "[::1]:443"] {
        // The bytes after it may be meant for the other end of the tunnel, so they are not read.
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
