//! Rules of a site: the examples of the book, as a server of its own each, and what matters on every engine.

use std::fs;
use std::process::Output;

use rustix::process::Signal;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{Launch, tenfold};
use tenfold_tests::response::Response;
use tenfold_tests::server::Server;
use tenfold_tests::site::Folder;
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::wire::request;

pub(crate) const THEME: Theme = Theme {
    name: "rules",
    cases: cases![
        Engines Own: what_rules_say_holds, only_who_knows_the_password_sees_it, each_host_has_its_site;
        Epoll Own: passwords_are_asked_for_on_one_connection, rules_change_on_a_reload, the_book_on_rules,
            the_book_on_hosts, the_book_on_redirects, the_book_on_headers, the_book_on_caching, the_book_on_cors,
            the_book_on_routing, the_book_on_error_pages, the_book_on_types, the_book_on_early_hints,
            the_book_on_hidden_names, the_book_on_passwords;
        Every Once: the_schema_is_printed_and_a_wrong_rule_is_shown;
    ],
};

/// `alice` with the password `secret`, by bcrypt with the least work there is.
const MEMBERS: &str = "# made by htpasswd -nbBC 4 alice secret\n\
                       alice:$2y$04$ldLE7Yhlg22/2WQ9xeV0NegEaK6HITypbwmpMYvfVgdRlGDqiBoxC\n";
const RIGHT: (&str, &str) = ("Authorization", "Basic YWxpY2U6c2VjcmV0");
const WRONG: (&str, &str) = ("Authorization", "Basic YWxpY2U6d3Jvbmc=");

fn folder(files: &[(&str, &str)]) -> Folder {
    let folder = Folder::new("rules");
    folder.write("site/index.html", "home\n");
    for (name, content) in files {
        folder.write(name, content);
    }
    folder
}

fn start(config: &Config, folder: &Folder, text: &str) -> Server {
    let file = folder.write("tenfold.toml", text);
    Launch::bare(config).flag("--config", file.display()).start()
}

/// A server of the first example on a page of the book.
fn of_the_book(config: &Config, page: &str, folder: &Folder) -> Server {
    let begin = page.find("```toml\n").expect("the page has an example") + "```toml\n".len();
    let example = &page[begin..begin + page[begin..].find("```").expect("the example ends")];
    start(config, folder, example)
}

