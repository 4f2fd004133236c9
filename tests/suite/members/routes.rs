//! Routes to protected files: a file stays protected, whatever path, host or link leads to it.

use std::fs;
use std::os::unix::fs::symlink;

use tenfold_engine::Engine;
use tenfold_tests::config::Config;
use tenfold_tests::databases::{DatabaseProduct, fresh};
use tenfold_tests::launch::Launch;
use tenfold_tests::server::Server;
use tenfold_tests::site::TempFolder;
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::visitor::{Visitor, text};

use super::{new_member, site, stop};

const MEMBERS_PAGE: &str = "<h1>for members</h1>";

/// A configuration with every kind of route into the members' folder.
const ROUTES: &str = r#"
    root = "site"
    listing = "html"
    [site]
    error-pages = { 404 = "/members/index.html", 400 = "/members/index.html" }
    [[site.path]]
    match = "/app/**"
    fallback = "/members/index.html"
    [[site.path]]
    match = "/fixed/**"
    try-files = ["/members/index.html"]
    [[site.path]]
    match = "/below/**"
    try-files = ["/members/{path}", "/members/index.html"]
    [[site.rewrite]]
    from = "/rewritten/**"
    to = "/members/**"
    [[host]]
    name = "inner.example"
    root = "site/members"
    [[host]]
    name = "outer.example"
    root = "."
"#;

/// Roots of hosts in a folder that workers may not enter, and with protected folders.
fn closed() -> String {
    const HASH: &str = "$2y$04$ldLE7Yhlg22/2WQ9xeV0NegEaK6HITypbwmpMYvfVgdRlGDqiBoxC";
    let protected = ["private/**", "link/**", "open/later/**", "**/*.key"].map(|pattern| {
        let auth = format!("{{ realm = \"r\", users = {{ alice = \"{HASH}\" }} }}");
        format!("[[site.path]]\nmatch = \"/closed/{pattern}\"\nauth = {auth}\n")
    });
    let roots =
        [("private", "private/in"), ("link", "linked/in"), ("members", "members/in"), ("open", "open")];
    let hosts = roots
        .map(|(name, root)| format!("[[host]]\nname = \"{name}.example\"\nroot = \"site/closed/{root}\"\n"));
    ["root = \"site\"\n".to_owned(), protected.concat(), hosts.concat()].concat()
}

fn start(config: &Config, folder: &TempFolder, text: &str, protect: &str) -> Server {
    let file = folder.write("tenfold.toml", text);
    Launch::bare(config)
        .flag("--config", file.display())
        .flag("--accounts", fresh(DatabaseProduct::Sqlite, folder))
        .flag("--protect", protect)
        .flag("--password-memory", "64k")
        .flag("--password-passes", 1)
        .start()
}

pub(super) fn h83_no_route_leads_to_a_protected_file_without_a_login(config: &Config) {
    let folder = site();
    folder.write("site/members/list/inner.txt", "in a listing");
    symlink("members", folder.at("site/link")).expect("our own folder");
    symlink("members/index.html", folder.at("site/page.html")).expect("our own folder");
    let server = start(config, &folder, ROUTES, "/members/");
    let mut member = new_member(&server, "ann");
    // The second round is answered from the cache, which the member has filled.
    for _ in 0..2 {
        for target in [
            "/app/somewhere",
            "/fixed/somewhere",
            "/below/index.html",
            "/below/nothing",
            "/rewritten/index.html",
            "/link/index.html",
            "/link/",
            "/page.html",
            "/link/list/",
            "/rewritten/film.bin",
            "http://inner.example/index.html",
            "http://inner.example/",
            "http://inner.example/film.bin",
            "http://outer.example/site/members/index.html",
            "http://outer.example/site/link/index.html",
        ] {
            let mut stranger = Visitor::new(&server);
            for (method, fields) in [("GET", &[][..]), ("HEAD", &[]), ("GET", &[("Range", "bytes=0-3")])] {
                let refused = stranger.ask(method, target, fields, b"");
                assert!(matches!(refused.status, 303 | 401), "{method} {target}: {}", refused.head);
                assert!(!refused.body.windows(7).any(|part| part == b"members"), "{target}");
                assert_eq!(refused.field("etag"), None, "{target}");
            }
            let seen = member.ask("GET", target, &[], b"");
            assert_eq!(seen.status, 200, "{target}: {}", seen.head);
            assert_eq!(seen.need("cache-control"), "private, no-store", "{target}");
        }
        let missing = Visitor::new(&server).ask("GET", "/nothing", &[], b"");
        assert_eq!((missing.status, text(&missing).as_str()), (404, "404 Not Found\n"));
        assert_eq!(text(&member.get("/members/nothing")), MEMBERS_PAGE, "members see their own page");
        let malformed = String::from_utf8_lossy(&server.exchange(b"GET / HTTP/1.1\r\n\r\n")).into_owned();
        assert!(malformed.starts_with("HTTP/1.1 400 ") && !malformed.contains(MEMBERS_PAGE), "{malformed}");
        assert_eq!(server.get("/membership.html").status, 200);
        assert_eq!(server.get("/").status, 200);
    }
    stop(server);
}

