//! The journey of a visitor.

use tenfold_engine::Engine;
use tenfold_tests::config::Config;
use tenfold_tests::databases::{DatabaseProduct, fresh, fresh_by_socket};
use tenfold_tests::launch::tenfold;
use tenfold_tests::site::TempFolder;
use tenfold_tests::visitor::{Visitor, text};

use super::{GOOD, launch, new_member, site, stop};

pub(super) fn a_visitor_becomes_a_member_and_leaves(config: &Config) {
    let folder = site();
    let server = launch(config, &folder, &fresh(DatabaseProduct::Sqlite, &folder)).start();
    // The account is gone after each journey.
    walk(Visitor::new(&server));
    walk(Visitor::new(&server).over_http2());
    stop(server);
}

/// Registers, logs in and out, and deletes the account.
#[track_caller]
fn walk(mut visitor: Visitor) {
    let refused = visitor.get("/members/?a=b");
    assert_eq!(
        (refused.status, refused.need("location")),
        (303, "/account/login?next=%2Fmembers%2F%3Fa%3Db")
    );
    let weak = visitor.register("Ann", "password1");
    assert_eq!(weak.status, 422);
    assert!(text(&weak).contains("too common"), "{}", text(&weak));
    let registered = visitor.register("Ann", GOOD);
    assert_eq!((registered.status, registered.need("location")), (303, "/account/login?said=registered"));
    let taken = visitor.register("ANN", GOOD);
    assert_eq!(taken.status, 422);
    assert!(text(&taken).contains("is taken"), "{}", text(&taken));
    assert_eq!(visitor.get("/members/").status, 303, "an account is no session");

    let fields = [("name", "ann"), ("password", GOOD), ("next", "/members/?a=b")];
    let welcome = visitor.submit("/account/login?next=/members/", "/account/login", &fields);
    assert_eq!((welcome.status, welcome.need("location")), (303, "/members/?a=b"));
    let page = visitor.get("/members/");
    assert_eq!((page.status, text(&page).as_str()), (200, "<h1>for members</h1>"));
    assert_eq!(page.need("cache-control"), "private, no-store");
    assert_eq!(visitor.ask("HEAD", "/members/", &[], b"").status, 200);
    let account = visitor.get("/account/");
    assert!(text(&account).contains("<h1>Ann</h1>"), "{}", text(&account));
    assert_eq!(visitor.get("/").field("cache-control"), None, "what is open is as it was");

    assert_eq!(visitor.submit("/account/logout", "/account/logout", &[]).status, 303);
    assert_eq!(visitor.get("/members/").status, 303);
    assert_eq!(visitor.log_in("Ann", GOOD).need("location"), "/members/");
    let wrong = visitor.submit("/account/delete", "/account/delete", &[("password", "not it at all")]);
    assert_eq!(wrong.status, 422);
    let gone = visitor.submit("/account/delete", "/account/delete", &[("password", GOOD)]);
    assert_eq!((gone.status, gone.need("location")), (303, "/account/login?said=deleted"));
    assert_eq!(visitor.log_in("Ann", GOOD).status, 422);
}

pub(super) fn a_database_is_reachable_by_its_socket() {
    let folder = site();
    let config = Config::of(Engine::Epoll);
    for kind in [DatabaseProduct::Postgres, DatabaseProduct::Mariadb] {
        let server = launch(&config, &folder, &fresh_by_socket(kind)).start();
        let mut visitor = new_member(&server, "ann");
        assert_eq!(visitor.get("/members/").status, 200, "{kind:?}");
        assert!(!server.errors().contains("secret"), "{kind:?}: {}", server.errors());
        stop(server);
    }
}

