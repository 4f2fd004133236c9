//! Entity tags from content.

use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::wire::request;

pub(crate) const THEME: Theme = Theme {
    name: "tags",
    cases: cases![
        Own on DRIVERS: the_same_content_has_the_same_tag;
        Own on EPOLL: the_page_of_the_book_holds;
    ],
};

fn the_same_content_has_the_same_tag(config: &Config) {
    let folder = TempFolder::new("tags");
    for name in ["small.html", "other.html"] {
        folder.write(name, "the same\n");
    }
    let large = site::bytes(1_000_000, 5);
    folder.write("large.bin", &large);
    folder.write("copy/large.bin", &large);
    let server = Launch::new(config, folder.path()).flag("--etag", "content").start();
    let mut wire = server.connect();
    for (one, other) in [("/small.html", "/other.html"), ("/large.bin", "/copy/large.bin")] {
        wire.get(one);
        let first = wire.response();
        let tag = first.need("ETag");
        for method in ["GET", "HEAD"] {
            wire.send(request(method, other, &[("If-None-Match", tag)]));
            assert_eq!(wire.head().status, 304, "{method} {other}");
        }
        let part = [("Range", "bytes=2-5"), ("If-Range", tag)];
        wire.send(request("GET", other, &part));
        let part = wire.response();
        assert!(part.status == 206 && part.body == first.body[2..6], "{other}: a part of the same bytes");
    }
    wire.get("/small.html");
    let small = wire.response().need("ETag").to_owned();
    wire.get("/large.bin");
    assert_ne!(wire.response().need("ETag"), small);
}

/// The example of `docs/how-to/entity-tags.md`.
fn the_page_of_the_book_holds(config: &Config) {
    let example = super::codings::example(include_str!("../../docs/how-to/entity-tags.md"));
    let tag = || {
        let folder = TempFolder::new("book-tags");
        folder.write("site/page.html", "a page\n");
        let file = folder.write("tenfold.toml", example);
        let server = Launch::bare(config).flag("--config", file.display()).start();
        server.get("/page.html").need("ETag").to_owned()
    };
    assert_eq!(tag(), tag(), "two files of two servers");
}
