//! The first example of each page about sites in the book, as a server.

use tenfold_tests::config::Config;
use tenfold_tests::http2::Http2Wire;
use tenfold_tests::response::WireResponse;
use tenfold_tests::server::Server;
use tenfold_tests::site::TempFolder;

use super::{MEMBERS, RIGHT, end, folder, location, start};

/// A server with the first example on a page of the book.
fn of_the_book(config: &Config, page: &str, folder: &TempFolder) -> Server {
    let begin = page.find("```toml\n").expect("the page has an example") + "```toml\n".len();
    let example = &page[begin..begin + page[begin..].find("```").expect("the example ends")];
    start(config, folder, example)
}

/// Compares a field of the responses to these requests.
#[track_caller]
fn has_values(server: &Server, field: &str, values: &[(&str, &str)]) {
    for (target, value) in values {
        assert_eq!(server.get(target).need(field), *value, "{target}");
    }
}

pub(super) fn the_book_on_rules(config: &Config) {
    let files =
        [("site/assets/a.css", "a"), ("blog/index.html", "blog\n"), ("blog/drafts/d.html", "draft\n")];
    let folder = folder(&files);
    let server = of_the_book(config, include_str!("../../../docs/how-to/site/README.md"), &folder);
    assert_eq!(server.get("/").need("Cache-Control"), "no-cache");
    assert!(server.get("/assets/a.css").need("Cache-Control").contains("immutable"));
    let blog = |target: &str| {
        let mut wire = server.connect();
        wire.send(format!("GET {target} HTTP/1.1\r\nHost: blog.example.org\r\n\r\n"));
        wire.response()
    };
    assert_eq!(
        (blog("/").body, blog("/drafts/d.html").need("Cache-Control").to_owned()),
        (b"blog\n".to_vec(), "no-store".into())
    );
    end(server);
}

pub(super) fn the_book_on_hosts(config: &Config) {
    let files = [("example/index.html", "example\n"), ("others/start.html", "others\n")];
    let folder = folder(&files);
    let server = of_the_book(config, include_str!("../../../docs/how-to/site/hosts.md"), &folder);
    for (host, body) in
        [("www.example.org", "example\n"), ("x.example.org", "others\n"), ("example.net", "home\n")]
    {
        let mut wire = server.connect();
        wire.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(String::from_utf8_lossy(&wire.response().body), body, "{host}");
        let mut http2 = Http2Wire::new(server.connect());
        let response = http2.ask("GET", "/", &[(":authority", host)], b"");
        assert_eq!(String::from_utf8_lossy(&response.body), body, "{host} over HTTP/2");
    }
    end(server);
}

pub(super) fn the_book_on_redirects(config: &Config) {
    let files = [("site/manual/2026/a.html", "manual\n")];
    let folder = folder(&files);
    let server = of_the_book(config, include_str!("../../../docs/how-to/site/redirects.md"), &folder);
    assert_eq!(location(&server.get("/old/a?b")), (308, Some("/new/a?b".into())));
    assert_eq!(location(&server.get("/shop")), (301, Some("https://shop.example/".into())));
    assert_eq!(server.get("/docs/a.html").body, b"manual\n");
    end(server);
}

pub(super) fn the_book_on_headers(config: &Config) {
    let files = [("site/embed/a.html", "a\n")];
    let folder = folder(&files);
    let server = of_the_book(config, include_str!("../../../docs/how-to/site/headers.md"), &folder);
    for target in ["/", "/none"] {
        assert_eq!(server.get(target).need("X-Frame-Options"), "DENY", "{target}");
    }
    let embedded = server.get("/embed/a.html");
    assert_eq!(embedded.field("X-Frame-Options"), None);
    assert_eq!(embedded.need("Content-Security-Policy"), "default-src 'self'");
    assert_eq!(embedded.head.matches("\r\nLink: ").count(), 2, "{}", embedded.head);
    end(server);
}

pub(super) fn the_book_on_caching(config: &Config) {
    let files =
        [("site/assets/app.3f2a9c1b.js", "1"), ("site/assets/app.js", "2"), ("site/reports/r.txt", "3")];
    let folder = folder(&files);
    let server = of_the_book(config, include_str!("../../../docs/how-to/site/caching.md"), &folder);
    let values = [
        ("/", "no-cache"),
        ("/assets/app.3f2a9c1b.js", "public, max-age=31536000, immutable"),
        ("/assets/app.js", "no-cache"),
        ("/reports/r.txt", "max-age=600"),
    ];
    has_values(&server, "Cache-Control", &values);
    end(server);
}

pub(super) fn the_book_on_cors(config: &Config) {
    let files = [("site/api/a.json", "{}"), ("site/fonts/a.woff2", "font")];
    let folder = folder(&files);
    let server = of_the_book(config, include_str!("../../../docs/how-to/site/cors.md"), &folder);
    let origin = ("Origin", "https://app.example");
    let allowed = |response: &WireResponse| response.field("Access-Control-Allow-Origin").map(str::to_owned);
    assert_eq!(allowed(&server.ask("GET", "/api/a.json", &[origin])).as_deref(), Some("https://app.example"));
    assert_eq!(allowed(&server.ask("GET", "/api/a.json", &[("Origin", "https://evil.example")])), None);
    assert_eq!(allowed(&server.get("/fonts/a.woff2")).as_deref(), Some("*"));
    let preflight = server.ask("OPTIONS", "/api/x", &[origin, ("Access-Control-Request-Method", "GET")]);
    assert_eq!(preflight.need("Access-Control-Allow-Headers"), "X-Requested-With");
    assert_eq!(preflight.need("Access-Control-Max-Age"), "600");
    end(server);
}

