//! Folders with a password.

use super::*;

/// Sends a request, and runs its work. Returns the response and the number of jobs.
fn ask_with_work(site: &Site, target: &str, fields: &str) -> (Response, usize) {
    let mut request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n").into_bytes();
    let (mut out, mut works) = (Out::new(), 0);
    let outcome = parse_request(&mut request, |request| {
        let request = request.expect("the request is well-formed");
        let mut response = writer(&mut out);
        let mut answered = site.respond(&request, &mut response);
        loop {
            assert!(response.take_fields().is_empty());
            match answered {
                Answered::Staged(outcome) => return outcome,
                Answered::Work(work) => {
                    drop(response);
                    assert!(out.is_empty());
                    works += 1;
                    response = writer(&mut out);
                    answered = (work.split().0)().answer(site, &request, &mut response);
                }
            }
        }
    });
    (Response::of(outcome, &mut out), works)
}

#[test]
fn h43_a_private_file_needs_its_password_on_every_path() {
    let folder = folder();
    let mut routes = Routes { slash: Slash::Either, ..Routes::default() };
    routes.rewrites.push(Rewrite::new(pattern("/b/**"), "/a/**").expect("legal"));
    let policies = Policies::new(Policy::default(), vec![rule("/a/**", members())]);
    let site = folder.site(Settings { policies, routes, ..Settings::default() });
    let right = "Authorization: Basic YWxpY2U6c2VjcmV0\r\n";
    let wrong = "Authorization: Basic YWxpY2U6d3Jvbmc=\r\n";
    let (first, works) = ask_with_work(&site, "/a/page.html", right);
    assert_eq!((first.status(), first.text(), works), (200, "page", 1));
    assert_eq!(ask_with_work(&site, "/a/page.html", wrong).1, 1);
    let ways = [
        "/a/page.html",
        "/a/",
        "/a",
        "/%61/page.html",
        "//a//page.html",
        "/b/page.html",
        "/a/none",
        "/a/index.html",
    ];
    for target in ways {
        let (refused, works) = ask_with_work(&site, target, "");
        assert_eq!((refused.status(), works), (401, 0), "{target}");
        assert_eq!(refused.field("WWW-Authenticate"), Some("Basic realm=\"Members\", charset=\"UTF-8\""));
        assert_eq!(ask_with_work(&site, target, wrong).0.status(), 401, "{target}");
        let (seen, works) = ask_with_work(&site, target, right);
        assert_eq!(works, 0, "the password is verified again");
        assert_eq!(seen.status(), if target == "/a/none" { 404 } else { 200 }, "{target}");
    }
    assert_eq!(ask_with_work(&site, "/", "").0.status(), 200);
    pass(Duration::from_secs(61));
    assert_eq!(ask_with_work(&site, "/a/", right).1, 1, "the result is cached for ever");
}

#[test]
fn a_response_that_waited_for_a_password_has_its_fields_once() {
    let folder = folder();
    let cors = Cors::new(vec!["*".into()]).expect("legal");
    let policy = Policy { cors: Some(Some(Arc::new(cors))), ..members() };
    let site = with_policies(&folder, policy, Vec::new());
    let (seen, works) = ask_with_work(&site, "/", "Authorization: Basic YWxpY2U6c2VjcmV0\r\n");
    assert_eq!((seen.status(), works), (200, 1));
    assert_eq!(seen.field("Access-Control-Allow-Origin"), Some("*"));
}

#[test]
fn shared_caches_do_not_store_private_files() {
    let folder = folder();
    folder.link("alias.html", "a/page.html");
    let own = |value: &str| {
        let set = FieldEdit::set("Cache-Control", value).expect("legal");
        Policy { fields: vec![set], ..Policy::default() }
    };
    let policies = |rules| Policies::new(Policy::default(), [vec![rule("/a/**", members())], rules].concat());
    let cache = Policy { cache: Some(CacheControl::MaxAge(60)), ..Policy::default() };
    for (rules, expected) in [
        (Vec::new(), Some("private")),
        (vec![rule("/a/**", cache)], Some("private, max-age=60")),
        (vec![rule("/a/**", own("public, max-age=1"))], Some("public, max-age=1")),
    ] {
        for memory_up_to in [0, u64::MAX] {
            let settings =
                Settings { policies: policies(rules.clone()), memory_up_to, ..Settings::default() };
            let site = folder.site(settings);
            for _ in 0..2 {
                let (seen, _) = ask_with_work(&site, "/a/page.html", RIGHT);
                assert_eq!((seen.status(), seen.field("Cache-Control")), (200, expected));
                let (seen, _) = ask_with_work(&site, "/a/page.html", &format!("{RIGHT}If-None-Match: *\r\n"));
                assert_eq!((seen.status(), seen.field("Cache-Control")), (304, expected));
                assert_eq!(ask_with_work(&site, "/", "").0.field("Cache-Control"), None);
            }
        }
    }
    let site = folder.site(Settings { policies: policies(Vec::new()), ..Settings::default() });
    let (seen, _) = ask_with_work(&site, "/alias.html", RIGHT);
    assert_eq!((seen.status(), seen.field("Cache-Control")), (200, Some("private")), "through a link");
}

