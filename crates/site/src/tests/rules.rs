//! Rules for paths: routes, policies, and access.

mod passwords;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::rules::policy::Effective;
use crate::{
    CacheControl, Cors, FieldEdit, HostName, Hosts, Pattern, Policies, Policy, PolicyRule, Realm, Redirect,
    Rewrite, Routes, Shown, Slash, StoredHash, TryFile,
};

fn pattern(text: &str) -> Pattern {
    Pattern::new(text).expect(text)
}

fn rule(paths: &str, policy: Policy) -> PolicyRule {
    PolicyRule { paths: pattern(paths), policy }
}

fn set(name: &str, value: &str) -> FieldEdit {
    FieldEdit::set(name, value).expect(name)
}

fn with_policies(folder: &Folder, everywhere: Policy, rules: Vec<PolicyRule>) -> Site {
    folder.site(Settings { policies: Policies::new(everywhere, rules), ..Settings::default() })
}

fn with_routes(folder: &Folder, routes: Routes) -> Site {
    folder.site(Settings { routes, ..Settings::default() })
}

/// Returns a policy for `alice` with the password `secret`, hashed with the least possible work.
fn members() -> Policy {
    let hash =
        StoredHash::new("$2y$04$ldLE7Yhlg22/2WQ9xeV0NegEaK6HITypbwmpMYvfVgdRlGDqiBoxC").expect("a hash");
    let realm = Realm::new("Members", BTreeMap::from([("alice".to_owned(), hash)])).expect("legal");
    Policy { auth: Some(Some(Arc::new(realm))), ..Policy::default() }
}

fn folder() -> Folder {
    Folder::of(&[
        ("index.html", "home"),
        ("a/index.html", "a"),
        ("a/page.html", "page"),
        ("app.3f2a9c1b.js", "1"),
        ("app.js", "2"),
        ("404.html", "nothing here"),
        ("errors/any.html", "something is wrong"),
        (".hidden/x", "x"),
    ])
}

#[test]
fn cache_control_of_the_path_is_also_on_304_and_206() {
    let folder = folder();
    let cache = |cache| Policy { cache: Some(cache), ..Policy::default() };
    let rules =
        vec![rule("/**.js", cache(CacheControl::Hashed)), rule("/a/**", cache(CacheControl::MaxAge(60)))];
    let site = with_policies(&folder, Policy::default(), rules);
    for _ in 0..2 {
        let cached = |target, fields: &[&str]| {
            let response = ask(&site, "GET", target, fields);
            (response.status(), response.field("Cache-Control").map(str::to_owned))
        };
        let year = Some("public, max-age=31536000, immutable".to_owned());
        assert_eq!(cached("/app.3f2a9c1b.js", &[]), (200, year.clone()));
        assert_eq!(cached("/app.3f2a9c1b.js", &["If-None-Match: *"]), (304, year.clone()));
        assert_eq!(cached("/app.3f2a9c1b.js", &["Range: bytes=0-0"]), (206, year));
        assert_eq!(cached("/app.js", &[]), (200, Some("no-cache".into())));
        assert_eq!(cached("/a/", &[]), (200, Some("max-age=60".into())));
        assert_eq!(cached("/", &[]), (200, None));
        assert_eq!(cached("/a/none", &[]), (404, None));
    }
}

