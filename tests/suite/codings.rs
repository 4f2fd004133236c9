//! Content codings: precompressed siblings of files, and compression on the fly.

use std::process::Command;

use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{Launch, tenfold};
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::tools;
use tenfold_tests::wire::request;

pub(crate) const THEME: Theme = Theme {
    name: "codings",
    cases: cases![
        Own on DRIVERS: h54_a_precompressed_sibling_suits_its_client,
            compressed_responses_decode_to_the_original;
        Own on ENGINES: concurrent_clients_get_the_same_compressed_file;
        Own on EPOLL: invalid_settings_are_rejected, stale_compressed_files_are_named_once,
            the_page_of_the_book_holds;
    ],
};

/// A site with a page and its siblings in two codings.
fn with_siblings() -> TempFolder {
    let folder = TempFolder::new("siblings");
    folder.write("page.html", "as it is, for who takes no coding\n");
    folder.write("page.html.br", site::bytes(3000, 1));
    folder.write("page.html.gz", site::bytes(200_000, 2));
    folder
}

/// A compressible text of 400 KiB.
fn text() -> Vec<u8> {
    (0..10_000)
        .map(|line| format!("a line that is nearly the same, {line:5}\n"))
        .collect::<String>()
        .into_bytes()
}

fn h54_a_precompressed_sibling_suits_its_client(config: &Config) {
    let folder = with_siblings();
    let server = Launch::new(config, folder.path()).flag("--precompressed", "on").start();
    let mut wire = server.connect();
    let (brotli, gzip) = (site::bytes(3000, 1), site::bytes(200_000, 2));
    for _ in 0..2 {
        for (accepted, name, body) in [("br, gzip", "br", &brotli), ("gzip;q=0.1", "gzip", &gzip)] {
            wire.send(request("GET", "/page.html", &[("Accept-Encoding", accepted)]));
            let response = wire.response();
            assert_eq!((response.status, response.need("Content-Encoding")), (200, name));
            assert!(response.body == *body, "{accepted}: the body is another");
            assert_eq!(response.need("Vary"), "Accept-Encoding");
            assert_eq!(response.need("Content-Type"), "text/html; charset=utf-8");
            let tag = response.need("ETag");
            let part = [("Accept-Encoding", accepted), ("Range", "bytes=1000-1999"), ("If-Range", tag)];
            wire.send(request("GET", "/page.html", &part));
            let part = wire.response();
            assert_eq!((part.status, part.need("Content-Encoding")), (206, name));
            assert!(part.body == body[1000..2000], "{accepted}: the part is another");
            let same = [("Accept-Encoding", accepted), ("If-None-Match", tag)];
            wire.send(request("GET", "/page.html", &same));
            let same = wire.response();
            assert_eq!((same.status, same.need("Vary")), (304, "Accept-Encoding"));
        }
    }
    wire.send(request("GET", "/page.html", &[("Accept-Encoding", "identity;q=0, zstd")]));
    let refused = wire.response();
    assert_eq!((refused.status, refused.need("Vary")), (406, "Accept-Encoding"));
    wire.get("/page.html");
    assert_eq!(wire.response().body, b"as it is, for who takes no coding\n");
}

fn compressed_responses_decode_to_the_original(config: &Config) {
    let folder = TempFolder::new("compressed");
    folder.write("text.txt", text());
    folder.write("photo.png", text());
    let server = Launch::new(config, folder.path()).flag("--compress", "on").start();
    for name in ["gzip", "zstd", "br"] {
        for _ in 0..2 {
            let response = server.ask("GET", "/text.txt", &[("Accept-Encoding", name)]);
            assert_eq!((response.status, response.need("Content-Encoding")), (200, name));
            assert_eq!(response.need("Vary"), "Accept-Encoding");
            assert!(response.body.len() * 4 < text().len(), "{} bytes in {name}", response.body.len());
        }
        assert!(decoded(&server, "/text.txt", name) == text(), "{name}: it does not come back");
    }
    let mut wire = server.connect();
    let ways = ["gzip", "identity", "zstd"];
    let batch: Vec<_> =
        ways.iter().flat_map(|name| request("GET", "/text.txt", &[("Accept-Encoding", name)])).collect();
    wire.send(batch);
    for name in ways {
        let response = wire.response();
        assert_eq!(response.field("Content-Encoding"), (name != "identity").then_some(name));
    }
    wire.send(request("GET", "/photo.png", &[("Accept-Encoding", "gzip")]));
    assert_eq!(wire.response().field("Content-Encoding"), None, "a picture is compressed in itself");
}

