//! Who may see what is behind a password.

use super::*;

/// Sends a request, and does the work that it takes.
fn ask_with_work(site: &Site, target: &str, fields: &str) -> (Response, usize) {
    let mut request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n").into_bytes();
    let (mut out, mut works) = (Out::new(), 0);
    let outcome = parse_head(&mut request, |head| {
        let head = head.expect("the request is well-formed");
        let mut answered = site.respond(&head, &mut out);
        loop {
            match answered {
                Answered::Staged(outcome) => return outcome,
                Answered::Work(work) => {
                    assert!(out.is_empty() && !out.has_fields());
                    works += 1;
                    answered = (work.split().0)().answer(site, &head, &mut out);
                }
            }
        }
    });
    assert!(!out.has_fields());
    (Response::of(outcome, &mut out), works)
}

#[test]
fn h43_only_who_knows_the_password_sees_what_is_private_by_every_way() {
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
        assert_eq!(works, 0, "it is remembered");
        assert_eq!(seen.status(), if target == "/a/none" { 404 } else { 200 }, "{target}");
    }
    assert_eq!(ask_with_work(&site, "/", "").0.status(), 200);
    pass(Duration::from_secs(61));
    assert_eq!(ask_with_work(&site, "/a/", right).1, 1, "and not for ever");
}

#[test]
fn what_waits_for_a_password_gets_its_fields_once() {
    let folder = folder();
    let cors = Cors::new(vec!["*".into()]).expect("legal");
    let policy = Policy { cors: Some(Some(Arc::new(cors))), ..members() };
    let site = with_policies(&folder, policy, Vec::new());
    let (seen, works) = ask_with_work(&site, "/", "Authorization: Basic YWxpY2U6c2VjcmV0\r\n");
    assert_eq!((seen.status(), works), (200, 1));
    assert_eq!(seen.field("Access-Control-Allow-Origin"), Some("*"));
}

#[test]
fn an_area_may_be_open_within_one_that_is_not() {
    let folder = folder();
    let open = Policy { auth: Some(None), ..Policy::default() };
    let site = with_policies(&folder, members(), vec![rule("/a/**", open)]);
    assert_eq!(ask_with_work(&site, "/", "").0.status(), 401);
    assert_eq!(ask_with_work(&site, "/a/", "").0.status(), 200);
}