#[test]
fn fields_are_set_added_and_removed_on_every_answer() {
    let folder = folder();
    let everywhere = Policy { fields: vec![set("X-Frame-Options", "DENY")], ..Policy::default() };
    let below = vec![
        set("x-frame-options", "SAMEORIGIN"),
        FieldEdit::add("Link", "</a>; rel=next").expect("legal"),
        FieldEdit::remove("ETag").expect("legal"),
        FieldEdit::remove("X-Content-Type-Options").expect("legal"),
    ];
    let rules = vec![rule("/a/**", Policy { fields: below, ..Policy::default() })];
    let site = with_policies(&folder, everywhere, rules);
    for _ in 0..2 {
        for (target, status) in [("/", 200), ("/none", 404), ("/.git", 404), ("/%00", 400)] {
            let response = get(&site, target);
            assert_eq!(response.status(), status, "{target}");
            assert_eq!(response.field("X-Frame-Options"), Some("DENY"), "{target}");
            assert_eq!(response.field("X-Content-Type-Options"), Some("nosniff"), "{target}");
        }
        for (method, asked, status) in [
            ("POST", "", 405),
            ("OPTIONS", "", 204),
            ("GET", "If-Match: \"x\"", 412),
            ("GET", "If-None-Match: *", 304),
            ("GET", "Range: bytes=1-1", 206),
            ("GET", "Range: bytes=100-", 416),
        ] {
            let response =
                ask(&site, method, "/", if asked.is_empty() { &[] } else { std::slice::from_ref(&asked) });
            assert_eq!(response.status(), status, "{method} with {asked}");
            assert_eq!(response.field("X-Frame-Options"), Some("DENY"), "{method} with {asked}");
        }
        for (target, status) in [("/a/", 200), ("/a/page.html", 200), ("/a/none", 404), ("/a", 301)] {
            let response = get(&site, target);
            assert_eq!(response.status(), status, "{target}");
            assert_eq!(response.field("x-frame-options"), Some("SAMEORIGIN"), "{target}");
            assert_eq!(response.field("Link"), Some("</a>; rel=next"), "{target}");
            assert_eq!(response.field("ETag"), None, "{target}");
        }
        assert_eq!(get(&site, "/a/").field("X-Content-Type-Options"), None);
    }
}

#[test]
fn errors_have_pages_of_their_own() {
    let folder = folder();
    let mut routes = Routes::default();
    routes.error_pages.set("4xx", Some("/errors/any.html")).expect("legal");
    let site = with_routes(&folder, routes);
    for _ in 0..2 {
        let page = |method, target| {
            let response = ask(&site, method, target, &[]);
            (response.status(), response.text().to_owned())
        };
        assert_eq!(page("GET", "/none"), (404, "nothing here".into()));
        assert_eq!(page("GET", "/%00"), (400, "something is wrong".into()));
        assert_eq!(page("DELETE", "/"), (405, "something is wrong".into()));
        assert_eq!(ask(&site, "DELETE", "/", &[]).field("Allow"), Some("GET, HEAD, OPTIONS"));
        assert_eq!(ask(&site, "HEAD", "/none", &[]).field("Content-Length"), Some("12"));
        let keeps = get(&site, "/%00");
        assert_eq!(keeps.field("Connection"), None, "the connection ends");
        assert_eq!((keeps.field("ETag"), keeps.field("Last-Modified")), (None, None));
    }
    let mut out = Out::new();
    let hosts = Hosts::new(site, []);
    let mut response = writer(&mut out);
    response.close();
    assert_eq!(hosts.refuse(431, true, &mut response), Some(18));
    let text = String::from_utf8(flatten(&mut out)).expect("text");
    assert!(text.starts_with("HTTP/1.1 431 Request Header Fields Too Large\r\n"), "{text}");
    assert!(
        text.contains("\r\nConnection: close\r\n") && text.ends_with("\r\n\r\nsomething is wrong"),
        "{text}"
    );
    assert_eq!(hosts.refuse(501, true, &mut writer(&mut out)), None);
}

#[test]
fn the_page_for_4xx_is_the_page_for_404_without_404_html() {
    let folder = Folder::of(&[("errors/any.html", "something is wrong")]);
    let mut routes = Routes::default();
    routes.error_pages.set("4xx", Some("/errors/any.html")).expect("legal");
    let site = with_routes(&folder, routes);
    for _ in 0..2 {
        assert_eq!(get(&site, "/none").text(), "something is wrong");
    }
}

