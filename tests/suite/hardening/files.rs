//! Paths and files: a URL never leads to a byte outside of the root.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{EndOnDrop, SOON, becomes_true};
use tenfold_tests::wire::request;

pub(crate) const THEME: Theme = Theme {
    name: "hardening",
    cases: cases![
        Shared on SEMANTICS + ONE_TLS + ANOTHER: h39_dots_in_every_spelling,
            h40_h41_h42_a_path_is_decoded_once, h43_slashes_have_one_meaning, h44_links_out_of_the_root,
            h47_hidden_files, h52_answers_without_body;
        Own on DRIVERS + ANOTHER: h45_swaps_of_links_show_nothing_from_outside,
            h53_if_range_across_a_replacement;
    ],
};

#[track_caller]
fn expect(server: &Server, status: u16, targets: &[&str]) {
    for target in targets {
        let response = server.get(target);
        assert_eq!(response.status, status, "{target}");
        let body = String::from_utf8_lossy(&response.body);
        assert!(!body.contains("root:") && !body.contains("nobody sees"), "{target} shows {body}");
    }
}

fn h39_dots_in_every_spelling(server: &Server) {
    for dots in ["..", "%2e%2e", "%2E%2E", ".%2e", "%2e.", "..;", ".;.", "...", "%2e%2e;a=b", "..%20"] {
        let way = format!("/{dots}/{dots}/{dots}/{dots}/{dots}/{dots}");
        expect(server, 404, &[&format!("{way}/etc/passwd"), &format!("/folder{way}/etc/passwd")]);
    }
    expect(server, 404, &["/..", "/../", "/%2e", "/%2e/1k.html", "/folder/../1k.html", "/./../1k.html"]);
    // A single dot is the same folder, and apt sends it.
    assert_eq!(server.get("/./folder/./page.html").body, site::content("folder/page.html"));
    expect(
        server,
        400,
        &["/..%00/etc/passwd", "/..%5cetc%5cpasswd", "/%c0%ae%c0%ae/etc/passwd", "/%u002e/x"],
    );
}

fn h40_h41_h42_a_path_is_decoded_once(server: &Server) {
    expect(server, 404, &["/%252e%252e/%252e%252e/etc/passwd", "/%25%32%65", "/1k%252ehtml"]);
    assert_eq!(server.get("/%31%6b.html").status, 200, "what needs no encoding may have it");
    expect(server, 400, &["/1k.html%00", "/1k.html%0a", "/%7f", "/%", "/%2", "/%zz", "/1k.html%"]);
    // Overlong and other invalid UTF-8 (RFC 3629 §3, §10).
    expect(server, 400, &["/%c0%af", "/%e0%80%af", "/%f0%80%80%af", "/%ff", "/%c3", "/%ed%a0%80"]);
    // A backslash is a separator for some programs and a character for others, so both spellings are rejected.
    expect(server, 400, &["/folder%5cpage.html", "/%5c..%5cetc", "/folder\\page.html", "/\\\\host/share"]);
}

fn h43_slashes_have_one_meaning(server: &Server) {
    expect(
        server,
        404,
        &["/folder%2fpage.html", "/%2fetc%2fpasswd", "/folder%2f..%2f1k.html", "/.git%2fconfig"],
    );
    expect(server, 404, &["//.git//config", "/folder//.hidden", "///etc///passwd"]);
    for target in ["//1k.html", "/folder//page.html", "///folder///page.html"] {
        let response = server.get(target);
        assert_eq!(response.status, 200, "{target}: empty segments are nothing");
    }
}

fn h44_links_out_of_the_root(server: &Server) {
    expect(server, 404, &["/out.txt", "/etc/passwd", "/etc/", "/etc", "/etc/hostname"]);
    assert_eq!(server.get("/in.html").body, site::content("1k.html"), "a link that stays inside is followed");
}

fn h47_hidden_files(server: &Server) {
    let hidden = ["/.secret", "/.git", "/.git/", "/.git/config", "/folder/.hidden", "/backup.html~", "/.env"];
    expect(server, 404, &hidden);
    expect(server, 404, &["/%2esecret", "/.%67it/config", "/backup.html%7e", "/.well-known/.secret"]);
    assert_eq!(server.get("/.well-known/hello.txt").status, 200);
}