/// Runs `tenfold users`. Returns its exit code and its output.
fn users(url: &str, words: &[&str]) -> (Option<i32>, String) {
    let output = tenfold(&[&["users", "--accounts", url], words].concat());
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

pub(super) fn invitations_let_one_in() {
    let folder = site();
    for kind in DatabaseProduct::ALL {
        let url = fresh(kind, &folder);
        let config = Config::of(tenfold_engine::Engine::Epoll);
        let server = launch(&config, &folder, &url).flag("--registration", "invitation").start();
        let (status, code) = users(&url, &["invite"]);
        assert_eq!(status, Some(0));
        let code = code.trim().to_lowercase();
        let ask = |name: &str, code: &str| {
            let fields = [("name", name), ("password", GOOD), ("again", GOOD), ("invitation", code)];
            Visitor::new(&server).submit("/account/register", "/account/register", &fields)
        };
        let register = |name: &str, code: &str| ask(name, code).status;
        assert_eq!(register("ann", ""), 422);
        assert_eq!(register("ann", "ABCDE-ABCDE-ABCDE-ABCDE"), 422);
        assert_eq!(register("ann", &code), 303);
        assert_eq!(register("bob", &code), 422, "a code is for one");
        // The token of the form differs too.
        let told = |name: &str| {
            let page = text(&ask(name, "ABCDE-ABCDE-ABCDE-ABCDE"));
            page.lines().filter(|line| !line.contains("value=")).collect::<String>()
        };
        assert_eq!(told("ann"), told("eve"), "only an invitation tells that a name is taken");
        stop(server);
        let closed = launch(&config, &folder, &url).flag("--registration", "closed").start();
        let mut visitor = Visitor::new(&closed);
        assert!(!text(&visitor.get("/account/register")).contains("<form"));
        let fields = [("name", "bob"), ("password", GOOD), ("again", GOOD)];
        assert_eq!(visitor.submit("/account/login", "/account/register", &fields).status, 422);
        stop(closed);
    }
}

pub(super) fn the_users_command_manages_members() {
    let folder = site();
    for kind in DatabaseProduct::ALL {
        let url = fresh(kind, &folder);
        let config = Config::of(tenfold_engine::Engine::Epoll);
        let server = launch(&config, &folder, &url).start();
        assert_eq!(Visitor::new(&server).register("Ann", GOOD).status, 303);
        let mut member = Visitor::new(&server);
        assert_eq!(member.log_in("ann", GOOD).status, 303);
        assert_eq!(member.get("/members/").status, 200);
        let users = |words: &[&str]| users(&url, words);
        let (code, list) = users(&["list", "--json"]);
        assert!(
            code == Some(0) && list.contains("\"name\":\"Ann\"") && list.contains("\"disabled\":false"),
            "{list}"
        );
        assert_eq!(users(&["disable", "ANN"]).0, Some(0));
        assert_eq!(member.get("/members/").status, 303, "sessions of who is disabled are over");
        assert_eq!(member.log_in("ann", GOOD).status, 422);
        assert_eq!(users(&["enable", "ann"]).0, Some(0));
        assert_eq!(member.log_in("ann", GOOD).status, 303);
        assert_eq!(users(&["remove", "ann"]).0, Some(0));
        assert_eq!(member.get("/members/").status, 303);
        assert_eq!(users(&["remove", "ann"]).0, Some(1), "there is nobody to be removed");
        stop(server);
    }
}

pub(super) fn templates_can_be_replaced() {
    let folder = site();
    folder.write(
        "templates/login.html",
        "{% extends \"base.html\" %}{% block main %}our login, {{ values.name }}{% endblock %}",
    );
    let config = Config::of(tenfold_engine::Engine::Epoll);
    let templates = folder.at("templates").display().to_string();
    let with = |folder: &TempFolder| {
        launch(&config, folder, &fresh(DatabaseProduct::Sqlite, folder))
            .flag("--account-templates", &templates)
    };
    let server = with(&folder).start();
    assert!(text(&Visitor::new(&server).get("/account/login")).contains("our login"));
    assert!(
        text(&Visitor::new(&server).get("/account/register")).contains("<form"),
        "the others are built in"
    );
    stop(server);
    folder.write("templates/login.html", "{% if %}");
    let output = with(&folder).refused();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("the template login.html is invalid"), "{said}");
    // These would fill the memory of the supervisor, or its stack.
    let deep = format!("{{{{ 1{}1 }}}}", "-".repeat(1_000_000));
    for greedy in ["{% set a = 'a' * 90000000 %}{% set b = a ~ a %}{{ b ~ b }}", &deep] {
        folder.write("templates/login.html", greedy);
        let output = with(&folder).refused();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(1) && said.contains("cannot check the templates of members"),
            "{said}"
        );
    }
}

pub(super) fn h70_every_request_for_a_protected_file_is_checked(config: &Config) {
    let folder = site();
    // Engines differ independently of the database, so only one engine runs with all databases.
    let kinds = if config.engine == Engine::Epoll {
        &DatabaseProduct::ALL[..]
    } else {
        &[DatabaseProduct::Sqlite][..]
    };
    kinds.iter().for_each(|kind| protected(config, &folder, *kind));
}

fn protected(config: &Config, folder: &TempFolder, kind: DatabaseProduct) {
    let server = launch(config, folder, &fresh(kind, folder)).start();
    for path in [
        "/members",
        "/members/",
        "//members//",
        "/%6dembers/",
        "/members/film.bin",
        "/members/a%20b.html",
        "/m%65mbers/film.bin",
        "/MEMBERS/film.bin",
        "/members/nothing",
        "/members//film.bin",
        "/members/./film.bin",
        "/members/film.bin.gz",
        "/x/../members/film.bin",
        "/%4D%45mbers/film.bin",
        "http://other.example/members/film.bin",
    ] {
        let mut visitor = Visitor::new(&server);
        for (fields, method) in [
            (&[][..], "GET"),
            (&[], "HEAD"),
            (&[("Range", "bytes=0-9")], "GET"),
            (&[("If-None-Match", "*")], "GET"),
            (&[("If-Modified-Since", "Tue, 14 Nov 2023 22:13:20 GMT")], "GET"),
        ] {
            let response = visitor.ask(method, path, fields, b"");
            let refused = matches!(response.status, 303 | 401 | 404);
            assert!(refused, "{method} {path} {fields:?}: {}", response.head);
            assert!(response.status != 401 || response.field("www-authenticate").is_some());
            assert_eq!(response.field("etag"), None, "{path}");
        }
    }
    assert_eq!(Visitor::new(&server).get("/membership.html").status, 200);
    let mut member = new_member(&server, "ann");
    let whole = member.get("/members/film.bin");
    let (etag, last) = (whole.need("etag").to_owned(), whole.need("last-modified").to_owned());
    for (fields, status) in [
        (&[("Range", "bytes=0-9")][..], 206),
        (&[("Range", "bytes=0-9,20-29")], 206),
        (&[("Range", "bytes=999999-")], 416),
        (&[("If-None-Match", &etag)], 304),
        (&[("If-Modified-Since", &last)], 304),
    ] {
        let response = member.ask("GET", "/members/film.bin", fields, b"");
        assert_eq!(response.status, status, "{fields:?}");
        assert_eq!(response.need("cache-control"), "private, no-store", "{fields:?}");
    }
    assert_eq!(member.get("/members/nothing").need("cache-control"), "private, no-store");
    stop(server);
}