#[test]
fn a_path_leads_elsewhere() {
    let folder = folder();
    let site = with_routes(
        &folder,
        Routes {
            redirects: vec![Redirect::new(pattern("/old/**"), "/a/**", 308).expect("legal")],
            rewrites: vec![
                Rewrite::new(pattern("/b/**"), "/a/**").expect("legal"),
                Rewrite::new(pattern("/secret"), "/.hidden/x").expect("legal"),
            ],
            ..Routes::default()
        },
    );
    for _ in 0..2 {
        let response = get(&site, "/old/page.html?x=y");
        assert_eq!((response.status(), response.field("Location")), (308, Some("/a/page.html?x=y")));
        assert_eq!(get(&site, "/b/page.html").text(), "page");
        assert_eq!(get(&site, "/b/").text(), "a");
        assert_eq!(get(&site, "/secret").text(), "x");
        assert_eq!(get(&site, "/.hidden/x").status(), 404);
        assert_eq!(get(&site, "/b/none").status(), 404);
    }
}

#[test]
fn folders_are_asked_for_as_the_site_wants() {
    let folder = folder();
    let slash = |slash| with_routes(&folder, Routes { slash, ..Routes::default() });
    let said = |site: &Site, target: &str| {
        let response = get(site, target);
        (response.status(), response.field("Location").map(str::to_owned))
    };
    let to = |place: &str| (301, Some(place.to_owned()));
    for _ in 0..2 {
        let add = slash(Slash::Add);
        assert_eq!((said(&add, "/a"), said(&add, "/a/")), (to("/a/"), (200, None)));
        let remove = slash(Slash::Remove);
        assert_eq!((said(&remove, "/a/?q"), said(&remove, "/a")), (to("/a?q"), (200, None)));
        assert_eq!(said(&remove, "/app.js/"), to("/app.js"));
        assert_eq!(said(&remove, "/"), (200, None));
        let either = slash(Slash::Either);
        assert_eq!((said(&either, "/a"), said(&either, "/a/")), ((200, None), (200, None)));
        assert_eq!(said(&either, "/app.js/"), (404, None));
    }
}

#[test]
fn files_are_tried_in_order_and_changes_are_seen() {
    let folder = folder();
    let tried = |all: &[&str]| all.iter().map(|text| TryFile::new(text).expect(text)).collect();
    let policy = Policy {
        try_files: Some(tried(&["{path}.html", "{path}", "/errors/any.html"])),
        ..Policy::default()
    };
    let site = with_policies(&folder, policy, Vec::new());
    assert_eq!(get(&site, "/a/page").text(), "page");
    assert_eq!(get(&site, "/app.js").text(), "2");
    assert_eq!(get(&site, "/none").text(), "something is wrong");
    assert_eq!(get(&site, "/none").status(), 200);
    assert_eq!(get(&site, "/a").status(), 301);
    folder.write("app.js.html", "before");
    assert_eq!(get_later(&site, "/app.js").text(), "before");
    fs::remove_file(folder.at("app.js.html")).expect("our own folder");
    assert_eq!(get_later(&site, "/app.js").text(), "2");
    assert_eq!(visits(|| drop(get(&site, "/app.js"))), 0);
}

#[test]
fn a_page_precedes_a_folder_without_an_index() {
    let folder = folder();
    folder.write("about.html", "about");
    folder.write("about/team.html", "team");
    folder.write("only/deep.html", "deep");
    let tried = ["{path}", "{path}.html"].map(|text| TryFile::new(text).expect(text)).to_vec();
    let policy = Policy { try_files: Some(tried), ..Policy::default() };
    let site = with_policies(&folder, policy, Vec::new());
    let asked = |target: &str| {
        let response = get_later(&site, target);
        (response.status(), response.field("Location").unwrap_or(response.text()).to_owned())
    };
    assert_eq!(asked("/about"), (200, "about".to_owned()));
    assert_eq!(asked("/about/team"), (200, "team".to_owned()));
    assert_eq!(asked("/only"), (301, "/only/".to_owned()));
    folder.write("about/index.html", "index");
    assert_eq!(asked("/about"), (301, "/about/".to_owned()));
    assert_eq!(asked("/about/"), (200, "index".to_owned()));
    fs::remove_file(folder.at("about/index.html")).expect("our own folder");
    assert_eq!(asked("/about"), (200, "about".to_owned()));
}