pub(super) fn the_book_on_routing(config: &Config) {
    let files =
        [("site/about.html", "about\n"), ("site/app/index.html", "app\n"), ("site/folder/index.html", "f\n")];
    let folder = folder(&files);
    let server = of_the_book(config, include_str!("../../../docs/how-to/site/routing.md"), &folder);
    for (target, body) in
        [("/about", "about\n"), ("/app/users/7", "app\n"), ("/folder", "f\n"), ("/", "home\n")]
    {
        let response = server.get(target);
        assert_eq!((response.status, response.body.as_slice()), (200, body.as_bytes()), "{target}");
    }
    assert_eq!(location(&server.get("/folder/")), (301, Some("/folder".into())));
    for target in ["/none", "/app/none.png"] {
        assert_eq!(server.get(target).status, 404, "{target}");
    }
    end(server);
}

pub(super) fn the_book_on_error_pages(config: &Config) {
    let files = [("site/missing.html", "missing\n"), ("site/errors/client.html", "client\n")];
    let folder = folder(&files);
    let server = of_the_book(config, include_str!("../../../docs/how-to/site/error-pages.md"), &folder);
    for (target, status, body) in [("/none", 404, "missing\n"), ("/%00", 400, "client\n")] {
        let response = server.get(target);
        assert_eq!((response.status, response.body.as_slice()), (status, body.as_bytes()), "{target}");
    }
    end(server);
}

pub(super) fn the_book_on_types(config: &Config) {
    let files = [("site/a.md", ""), ("site/LICENSE", ""), ("site/a.csv.gz", ""), ("site/legacy/a.html", "")];
    let folder = folder(&files);
    let server = of_the_book(config, include_str!("../../../docs/how-to/site/types.md"), &folder);
    let values = [
        ("/a.md", "text/markdown; charset=utf-8"),
        ("/LICENSE", "text/plain; charset=utf-8"),
        ("/a.csv.gz", "application/gzip"),
        ("/legacy/a.html", "text/html; charset=iso-8859-1"),
    ];
    has_values(&server, "Content-Type", &values);
    end(server);
}

pub(super) fn the_book_on_early_hints(config: &Config) {
    let folder = folder(&[]);
    let server = of_the_book(config, include_str!("../../../docs/how-to/site/early-hints.md"), &folder);
    let said = String::from_utf8_lossy(&server.exchange(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")).into_owned();
    let hint = "HTTP/1.1 103 Early Hints\r\nLink: </site.css>; rel=preload; as=style\r\n\
                Link: <https://cdn.example>; rel=preconnect\r\n\r\nHTTP/1.1 200 OK\r\n";
    assert!(said.starts_with(hint) && said.ends_with("home\n"), "{said}");
    assert_eq!(said.matches("\r\nLink: ").count(), 4, "{said}");
    for old in [&b"GET / HTTP/1.0\r\n\r\n"[..], b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"] {
        let said = String::from_utf8_lossy(&server.exchange(old)).into_owned();
        assert!(said.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
    }
    let mut http2 = Http2Wire::new(server.connect());
    let stream = http2.begin("GET", "/", &[], b"");
    assert_eq!(http2.response(stream).body, b"home\n");
    let [hints] = http2.interim(stream) else { panic!("{:?}", http2.interim(stream)) };
    assert_eq!((hints.status, hints.head.matches("link: ").count()), (103, 2), "{}", hints.head);
    end(server);
}

pub(super) fn the_book_on_hidden_names(config: &Config) {
    let folder = folder(&[
        ("site/.well-known/a", "well known\n"),
        ("site/downloads/.checksums/.all", "sums\n"),
        ("site/.git/config", "hidden\n"),
    ]);
    std::os::unix::fs::symlink("index.html", folder.at("site/link.html")).expect("our own folder");
    let server = of_the_book(config, include_str!("../../../docs/how-to/site/hidden.md"), &folder);
    for (target, status) in [
        ("/.well-known/a", 200),
        ("/downloads/.checksums/.all", 200),
        ("/.git/config", 404),
        ("/downloads/.other", 404),
        ("/link.html", 200),
    ] {
        assert_eq!(server.get(target).status, status, "{target}");
    }
    end(server);
}

pub(super) fn the_book_on_passwords(config: &Config) {
    let files = [
        ("site/private/a.txt", "private\n"),
        ("site/private/open/a.txt", "open\n"),
        ("members.htpasswd", MEMBERS),
    ];
    let folder = folder(&files);
    let server = of_the_book(config, include_str!("../../../docs/how-to/site/basic-auth.md"), &folder);
    assert_eq!(server.get("/private/open/a.txt").body, b"open\n");
    assert!(server.get("/private/a.txt").need("WWW-Authenticate").contains("realm=\"Members\""));
    assert_eq!(server.ask("GET", "/private/a.txt", &[RIGHT]).body, b"private\n");
    end(server);
}