pub(super) fn h83_a_replacement_of_a_protected_folder_is_protected() {
    let folder = site();
    folder.write("site/next/index.html", MEMBERS_PAGE);
    folder.write("releases/2/members/index.html", MEMBERS_PAGE);
    folder.write("releases/2/index.html", "home");
    let server = start(&Config::of(Engine::Epoll), &folder, ROUTES, "/members/");
    let status = |target: &str| Visitor::new(&server).ask("GET", target, &[], b"").status;
    let open =
        ["http://outer.example/site/next/index.html", "http://outer.example/releases/2/members/index.html"];
    for target in open {
        assert_eq!(status(target), 200, "{target}: it is no folder of the members yet");
    }
    // A rename of the folder: the remembered identity is checked again.
    fs::rename(folder.at("site/members"), folder.at("site/former")).expect("our own folder");
    symlink("next", folder.at("site/members")).expect("our own folder");
    becomes_true(SOON, "the new folder is protected", || status(open[0]) == 303);
    assert_eq!(status("/fixed/x"), 303);
    // A new target of the link that is the root's path.
    fs::rename(folder.at("site"), folder.at("releases/1")).expect("our own folder");
    symlink("releases/2", folder.at("site")).expect("our own folder");
    becomes_true(SOON, "the new root is protected", || status(open[1]) == 303);
    stop(server);
}

pub(super) fn h83_folders_closed_to_workers_stay_protected() {
    let folder = TempFolder::new("closed");
    for host in ["private/in", "linked/in", "members/in", "open"] {
        folder.write(&format!("site/closed/{host}/page.html"), "page");
    }
    symlink("linked", folder.at("site/closed/link")).expect("our own folder");
    folder.write("site/closed/open/a.key", "key");
    folder.write("site/index.html", "home");
    folder.allow("site/closed", 0o700);
    let server = start(&Config::of(Engine::Epoll), &folder, &closed(), "/closed/members/");
    let status = |target: &str| Visitor::new(&server).ask("GET", target, &[], b"").status;
    assert_eq!(status("http://private.example/page.html"), 401);
    assert_eq!(status("http://link.example/page.html"), 401);
    assert_eq!(status("http://members.example/page.html"), 303);
    assert_eq!(status("http://open.example/page.html"), 200, "nobody protects it");
    assert_eq!(status("http://open.example/a.key"), 401);
    assert_eq!(status("http://localhost/index.html"), 200);
    folder.write("site/closed/open/later/page.html", "page");
    assert_eq!(status("http://open.example/later/page.html"), 401, "it is there since the start");
    // An unknown path.
    fs::rename(folder.at("site/closed/open"), folder.at("site/closed/linked/moved")).expect("our own folder");
    folder.write("site/closed/linked/moved/new.html", "page");
    assert_eq!(status("http://open.example/new.html"), 403);
    // Only the root of the host can be entered.
    folder.allow("site", 0o700);
    folder.write("site/closed/private/in/new.html", "page");
    assert_eq!(status("http://private.example/new.html"), 401);
    stop(server);
}

pub(super) fn h82_members_pages_stay_private_after_an_interim_response(config: &Config) {
    let folder = site();
    let file = folder.write(
        "tenfold.toml",
        "root = \"site\"\n[[site.path]]\nmatch = \"/members/**\"\ncache = \"immutable\"\n\
         early-hints = \"</site.css>; rel=preload; as=style\"\n",
    );
    for write in ["joined", "split"] {
        let server = Launch::bare(config)
            .flag("--config", file.display())
            .flag("--write", write)
            .flag("--accounts", fresh(DatabaseProduct::Sqlite, &folder))
            .flag("--protect", "/members/")
            .flag("--password-memory", "64k")
            .flag("--password-passes", 1)
            .start();
        let member = new_member(&server, "ann");
        let cookie = format!("session={}", member.cookies["session"]);
        let fields = [("Cookie", cookie.as_str())];
        for target in ["/members/", "/members/film.bin", "/members/"] {
            let mut wire = server.connect();
            wire.send(tenfold_tests::wire::request("GET", target, &fields));
            let interim = wire.head();
            assert_eq!((interim.status, interim.field("cache-control")), (103, None), "{target}");
            let response = wire.response();
            assert_eq!(response.status, 200, "{target}");
            assert_eq!(response.need("cache-control"), "private, no-store", "{target}");
        }
        stop(server);
    }
}