#[test]
fn an_open_area_may_be_inside_a_protected_area() {
    let folder = folder();
    let open = Policy { auth: Some(None), ..Policy::default() };
    let site = with_policies(&folder, members(), vec![rule("/a/**", open)]);
    assert_eq!(ask_with_work(&site, "/", "").0.status(), 401);
    assert_eq!(ask_with_work(&site, "/a/", "").0.status(), 200);
}

const RIGHT: &str = "Authorization: Basic YWxpY2U6c2VjcmV0\r\n";

#[test]
fn h83_a_file_of_another_path_keeps_its_password_in_every_store() {
    let folder = folder();
    folder.link("alias.html", "a/page.html");
    for memory_up_to in [0, u64::MAX] {
        let app = Policy { fallback: Some(Some("a/page.html".into())), ..Policy::default() };
        let rules = vec![rule("/a/**", members()), rule("/app/**", app)];
        let policies = Policies::new(Policy::default(), rules);
        let tags = crate::TagFrom::Content;
        let site = folder.site(Settings { policies, memory_up_to, tags, ..Settings::default() });
        for target in ["/app/x", "/alias.html"] {
            for _ in 0..2 {
                assert_eq!(ask_with_work(&site, target, "").0.status(), 401, "{target}");
                assert_eq!(ask_with_work(&site, target, RIGHT).0.text(), "page", "{target}");
                assert_eq!(ask_with_work(&site, target, "").0.status(), 401, "{target}");
            }
        }
    }
}

#[test]
fn h83_a_compressed_sibling_that_links_to_a_protected_file_is_not_used() {
    let folder = folder();
    folder.write("a/secret.br", "secret");
    folder.link("page.html.br", "a/secret.br");
    folder.write("page.html", "open");
    let codings = crate::Codings {
        siblings: vec![tenfold_http::semantics::negotiate::ContentCoding::Brotli],
        ..crate::Codings::default()
    };
    let policies = Policies::new(Policy::default(), vec![rule("/a/**", members())]);
    let site = folder.site(Settings { policies, codings, ..Settings::default() });
    for _ in 0..2 {
        let (seen, _) = ask_with_work(&site, "/page.html", "Accept-Encoding: br\r\n");
        assert_eq!((seen.field("Content-Encoding"), seen.text()), (None, "open"));
        pass(Duration::from_secs(1));
    }
}

