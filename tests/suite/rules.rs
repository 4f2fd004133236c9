//! Rules of a site: engine-dependent behaviour, and the examples of the book.

mod book;
mod passwords;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Output;

use rustix::process::Signal;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{Launch, tenfold};
use tenfold_tests::response::WireResponse;
use tenfold_tests::server::Server;
use tenfold_tests::site::TempFolder;
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::wire::request;

use book::*;
use passwords::*;

pub(crate) const THEME: Theme = Theme {
    name: "rules",
    cases: cases![
        Own on DRIVERS: path_rules_apply, a_folder_requires_its_password, each_host_has_its_site,
            h44_absolute_links_beneath_the_root_are_followed;
        Own on DRIVERS + ANOTHER: h83_no_route_leads_to_a_file_behind_a_password,
            h85_wrong_passwords_are_throttled;
        Own on LOOPS: h85_one_address_does_not_fill_a_queue_of_work;
        Own on EPOLL: h85_guesses_delay_no_other_work, passwords_are_asked_for_on_one_connection,
            rules_change_on_a_reload, the_book_on_rules, the_book_on_hosts, the_book_on_redirects,
            the_book_on_headers, the_book_on_caching, the_book_on_cors, the_book_on_routing,
            the_book_on_error_pages, the_book_on_types, the_book_on_early_hints, the_book_on_hidden_names,
            the_book_on_passwords;
        Once: the_schema_is_printed_and_a_wrong_rule_is_shown;
    ],
};

/// `alice` with the password `secret`, by bcrypt at its lowest cost.
pub(crate) const MEMBERS: &str = "# made by htpasswd -nbBC 4 alice secret\n\
                       alice:$2y$04$ldLE7Yhlg22/2WQ9xeV0NegEaK6HITypbwmpMYvfVgdRlGDqiBoxC\n";
pub(crate) const RIGHT: (&str, &str) = ("Authorization", "Basic YWxpY2U6c2VjcmV0");
pub(crate) const WRONG: (&str, &str) = ("Authorization", "Basic YWxpY2U6d3Jvbmc=");

fn folder(files: &[(&str, &str)]) -> TempFolder {
    let folder = TempFolder::new("rules");
    folder.write("site/index.html", "home\n");
    for (name, content) in files {
        folder.write(name, content);
    }
    folder
}

fn start(config: &Config, folder: &TempFolder, text: &str) -> Server {
    let file = folder.write("tenfold.toml", text);
    Launch::bare(config).flag("--config", file.display()).start()
}

fn end(server: Server) {
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn location(response: &WireResponse) -> (u16, Option<String>) {
    (response.status, response.field("Location").map(str::to_owned))
}

fn path_rules_apply(config: &Config) {
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

fn a_folder_requires_its_password(config: &Config) {
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
    // One connection may request all of them.
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

fn h44_absolute_links_beneath_the_root_are_followed(config: &Config) {
    let files = [
        ("site/page.html", "page\n"),
        ("site/page.html.br", "brotli\n"),
        ("site/folder/a.txt", "a\n"),
        ("secret", "secret\n"),
    ];
    let folder = folder(&files);
    for (link, target) in [
        ("linked.html", "site/page.html"),
        ("linked.html.br", "site/page.html.br"),
        ("by-folder", "site/folder"),
        ("folder/index.html", "site/page.html"),
        ("404.html", "site/folder/a.txt"),
        ("secret", "secret"),
        ("dots", "site/../secret"),
    ] {
        symlink(folder.at(target), folder.at("site").join(link)).expect("our own folder");
    }
    for links in ["beneath", "owner"] {
        let text = format!("root = \"site\"\nprecompressed = [\"br\"]\n[site]\nsymlinks = \"{links}\"\n");
        let server = start(config, &folder, &text);
        for (path, status, body) in [
            ("/linked.html", 200, "page\n"),
            ("/by-folder/a.txt", 200, "a\n"),
            ("/by-folder/", 200, "page\n"),
            ("/secret", 404, "a\n"),
            ("/dots", 404, "a\n"),
        ] {
            let response = server.get(path);
            let seen = String::from_utf8_lossy(&response.body).into_owned();
            assert_eq!((response.status, seen.as_str()), (status, body), "{links} {path}");
        }
        let coded = server.ask("GET", "/linked.html", &[("Accept-Encoding", "br")]);
        assert_eq!((coded.need("Content-Encoding"), &coded.body[..]), ("br", &b"brotli\n"[..]), "{links}");
        end(server);
    }
}

/// Requests are answered in order, also if some wait for a password check.
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
    assert_eq!(wrong.status.code(), Some(2), "{said}");
    assert!(said.contains("tenfold.toml:4:1") && said.contains("did you mean cache?"), "{said}");
}