#[test]
fn an_application_answers_paths_without_a_file() {
    let folder = folder();
    let policy = Policy { fallback: Some(Some("index.html".into())), ..Policy::default() };
    let rules = vec![rule("/a/**", Policy { fallback: Some(None), ..Policy::default() })];
    let site = with_policies(&folder, policy, rules);
    for _ in 0..2 {
        for target in ["/users/7", "/deep/er/", "/x?y"] {
            let response = get(&site, target);
            assert_eq!((response.status(), response.text()), (200, "home"), "{target}");
        }
        for target in ["/picture.png", "/a/none", "/.git", "/.well-known"] {
            assert_eq!(get(&site, target).status(), 404, "{target}");
        }
        assert_eq!(get(&site, "/app.js").text(), "2");
        assert_eq!(ask(&site, "GET", "/users/7", &["If-None-Match: *"]).status(), 304);
    }
}

#[test]
fn a_file_for_any_path_has_the_cache_rule_of_its_own_path() {
    let folder = folder();
    folder.write("assets/app.js", "app");
    folder.write("assets/about.html", "about");
    let tried = |all: &[&str]| all.iter().map(|text| TryFile::new(text).expect(text)).collect();
    let assets = |policy: Policy| vec![rule("/assets/**", policy)];
    let everywhere = Policy {
        cache: Some(CacheControl::Revalidate),
        fallback: Some(Some("index.html".into())),
        ..Policy::default()
    };
    let trying = Policy { try_files: Some(tried(&["{path}", "{path}.html", "/"])), ..everywhere.clone() };
    let by_preset = Policy { cache: Some(CacheControl::Immutable), ..Policy::default() };
    let fields = vec![set("Cache-Control", "max-age=9"), set("X-A", "b")];
    let by_field = Policy { fields, ..Policy::default() };
    for (policy, rules, expected) in [
        (&everywhere, assets(by_preset.clone()), "public, max-age=31536000, immutable"),
        (&trying, assets(by_preset), "public, max-age=31536000, immutable"),
        (&trying, assets(by_field), "max-age=9"),
    ] {
        let site = with_policies(&folder, policy.clone(), rules);
        for _ in 0..2 {
            let missing = get(&site, "/assets/none");
            assert_eq!((missing.text(), missing.field("Cache-Control")), ("home", Some("no-cache")));
            let there = get(&site, "/assets/app.js");
            assert_eq!((there.text(), there.field("Cache-Control")), ("app", Some(expected)));
            assert_eq!(missing.field("X-A"), there.field("X-A"), "other rules apply to the requested path");
            if policy.try_files.is_some() {
                assert_eq!(get(&site, "/assets/none.js").field("Cache-Control"), Some("no-cache"));
                assert_eq!(get(&site, "/assets/about").field("Cache-Control"), Some(expected));
            }
        }
    }
}

#[test]
fn hidden_names_are_shown_where_configured() {
    let folder = folder();
    let site =
        with_routes(&folder, Routes { shown: Shown::new(vec![pattern("/.hidden")]), ..Routes::default() });
    assert_eq!(get(&site, "/.hidden/x").text(), "x");
    assert_eq!(get(&site, "/.well-known/x").status(), 404);
}

#[test]
fn links_are_followed_as_configured() {
    let folder = folder();
    folder.link("link.js", "app.js");
    for (links, status) in [
        (tenfold_sys::links::Links::Beneath, 200),
        (tenfold_sys::links::Links::SameOwner, 200),
        (tenfold_sys::links::Links::None, 404),
    ] {
        let site = with_routes(&folder, Routes { links, ..Routes::default() });
        assert_eq!(get(&site, "/link.js").status(), status, "{links:?}");
        assert_eq!(get(&site, "/app.js").status(), 200, "{links:?}");
    }
}