fn end(server: Server) {
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn location(response: &Response) -> (u16, Option<String>) {
    (response.status, response.field("Location").map(str::to_owned))
}

fn what_rules_say_holds(config: &Config) {
    let folder = folder(&[
        ("site/new/page.html", "page\n"),
        ("site/assets/app.3f2a9c1b.js", "1\n"),
        ("site/errors/client.html", "<p>something is wrong</p>\n"),
        ("site/.shown/x.md", "text\n"),
    ]);
    let server = start(
        config,
        &folder,
        r#"
        root = "site"
        [site]
        trailing-slash = "remove"
        dotfiles = "/.shown"
        types = { ".md" = "text/markdown" }
        error-pages = { 4xx = "/errors/client.html" }
        headers.set = { X-Frame-Options = "DENY" }
        [[site.path]]
        match = "/assets/**"
        cache = "hashed"
        cors = { origins = "https://a.example", max-age = "1m" }
        [[site.path]]
        match = "/app/**"
        fallback = "/index.html"
        [[site.redirect]]
        from = "/old/**"
        to = "/new/**"
        status = 308
        [[site.rewrite]]
        from = "/inside/**"
        to = "/new/**"
        "#,
    );
    let mut wire = server.connect();
    let mut ask = |method: &str, target: &str, fields: &[(&str, &str)]| {
        wire.send(request(method, target, fields));
        let response = if method == "HEAD" { wire.head() } else { wire.response() };
        assert_eq!(response.need("X-Frame-Options"), "DENY", "{method} {target}");
        response
    };
    for _ in 0..2 {
        assert_eq!(
            location(&ask("GET", "/old/page.html?a=b", &[])),
            (308, Some("/new/page.html?a=b".into()))
        );
        assert_eq!(location(&ask("GET", "/new/", &[])), (301, Some("/new".into())));
        assert_eq!(ask("GET", "/inside/page.html", &[]).body, b"page\n");
        assert_eq!(ask("GET", "/app/users/7", &[]).body, b"home\n");
        assert_eq!(ask("GET", "/.shown/x.md", &[]).need("Content-Type"), "text/markdown; charset=utf-8");
        let script = ask("GET", "/assets/app.3f2a9c1b.js", &[("Origin", "https://a.example")]);
        assert_eq!(script.need("Cache-Control"), "public, max-age=31536000, immutable");
        assert_eq!(script.need("Access-Control-Allow-Origin"), "https://a.example");
        assert_eq!(script.need("Vary"), "Origin");
        for (method, target, status) in [("GET", "/%00", 400), ("DELETE", "/", 405), ("HEAD", "/%00", 400)] {
            let refused = ask(method, target, &[]);
            assert_eq!((refused.status, refused.promised()), (status, 26), "{method} {target}");
            assert!(!refused.closes(), "the connection goes on behind {method} {target}");
        }
    }
    drop(wire);
    let refused = String::from_utf8_lossy(&server.exchange(b"GET / HTTP/1.1\r\n\r\n")).into_owned();
    assert!(
        refused.starts_with("HTTP/1.1 400 ") && refused.ends_with("something is wrong</p>\n"),
        "{refused}"
    );
    end(server);
}

fn only_who_knows_the_password_sees_it(config: &Config) {
    let folder = folder(&[("site/private/index.html", "private\n"), ("members.htpasswd", MEMBERS)]);
    let server = start(
        config,
        &folder,
        "root = \"site\"\n[[site.path]]\nmatch = \"/private/**\"\nauth = { users = \"members.htpasswd\" }\n",
    );
    for _ in 0..2 {
        for target in ["/private/", "/private", "//private/", "/%70rivate/", "/private/none"] {
            let refused = server.get(target);
            assert_eq!(refused.status, 401, "{target}");
            assert_eq!(refused.need("WWW-Authenticate"), "Basic realm=\"private\", charset=\"UTF-8\"");
            assert_eq!(server.ask("GET", target, &[WRONG]).status, 401, "{target}");
        }
        assert_eq!(server.ask("GET", "/private/", &[RIGHT]).body, b"private\n");
        assert_eq!(server.get("/").status, 200);
    }
    end(server);
}

fn each_host_has_its_site(config: &Config) {
    let folder = folder(&[("example/index.html", "example\n"), ("others/index.html", "others\n")]);
    let server = start(
        config,
        &folder,
        "root = \"site\"\n[[host]]\nname = \"example.org\"\nroot = \"example\"\n\
         [[host]]\nname = \"*.example.org\"\nroot = \"others\"\n",
    );
    // One connection may ask for all of them.
    let mut requests = String::new();
    for host in ["example.org", "EXAMPLE.ORG:80", "a.b.example.org", "else"] {
        requests += &format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    }
    requests += "GET http://example.org/ HTTP/1.1\r\nHost: else\r\n\r\nGET / HTTP/1.0\r\n\r\n";
    let mut wire = server.connect();
    wire.send(requests);
    for body in ["example\n", "example\n", "others\n", "home\n", "example\n", "home\n"] {
        assert_eq!(String::from_utf8_lossy(&wire.response().body), body);
    }
    end(server);
}

/// Requests that wait for their password, and those behind them, are answered in order.
fn passwords_are_asked_for_on_one_connection(config: &Config) {
    let folder = folder(&[("site/private/index.html", "private\n"), ("members.htpasswd", MEMBERS)]);
    let text = "root = \"site\"\n[[site.path]]\nmatch = \"/private/**\"\nauth = { users = \"members.htpasswd\" }\n\
                cors = { origins = \"https://a.example\" }\n";
    let server = start(config, &folder, text);
    let mut wire = server.connect();
    let mut all = Vec::new();
    let origin = ("Origin", "https://a.example");
    for (target, fields) in [
        ("/private/", &[RIGHT, origin][..]),
        ("/", &[]),
        ("/private/", &[WRONG]),
        ("/private/", &[RIGHT, ("Range", "bytes=0-3")]),
        ("/private/", &[]),
    ] {
        all.extend(request("GET", target, fields));
    }
    wire.send(all);
    let first = wire.response();
    assert_eq!((first.status, first.body.as_slice()), (200, &b"private\n"[..]));
    assert_eq!(first.need("Access-Control-Allow-Origin"), "https://a.example");
    assert_eq!(wire.response().body, b"home\n");
    assert_eq!(wire.response().status, 401);
    let part = wire.response();
    assert_eq!((part.status, part.body.as_slice()), (206, &b"priv"[..]));
    assert_eq!(wire.response().status, 401);
    let preflight = [origin, ("Access-Control-Request-Method", "GET")];
    let preflight = server.ask("OPTIONS", "/private/", &preflight);
    assert_eq!((preflight.status, preflight.need("Access-Control-Allow-Methods")), (204, "GET, HEAD"));
    end(server);
}

fn rules_change_on_a_reload(config: &Config) {
    let folder = folder(&[("site/a/index.html", "a\n"), ("members.htpasswd", MEMBERS)]);
    let server = start(config, &folder, "root = \"site\"\n");
    assert_eq!(server.get("/a/").status, 200);
    let reload = |text: &str| {
        fs::write(folder.at("tenfold.toml"), text).expect("our own file");
        server.process.signal(Signal::HUP);
    };
    reload("root = \"site\"\n[site]\nauth = { users = \"members.htpasswd\" }\ncache = \"no-store\"\n");
    becomes_true(SOON, "a password is asked for", || (0..4).all(|_| server.get("/a/").status == 401));
    let seen = server.ask("GET", "/a/", &[RIGHT]);
    assert_eq!((seen.status, seen.need("Cache-Control")), (200, "no-store"));
    let before = server.errors().len();
    reload("root = \"site\"\n[site]\nauth = { users = \"nowhere\" }\n");
    becomes_true(SOON, "the place is said", || server.errors()[before..].contains("tenfold.toml:3:18"));
    assert_eq!(server.get("/a/").status, 401, "the old rules hold");
    fs::write(folder.at("members.htpasswd"), MEMBERS.replace("alice", "bob")).expect("our own file");
    reload("root = \"site\"\n[site]\nauth = { users = \"members.htpasswd\" }\n");
    becomes_true(SOON, "who is gone is refused", || server.ask("GET", "/a/", &[RIGHT]).status == 401);
    end(server);
}

fn the_book_on_rules(config: &Config) {
    let files =
        [("site/assets/a.css", "a"), ("blog/index.html", "blog\n"), ("blog/drafts/d.html", "draft\n")];
    let folder = folder(&files);
    let server = of_the_book(config, include_str!("../../docs/site/README.md"), &folder);
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

fn the_book_on_hosts(config: &Config) {
    let files = [("example/index.html", "example\n"), ("others/start.html", "others\n")];
    let folder = folder(&files);
    let server = of_the_book(config, include_str!("../../docs/site/hosts.md"), &folder);
    for (host, body) in
        [("www.example.org", "example\n"), ("x.example.org", "others\n"), ("example.net", "home\n")]
    {
        let mut wire = server.connect();
        wire.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(String::from_utf8_lossy(&wire.response().body), body, "{host}");
    }
    end(server);
}

fn the_book_on_redirects(config: &Config) {
    let files = [("site/manual/2026/a.html", "manual\n")];
    let folder = folder(&files);
    let server = of_the_book(config, include_str!("../../docs/site/redirects.md"), &folder);
    assert_eq!(location(&server.get("/old/a?b")), (308, Some("/new/a?b".into())));
    assert_eq!(location(&server.get("/shop")), (301, Some("https://shop.example/".into())));
    assert_eq!(server.get("/docs/a.html").body, b"manual\n");
    end(server);
}

fn the_book_on_headers(config: &Config) {
    let files = [("site/embed/a.html", "a\n")];
    let folder = folder(&files);
    let server = of_the_book(config, include_str!("../../docs/site/headers.md"), &folder);
    for target in ["/", "/none"] {
        assert_eq!(server.get(target).need("X-Frame-Options"), "DENY", "{target}");
    }
    let embedded = server.get("/embed/a.html");
    assert_eq!(embedded.field("X-Frame-Options"), None);
    assert_eq!(embedded.need("Content-Security-Policy"), "default-src 'self'");
    assert_eq!(embedded.head.matches("\r\nLink: ").count(), 2, "{}", embedded.head);
    end(server);
}

fn the_book_on_caching(config: &Config) {
    let files =
        [("site/assets/app.3f2a9c1b.js", "1"), ("site/assets/app.js", "2"), ("site/reports/r.txt", "3")];
    let folder = folder(&files);
    let server = of_the_book(config, include_str!("../../docs/site/caching.md"), &folder);
    for (target, value) in [
        ("/", "no-cache"),
        ("/assets/app.3f2a9c1b.js", "public, max-age=31536000, immutable"),
        ("/assets/app.js", "no-cache"),
        ("/reports/r.txt", "max-age=600"),
    ] {
        assert_eq!(server.get(target).need("Cache-Control"), value, "{target}");
    }
    end(server);
}

fn the_book_on_cors(config: &Config) {
    let files = [("site/api/a.json", "{}"), ("site/fonts/a.woff2", "font")];
    let folder = folder(&files);
    let server = of_the_book(config, include_str!("../../docs/site/cors.md"), &folder);
    let origin = ("Origin", "https://app.example");
    let allowed = |response: &Response| response.field("Access-Control-Allow-Origin").map(str::to_owned);
    assert_eq!(allowed(&server.ask("GET", "/api/a.json", &[origin])).as_deref(), Some("https://app.example"));
    assert_eq!(allowed(&server.ask("GET", "/api/a.json", &[("Origin", "https://evil.example")])), None);
    assert_eq!(allowed(&server.get("/fonts/a.woff2")).as_deref(), Some("*"));
    let preflight = server.ask("OPTIONS", "/api/x", &[origin, ("Access-Control-Request-Method", "GET")]);
    assert_eq!(preflight.need("Access-Control-Allow-Headers"), "X-Requested-With");
    assert_eq!(preflight.need("Access-Control-Max-Age"), "600");
    end(server);
}

fn the_book_on_routing(config: &Config) {
    let files =
        [("site/about.html", "about\n"), ("site/app/index.html", "app\n"), ("site/folder/index.html", "f\n")];
    let folder = folder(&files);
    let server = of_the_book(config, include_str!("../../docs/site/routing.md"), &folder);
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

fn the_book_on_error_pages(config: &Config) {
    let files = [("site/missing.html", "missing\n"), ("site/errors/client.html", "client\n")];
    let folder = folder(&files);
    let server = of_the_book(config, include_str!("../../docs/site/error-pages.md"), &folder);
    for (target, status, body) in [("/none", 404, "missing\n"), ("/%00", 400, "client\n")] {
        let response = server.get(target);
        assert_eq!((response.status, response.body.as_slice()), (status, body.as_bytes()), "{target}");
    }
    end(server);
}

fn the_book_on_types(config: &Config) {
    let files = [("site/a.md", ""), ("site/LICENSE", ""), ("site/a.tar.gz", ""), ("site/legacy/a.html", "")];
    let folder = folder(&files);
    let server = of_the_book(config, include_str!("../../docs/site/types.md"), &folder);
    for (target, media_type) in [
        ("/a.md", "text/markdown; charset=utf-8"),
        ("/LICENSE", "text/plain; charset=utf-8"),
        ("/a.tar.gz", "application/x-tar"),
        ("/legacy/a.html", "text/html; charset=iso-8859-1"),
    ] {
        assert_eq!(server.get(target).need("Content-Type"), media_type, "{target}");
    }
    end(server);
}

fn the_book_on_early_hints(config: &Config) {
    let folder = folder(&[]);
    let server = of_the_book(config, include_str!("../../docs/site/early-hints.md"), &folder);
    let said = String::from_utf8_lossy(&server.exchange(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")).into_owned();
    let hint = "HTTP/1.1 103 Early Hints\r\nLink: </site.css>; rel=preload; as=style\r\n\
                Link: <https://cdn.example>; rel=preconnect\r\n\r\nHTTP/1.1 200 OK\r\n";
    assert!(said.starts_with(hint) && said.ends_with("home\n"), "{said}");
    assert_eq!(said.matches("\r\nLink: ").count(), 4, "{said}");
    for old in [&b"GET / HTTP/1.0\r\n\r\n"[..], b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"] {
        let said = String::from_utf8_lossy(&server.exchange(old)).into_owned();
        assert!(said.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
    }
    end(server);
}

fn the_book_on_hidden_names(config: &Config) {
    let folder = folder(&[
        ("site/.well-known/a", "well known\n"),
        ("site/downloads/.checksums/.all", "sums\n"),
        ("site/.git/config", "hidden\n"),
    ]);
    std::os::unix::fs::symlink("index.html", folder.at("site/link.html")).expect("our own folder");
    let server = of_the_book(config, include_str!("../../docs/site/hidden.md"), &folder);
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

fn the_book_on_passwords(config: &Config) {
    let files = [
        ("site/private/a.txt", "private\n"),
        ("site/private/open/a.txt", "open\n"),
        ("members.htpasswd", MEMBERS),
    ];
    let folder = folder(&files);
    let server = of_the_book(config, include_str!("../../docs/site/basic-auth.md"), &folder);
    assert_eq!(server.get("/private/open/a.txt").body, b"open\n");
    assert!(server.get("/private/a.txt").need("WWW-Authenticate").contains("realm=\"Members\""));
    assert_eq!(server.ask("GET", "/private/a.txt", &[RIGHT]).body, b"private\n");
    end(server);
}

fn the_schema_is_printed_and_a_wrong_rule_is_shown() {
    let schema = tenfold(&["check", "--schema"]);
    let schema: serde_json::Value = serde_json::from_slice(&schema.stdout).expect("the schema is JSON");
    assert_eq!(schema["properties"]["site"]["properties"]["trailing-slash"]["enum"][0], "add");
    let folder = folder(&[]);
    let check = |text: &str| -> Output {
        let file = folder.write("tenfold.toml", text);
        tenfold(&["check", file.to_str().expect("a path in ASCII")])
    };
    assert_eq!(check("root = \"site\"\n[site]\ncache = \"hashed\"\n").status.code(), Some(0));
    let wrong = check("root = \"site\"\n[[site.path]]\nmatch = \"/a\"\ncahce = \"hashed\"\n");
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert_eq!(wrong.status.code(), Some(1), "{said}");
    assert!(said.contains("tenfold.toml:4:1") && said.contains("did you mean cache?"), "{said}");
}