/// The response as an independent client decodes it.
fn decoded(server: &Server, target: &str, coding: &str) -> Vec<u8> {
    let (url, accept) = (format!("http://{}{target}", server.address), format!("Accept-Encoding: {coding}"));
    let output =
        Command::new(tools::program("curl")).args(["-sS", "--compressed", "-H", &accept, &url]).output();
    let output = output.expect("curl runs");
    assert!(output.status.success(), "curl: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn concurrent_clients_get_the_same_compressed_file(config: &Config) {
    let folder = TempFolder::new("wanted");
    folder.write("text.txt", text());
    let server =
        Launch::new(config, folder.path()).flag("--compress", "gzip").flag("--work-threads", 1).start();
    let ask = |server: &Server| server.ask("GET", "/text.txt", &[("Accept-Encoding", "gzip")]);
    let first = ask(&server);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let response = ask(&server);
                assert_eq!(response.need("ETag"), first.need("ETag"));
                assert!(response.body == first.body, "the same version has the same bytes");
            });
        }
    });
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn invalid_settings_are_rejected(_: &Config) {
    let folder = TempFolder::new("refused");
    for (words, place, mend) in [
        ("compress = \"deflate\"", ":1:12", "some of br, zstd and gzip"),
        ("precompressed = [\"br\", \"br\"]", ":1:17", "duplicate coding br"),
        ("compress = \"on\"\ncompress-types = [\"html\"]", ":2:18", "such as text/html"),
        ("compress = \"on\"\ncompress-from = \"0\"", ":2:17", "from 1 bytes"),
        ("compres = \"on\"", ":1:1", "did you mean compress?"),
    ] {
        let file = folder.write("tenfold.toml", words);
        let output = tenfold(&["check", &file.display().to_string()]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words}: {said}");
        assert!(said.contains(place) && said.contains(mend), "{words}: {said}");
    }
    let output = tenfold(&["serve", "--compress-from", "2k"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("compress-from has no effect while compress is off"), "{said}");
}

fn stale_compressed_files_are_named_once(config: &Config) {
    let folder = TempFolder::new("stale");
    for (name, seconds) in [("page.html", 1002), ("page.html.br", 1000), ("page.html.gz", 999)] {
        site::set_modified(&folder.write(&format!("site/{name}"), name), seconds);
    }
    let file = folder.write("tenfold.toml", "root = \"site\"\nprecompressed = [\"gzip\", \"br\"]\n");
    let words = "site/page.html.gz is older than ";
    let server = Launch::bare(config).flag("--config", file.display()).start();
    for _ in 0..3 {
        let response = server.ask("GET", "/page.html", &[("Accept-Encoding", "br, gzip")]);
        assert_eq!((response.need("Content-Encoding"), &response.body[..]), ("br", &b"page.html.br"[..]));
        // Once a second, the server compares a file with its siblings.
        std::thread::sleep(std::time::Duration::from_millis(400));
    }
    server.expect_report(words);
    assert_eq!(server.errors().matches("is older than ").count(), 1, "{}", server.errors());
    let check = tenfold(&["check", &file.display().to_string()]);
    let said = String::from_utf8_lossy(&check.stderr).into_owned();
    assert!(check.status.success() && said.contains(words), "{said}");
    assert_eq!(said.matches("is older than ").count(), 1, "{said}");
}

/// The first example of a page of the book.
pub(crate) fn example(page: &str) -> &str {
    let begin = page.find("```toml\n").expect("the page has an example") + "```toml\n".len();
    &page[begin..begin + page[begin..].find("```").expect("the example ends")]
}

/// The example of `docs/how-to/compression.md`.
fn the_page_of_the_book_holds(config: &Config) {
    let example = example(include_str!("../../docs/how-to/compression.md"));
    let folder = TempFolder::new("book");
    folder.write("site/app.js", text());
    folder.write("site/app.js.br", "made by hand");
    let file = folder.write("tenfold.toml", example);
    let server = Launch::bare(config).flag("--config", file.display()).start();
    let coding = |accepted| {
        let response = server.ask("GET", "/app.js", &[("Accept-Encoding", accepted)]);
        (response.field("Content-Encoding").map(str::to_owned), response.body)
    };
    assert_eq!(coding("br, gzip, zstd"), (Some("br".into()), b"made by hand".to_vec()));
    assert_eq!(coding("gzip, zstd").0.as_deref(), Some("gzip"));
    assert_eq!(coding("deflate").0, None);
}