#[test]
fn pages_of_allowed_origins_may_read_responses() {
    let folder = folder();
    let cors = Cors::new(vec!["https://a.example".into()]).expect("legal").max_age(60);
    let rules = vec![rule("/a/**", Policy { cors: Some(Some(Arc::new(cors))), ..Policy::default() })];
    let site = with_policies(&folder, Policy::default(), rules);
    let origin = "Origin: https://a.example";
    for _ in 0..2 {
        for (fields, status) in [
            (&[origin][..], 200),
            (&[origin, "If-None-Match: *"], 304),
            (&[origin, "Range: bytes=0-0"], 206),
            (&[origin, "Range: bytes=9-"], 416),
        ] {
            let response = ask(&site, "GET", "/a/page.html", fields);
            assert_eq!(response.status(), status);
            assert_eq!(response.field("Access-Control-Allow-Origin"), Some("https://a.example"), "{status}");
            assert_eq!(response.field("Vary"), Some("Origin"), "{status}");
        }
        let other = ask(&site, "GET", "/a/page.html", &["Origin: https://b.example"]);
        assert_eq!((other.field("Access-Control-Allow-Origin"), other.field("Vary")), (None, Some("Origin")));
        let missing = ask(&site, "GET", "/a/none", &[origin]);
        assert_eq!(missing.status(), 404);
        assert_eq!(missing.field("Access-Control-Allow-Origin"), Some("https://a.example"));
        assert_eq!(ask(&site, "GET", "/", &[origin]).field("Vary"), None);
        let preflight = ask(&site, "OPTIONS", "/a/x", &[origin, "Access-Control-Request-Method: GET"]);
        assert_eq!((preflight.status(), preflight.field("Access-Control-Max-Age")), (204, Some("60")));
        assert_eq!(preflight.field("Access-Control-Allow-Methods"), Some("GET, HEAD"));
        let elsewhere = ask(&site, "OPTIONS", "/", &[origin, "Access-Control-Request-Method: GET"]);
        assert_eq!(elsewhere.field("Access-Control-Allow-Methods"), None);
    }
}

#[test]
fn early_hints_precede_whole_responses_to_http_1_1() {
    let folder = folder();
    let link = "</app.js>; rel=preload; as=script";
    let policy = Policy { early_hints: Some(vec![link.into()]), ..Policy::default() };
    let site = with_policies(&folder, Policy::default(), vec![rule("/", policy)]);
    let staged = |request: &str| {
        let mut out = Out::new();
        stage(&site, request, &mut out);
        String::from_utf8(flatten(&mut out)).expect("text")
    };
    let hint = format!("HTTP/1.1 103 Early Hints\r\nLink: {link}\r\n\r\nHTTP/1.1 200 OK\r\n");
    for _ in 0..2 {
        let hinted = staged("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(hinted.starts_with(&hint), "{hinted}");
        assert_eq!(hinted.matches("\r\nLink: ").count(), 2, "{hinted}");
        for plain in ["GET / HTTP/1.0\r\n\r\n", "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"] {
            assert!(staged(plain).starts_with("HTTP/1.1 200 OK\r\n"), "{plain}");
        }
        assert!(staged("GET /app.js HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
    }
}

#[test]
fn hosts_have_sites_of_their_own() {
    let (first, second) = (folder(), Folder::new());
    second.write("index.html", "second");
    let names =
        vec![HostName::new("b.example").expect("legal"), HostName::new("*.c.example").expect("legal")];
    let hosts = Hosts::new(first.in_memory(), [(names, second.in_memory())]);
    let body = |host: &str| {
        let mut out = Out::new();
        let mut request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes();
        let answered = parse_request(&mut request, |request| {
            hosts.respond(&request.expect("it is good"), &mut writer(&mut out))
        });
        let Answered::Staged(outcome) = answered else { panic!("it needs work") };
        Response::of(outcome, &mut out).text().to_owned()
    };
    for (host, expected) in [
        ("b.example", "second"),
        ("B.EXAMPLE:8080", "second"),
        ("x.y.c.example", "second"),
        ("c.example", "home"),
        ("a.example", "home"),
        ("evil", "home"),
    ] {
        assert_eq!(body(host), expected, "{host}");
    }
}

#[test]
fn rules_for_every_path_are_applied_without_parsing_the_path() {
    let here = Effective::default();
    assert!(!here.is_guarded() && here.hints.is_none() && here.of_errors.is_empty());
    assert!(
        Policies::new(Policy { fields: vec![set("A", "b")], ..Policy::default() }, Vec::new())
            .only_policy()
            .is_some()
    );
    assert!(Policies::new(members(), Vec::new()).only_policy().is_none());
}