fn h52_answers_without_body(server: &Server) {
    let mut wire = server.connect();
    wire.get("/3m.bin");
    let whole = wire.head();
    wire.expect_body(&site::content("3m.bin"));
    let (length, tag) = (whole.need("Content-Length"), whole.need("ETag"));
    wire.send(request("HEAD", "/3m.bin", &[]));
    assert_eq!(wire.head().need("Content-Length"), length, "HEAD says what GET would");
    wire.send(request("GET", "/3m.bin", &[("If-None-Match", tag)]));
    let unchanged = wire.head();
    assert_eq!(unchanged.status, 304);
    assert!(unchanged.field("Content-Length").is_none_or(|said| said == length), "{}", unchanged.head);
    wire.send(request("OPTIONS", "/3m.bin", &[]));
    let options = wire.head();
    assert_eq!(options.status, 204);
    assert_eq!(options.field("Content-Length"), None, "RFC 9110 §8.6");
    wire.get("/1k.html");
    assert_eq!(wire.response().body.len(), 1024, "the next answer begins right behind");
    let long = "a".repeat(20_000);
    for (status, line, field) in [
        (400, "HEAD / HTTP/1.1", "Host: b\r\n"),
        (400, "HEAD nowhere HTTP/1.1", ""),
        (417, "HEAD / HTTP/1.1", "Expect: something\r\n"),
        (431, "HEAD / HTTP/1.1", &*format!("Long: {long}\r\n")),
        (505, "HEAD / HTTP/3.0", ""),
    ] {
        let mut wire = server.connect();
        wire.send(format!("{line}\r\nHost: a\r\n{field}\r\n"));
        let refused = wire.head();
        assert_eq!(refused.status, status, "{line} {field:.40}");
        assert_ne!(refused.need("Content-Length"), "0", "HEAD says what GET would");
        assert_eq!(wire.rest().0, b"", "{line} {field:.40}");
    }
}

/// A name alternates between a file of the site and a link to a file outside, and so does a folder, during requests.
fn h45_swaps_of_links_show_nothing_from_outside(config: &Config) {
    let (outside, folder) = (TempFolder::new("outside"), TempFolder::new("swaps"));
    outside.write("page.html", "from outside\n");
    folder.write("site/page.html", "from inside\n");
    folder.write("site/real/page.html", "from inside\n");
    symlink("real", folder.at("site/way")).expect("our own folder");
    let server = Launch::new(config, &folder.at("site")).start();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let swap = |name: &str, to: &str| {
                let new = folder.at("site/new");
                symlink(to, &new).and_then(|()| fs::rename(&new, folder.at(name))).expect("our own folder");
            };
            let way = outside.path().display().to_string();
            while !done.load(Ordering::Relaxed) {
                swap("site/way", &way);
                swap("site/page.html", &outside.at("page.html").display().to_string());
                swap("site/way", "real");
                swap("site/page.html", "real/page.html");
            }
        });
        let _at_end = EndOnDrop(&done);
        let begin = Instant::now();
        let mut wire = server.connect();
        while begin.elapsed() < Duration::from_millis(500) {
            for target in ["/way/page.html", "/page.html"] {
                wire.get(target);
                let response = wire.response();
                let inside = response.status == 200 && response.body == b"from inside\n";
                assert!(
                    inside || response.status == 404,
                    "{target}: {} {:?}",
                    response.status,
                    response.body
                );
            }
        }
    });
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn h53_if_range_across_a_replacement(config: &Config) {
    let folder = TempFolder::new("if-range");
    folder.write("file.bin", site::bytes(5000, 1));
    let server = Launch::new(config, folder.path()).start();
    let tag = server.get("/file.bin").need("ETag").to_owned();
    let ask = || server.ask("GET", "/file.bin", &[("Range", "bytes=0-99"), ("If-Range", &tag)]);
    assert_eq!((ask().status, ask().body.len()), (206, 100));
    let new = site::bytes(6000, 2);
    folder.write("new.bin", &new);
    fs::rename(folder.at("new.bin"), folder.at("file.bin")).expect("our own folder");
    // Another thread may have cached the old version, so each response is checked separately.
    becomes_true(SOON, "the new version is seen", || {
        let response = ask();
        let part = response.status == 206 && response.body == site::bytes(5000, 1)[..100];
        assert!(
            part || response.status == 200 && response.body == new,
            "a part of the old or all of the new"
        );
        !part
    });
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}