#[test]
fn h83_a_host_asks_for_the_password_of_another_unless_it_opens_the_files_itself() {
    let folder = folder();
    let inner = |policy: Policy| {
        let policies = Policies::new(Policy::default(), vec![rule("/**", policy)]);
        Site::new(
            Root::open(&folder.at("a")).expect("it was made"),
            Settings { policies, ..Settings::default() },
        )
    };
    let name = |name: &str| vec![HostName::new(name).expect(name)];
    let open = Policy { auth: Some(None), ..Policy::default() };
    let outer = with_policies(&folder, Policy::default(), vec![rule("/a/**", members())]);
    let hosts = Hosts::new(outer, [(name("inner"), inner(Policy::default())), (name("open"), inner(open))]);
    let status = |host: &str| {
        let mut request = format!("GET /page.html HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes();
        parse_request(&mut request, |request| {
            let (request, mut out) = (request.expect("the request is well-formed"), Out::new());
            match hosts.respond(&request, &mut writer(&mut out)) {
                Answered::Staged(outcome) => outcome.status(),
                Answered::Work(_) => panic!("no password is verified"),
            }
        })
    };
    assert_eq!((status("inner"), status("open")), (401, 200));
}

#[test]
fn h83_a_file_of_members_waits_for_a_login_and_costs_no_look_when_it_is_remembered() {
    let folder = folder();
    folder.link("alias.html", "a/page.html");
    let folders = crate::MemberFolders::new(vec!["a".into()], |path| path == "a" || path.starts_with("a/"));
    let hosts = Hosts::new(folder.in_memory(), []).for_members(folders);
    let mut request = b"GET /alias.html HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
    parse_request(&mut request, |request| {
        let request = request.expect("the request is well-formed");
        for _ in 0..2 {
            let mut out = Out::new();
            let Answered::Work(work) = hosts.respond(&request, &mut writer(&mut out)) else {
                panic!("it is not restricted to members")
            };
            assert!(out.is_empty() && work.need() == crate::Need::Membership);
            let Answered::Staged(refused) = hosts.finish((work.split().0)(), &request, &mut writer(&mut out))
            else {
                panic!("it needs more work")
            };
            assert_eq!(refused.status(), 403, "the session was not looked up");
            let seen = || match hosts.respond_to_member(&request, &mut writer(&mut Out::new())) {
                Answered::Staged(outcome) => outcome.status(),
                Answered::Work(_) => panic!("a member needs more work"),
            };
            assert_eq!(seen(), 200);
            assert_eq!(visits(|| assert_eq!(seen(), 200)), 0);
        }
    });
}

#[test]
fn the_text_below_a_listing_needs_the_password_of_its_file() {
    let folder = folder();
    folder.write("open/README", "for everybody");
    folder.write("shut/README", "for members");
    folder.write("mixed/README.md", "for members");
    folder.write("linked/x", "");
    folder.link("linked/README", "../shut/README");
    let rules = vec![rule("/shut/**", members()), rule("/mixed/README.md", members())];
    let policies = Policies::new(Policy::default(), rules);
    let site = folder.site(Settings { policies, listing: crate::Listing::Html, ..Settings::default() });
    let right = "Authorization: Basic YWxpY2U6c2VjcmV0\r\n";
    for (target, fields, is_shown) in [
        ("/open/", "", true),
        ("/shut/", right, true),
        ("/mixed/", "", false),
        ("/linked/", "", false),
        ("/shut/", right, true),
    ] {
        let (page, _) = ask_with_work(&site, target, fields);
        assert_eq!(page.status(), 200, "{target}");
        let is_found = page.text().contains("<pre>for ");
        assert_eq!(is_found, is_shown, "{target}");
    }
    assert_eq!(ask_with_work(&site, "/shut/", "").0.status(), 401);
}

#[test]
fn an_archive_omits_files_with_another_password_than_its_folder() {
    let folder = folder();
    for name in ["docs/open", "docs/shut/a", "docs/shut/b/c", "docs/secret.txt", "docs/.hidden"] {
        folder.write(name, "x");
    }
    folder.link("docs/link", "shut/a");
    folder.link("docs/linked", "../docs/shut/b");
    let rules = vec![rule("/docs/shut/**", members()), rule("/docs/secret.txt", members())];
    let policies = Policies::new(Policy::default(), rules);
    let listing = crate::Listing::Html;
    let site = folder.site(Settings { policies, listing, archives: true, ..Settings::default() });
    let right = "Authorization: Basic YWxpY2U6c2VjcmV0\r\n";
    let names = |target: &str, fields: &str| -> Vec<_> {
        let (archive, _) = ask_with_work(&site, target, fields);
        assert_eq!(archive.status(), 200, "{target}");
        let mut archive = tar::Archive::new(&archive.body[..]);
        let entries =
            archive.entries().expect("it is an archive").map(|entry| entry.expect("it has a header"));
        let path = |entry: tar::Entry<'_, _>| entry.path().expect("a path").to_string_lossy().into_owned();
        entries.map(path).filter(|name| !name.ends_with('/')).collect()
    };
    assert_eq!(names("/docs/?archive=tar", ""), ["docs/open"]);
    assert_eq!(names("/docs/?archive=tar", right), ["docs/open"], "an archive has the files of one realm");
    assert_eq!(names("/docs/shut/?archive=tar", right), ["shut/a", "shut/b/c"]);
    assert_eq!(ask_with_work(&site, "/docs/shut/?archive=tar", "").0.status(), 401);
}
