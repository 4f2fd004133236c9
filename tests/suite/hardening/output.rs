//! Responses and log lines: a request cannot change the meaning of either.

use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::wire::request;

pub(crate) const THEME: Theme = Theme {
    name: "hardening",
    cases: cases![
        Shared on SEMANTICS + ONE_TLS + ANOTHER: h56_redirects_contain_no_line_breaks,
            h57_h60_redirects_stay_on_this_site, h59_nosniff_and_a_charset, h60_no_host_is_repeated;
        Own on DRIVERS + ANOTHER: h55_a_request_is_one_log_line, h58_names_of_files_are_text;
    ],
};

fn h55_a_request_is_one_log_line(config: &Config) {
    let server = Launch::new(config, site::shared()).start();
    let hostile = "a\" 200 1 \"-\" \"-\"\u{9b}31m\u{202e}\\x";
    server.ask("GET", "/none?%22%0a", &[("User-Agent", hostile), ("Referer", "\t\"\\")]);
    let mut wire = server.connect();
    wire.send(b"GET /\x1b]0;owned\x07\r\nX: y HTTP/1.1\r\n\r\n");
    wire.response();
    drop(wire);
    let mut wire = server.connect();
    wire.send(request("GET", "/1k.html", &[("User-Agent", "plain")]));
    assert_eq!(wire.response().status, 200);
    drop(wire);
    becomes_true(SOON, "three lines", || server.log().lines().count() >= 3);
    let log = server.log();
    assert_eq!(log.lines().count(), 3, "{log}");
    assert!(log.bytes().all(|byte| byte == b'\n' || (b' '..127).contains(&byte)), "{}", log.escape_debug());
    for line in log.lines() {
        assert!(line.starts_with("127.0.0.1 - - ["), "{line}");
        // Quotes from a request are escaped, so the remaining quotes belong to the format.
        assert_eq!(line.matches('"').count(), 6, "{line}");
    }
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn h56_redirects_contain_no_line_breaks(server: &Server) {
    for target in ["/folder%0d%0aX:%20y", "/%0d%0aLocation:%20http://evil", "/folder%0a", "/folder%0d"] {
        assert_eq!(server.get(target).status, 400, "{target}");
    }
    let response = server.get("/folder?a%0d%0aX:%20y");
    assert_eq!(response.need("Location"), "/folder/?a%0d%0aX:%20y", "what came encoded stays so");
}

fn h57_h60_redirects_stay_on_this_site(server: &Server) {
    for target in ["//folder", "///folder", "//folder//", "/folder", "http://evil.example/folder"] {
        let response = server.ask("GET", target, &[("X-Forwarded-Host", "evil.example")]);
        if let Some(place) = response.field("Location") {
            assert_eq!(place, "/folder/", "{target}");
        }
    }
    assert_eq!(server.get("/folder").need("Location"), "/folder/");
    for target in [
        "//evil.example/..",
        "//evil.example/%2e%2e",
        "/\\evil.example",
        "/%5cevil.example/",
        "//evil.example",
    ] {
        let response = server.get(target);
        assert!(response.field("Location").is_none(), "{target}: {}", response.head);
        assert!(matches!(response.status, 400 | 404), "{target}: {}", response.status);
    }
}

fn h59_nosniff_and_a_charset(server: &Server) {
    for (target, media_type) in [
        ("/1k.html", "text/html; charset=utf-8"),
        ("/style.css", "text/css; charset=utf-8"),
        ("/empty.txt", "text/plain; charset=utf-8"),
        ("/16k.bin", "application/octet-stream"),
        ("/none", "text/plain; charset=utf-8"),
    ] {
        let response = server.get(target);
        assert_eq!(response.need("Content-Type").to_ascii_lowercase(), media_type, "{target}");
        assert_eq!(response.need("X-Content-Type-Options"), "nosniff", "{target}");
    }
}

fn h60_no_host_is_repeated(server: &Server) {
    for target in ["/folder", "/none", "/1k.html", "/bare", "/%zz"] {
        let mut wire = server.connect();
        wire.send(format!("GET {target} HTTP/1.1\r\nHost: evil.example\r\n\r\n"));
        let response = wire.response();
        let all = format!("{}{}", response.head, String::from_utf8_lossy(&response.body));
        assert!(!all.contains("evil"), "{target}: {all}");
    }
}

/// Listed names are only text.
fn h58_names_of_files_are_text(config: &Config) {
    let folder = TempFolder::new("names");
    folder.write("<script>alert(1)<", "a page\n");
    folder.write("a&b\"c'd.txt", "text\n");
    let server = Launch::new(config, folder.path()).start();
    for target in ["/%3Cscript%3Ealert(1)%3C/", "/%3Cscript%3Enone", "/a&b%22c'd.txt/"] {
        let response = server.get(target);
        assert_eq!(response.status, 404, "{target}");
        assert!(!String::from_utf8_lossy(&response.body).contains('<'), "{target} is repeated");
    }
    assert_eq!(server.get("/%3Cscript%3Ealert(1)%3C").body, b"a page\n");
    let page = server.get("/");
    assert_eq!(page.status, 200, "only this machine can connect");
    // The page has a script of its own.
    let text = String::from_utf8_lossy(&page.body);
    assert!(
        !text.contains("<script>alert") && text.contains("&#60;script&#62;alert"),
        "a name is markup: {text}"
    );
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}
