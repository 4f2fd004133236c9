//! Files: complete, with the right fields, and never the wrong ones.

use std::time::Instant;

use tenfold_tests::cases;
use tenfold_tests::harness::Theme;
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, MODIFIED_DATE};
use tenfold_tests::time::SOON;

pub(crate) const THEME: Theme = Theme {
    name: "files",
    cases: cases![
        Shared on SEMANTICS + ONE_TLS: a_small_file_and_its_fields, h52_head_is_get_without_body,
            names_and_types, folders, h40_h47_missing_and_hidden, h39_h43_h44_nothing_outside_the_root,
            h46_special_files_are_rejected_immediately;
        Shared on MECHANISMS + TLS + ANOTHER_TLS: files_of_all_sizes;
        Shared on SENDERS + TLS + ANOTHER_TLS: a_large_file;
    ],
};

fn a_small_file_and_its_fields(server: &Server) {
    let response = server.get("/1k.html");
    assert_eq!(response.status, 200);
    assert!(response.body == site::content("1k.html"), "the body is another");
    assert_eq!(response.need("Content-Length"), "1024");
    assert_eq!(response.need("Content-Type").to_ascii_lowercase(), "text/html; charset=utf-8");
    assert_eq!(response.need("Last-Modified"), MODIFIED_DATE);
    assert_eq!(response.need("Accept-Ranges"), "bytes");
    assert_eq!(response.need("X-Content-Type-Options"), "nosniff");
    let tag = response.need("ETag");
    assert!(tag.len() > 2 && tag.starts_with('"') && tag.ends_with('"'), "not a strong entity tag: {tag}");
    let date = response.need("Date");
    assert!(date.len() == 29 && date.ends_with(" GMT"), "not a date: {date}");
    let name = response.field("Server").unwrap_or_default();
    assert!(!name.contains(|letter: char| letter.is_ascii_digit()), "Server tells a version: {name}");
}

fn files_of_all_sizes(server: &Server) {
    let mut wire = server.connect();
    for name in ["empty.txt", "1k.html", "16k.bin", "128k.bin", "3m.bin", "1k.html"] {
        wire.get(&format!("/{name}"));
        let response = wire.head();
        let expected = site::content(name);
        assert_eq!((response.status, response.promised()), (200, expected.len()), "{name}");
        wire.expect_body(&expected);
    }
}

fn a_large_file(server: &Server) {
    let mut wire = server.connect();
    wire.get("/large.bin");
    let response = wire.head();
    assert_eq!((response.status, response.promised()), (200, site::LARGE));
    wire.expect_body(site::large());
    wire.get("/1k.html");
    assert_eq!(wire.response().status, 200, "the connection goes on behind it");
}

fn h52_head_is_get_without_body(server: &Server) {
    let mut wire = server.connect();
    for target in ["/1k.html", "/3m.bin", "/empty.txt", "/none.html", "/folder"] {
        wire.send(tenfold_tests::wire::request("HEAD", target, &[]));
        let head = wire.head();
        wire.get(target);
        let get = wire.response();
        let mut bodiless = get.clone();
        bodiless.body.clear();
        assert_eq!(text(head.dateless()), text(bodiless.dateless()), "{target}");
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

fn names_and_types(server: &Server) {
    let mut wire = server.connect();
    let absolute = format!("{}://localhost/folder/page.html", server.config.scheme());
    let places = [
        ("/style.css", "style.css", "text/css; charset=utf-8"),
        ("/style.css?version=2", "style.css", "text/css; charset=utf-8"),
        ("/st%79le.css", "style.css", "text/css; charset=utf-8"),
        ("/with%20space.txt", "with space.txt", "text/plain; charset=utf-8"),
        ("/%C3%BCml%c3%a4ut.txt", "\u{fc}ml\u{e4}ut.txt", "text/plain; charset=utf-8"),
        ("/folder/page.html", "folder/page.html", "text/html; charset=utf-8"),
        (&absolute, "folder/page.html", "text/html; charset=utf-8"),
        ("/16k.bin", "16k.bin", "application/octet-stream"),
    ];
    for (target, name, media_type) in places {
        wire.get(target);
        let response = wire.response();
        assert_eq!(response.status, 200, "{target}");
        assert!(response.body == site::content(name), "{target}: the body is another");
        assert_eq!(response.need("Content-Type").to_ascii_lowercase(), media_type, "{target}");
    }
}

fn folders(server: &Server) {
    let mut wire = server.connect();
    for (target, name) in [("/", "index.html"), ("/folder/", "folder/index.html")] {
        wire.get(target);
        let response = wire.response();
        assert_eq!(response.status, 200, "{target}");
        assert!(response.body == site::content(name), "{target}: the body is another");
    }
    for (target, place) in [("/folder", "/folder/"), ("/folder?a=b", "/folder/?a=b"), ("/bare", "/bare/")] {
        wire.get(target);
        let response = wire.response();
        assert!(matches!(response.status, 301 | 308), "{target}: {}", response.status);
        assert_eq!(response.need("Location"), place, "{target}");
    }
    wire.get("/bare/");
    let response = wire.response();
    // Only this machine can connect, so a folder without an index is listed.
    assert_eq!(response.status, 200);
    assert!(response.body.starts_with(b"<!DOCTYPE html>"), "the body is a listing");
}

fn h40_h47_missing_and_hidden(server: &Server) {
    let mut wire = server.connect();
    let hidden =
        ["/none.html", "/folder/none", "/1k.html/", "/1k.html/x", "/.secret", "/%2esecret", "/.git/config"];
    for target in
        hidden.iter().chain(&["/.git/", "/.git", "/folder/.hidden", "/none/../.secret", "/%252e%252e/"])
    {
        wire.get(target);
        let response = wire.response();
        assert_eq!(response.status, 404, "{target}");
        assert!(!response.head.contains("Last-Modified"), "{target} is described");
    }
    wire.get("/.well-known/hello.txt");
    let response = wire.response();
    assert_eq!(response.status, 200, "what is well known is served");
    assert_eq!(response.body, site::content(".well-known/hello.txt"));
}

fn h39_h43_h44_nothing_outside_the_root(server: &Server) {
    let ways = [
        "/../../../../../../etc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/folder/../../../../../etc/passwd",
        "/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "//etc/passwd",
        "/%2fetc/passwd",
        "/out.txt",
        "/etc/passwd",
        "/etc/",
        "/etc",
        "/.%2e/.%2e/etc/passwd",
        "/..;/..;/etc/passwd",
    ];
    for target in ways {
        let response = server.get(target);
        assert!(matches!(response.status, 400 | 403 | 404), "{target}: {}", response.status);
        assert!(!String::from_utf8_lossy(&response.body).contains("root:"), "{target} shows the file");
    }
    assert_eq!(server.get("/in.html").body, site::content("1k.html"), "a link that stays inside is followed");
}

fn h46_special_files_are_rejected_immediately(server: &Server) {
    let begin = Instant::now();
    assert_eq!(server.get("/pipe").status, 403, "a pipe");
    assert_eq!(server.get("/locked.txt").status, 403, "a file that may not be read");
    assert!(begin.elapsed() < SOON, "the pipe was waited for: {:?}", begin.elapsed());
}
