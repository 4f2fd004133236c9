//! Hostile and odd request targets.

use super::*;

fn folder() -> Folder {
    Folder::of(&[
        ("index.html", "home"),
        ("a/b.txt", "b"),
        ("%2e%2e/x", "literal"),
        (".git/config", "hidden"),
        (".env", "hidden"),
        ("page.html~", "hidden"),
        ("a/.well-known/x", "hidden"),
        (".well-known/security.txt", "contact"),
        ("evil/index.html", "evil"),
    ])
}

/// Requests each target of a list that is separated by spaces.
#[track_caller]
fn all_are(status: u16, targets: &str) {
    let folder = folder();
    let site = folder.in_memory();
    let text = if status == 404 { "404 Not Found\n" } else { "400 Bad Request\n" };
    for target in targets.split(' ') {
        let response = get(&site, target);
        assert_eq!((response.status(), response.text()), (status, text), "{target}");
    }
}

#[test]
fn h39_h40_dots_lead_nowhere_and_are_decoded_once() {
    all_are(
        404,
        "/../secret /.. /a/../b.txt /a/../../secret /%2e%2e/secret /.%2e/secret \
         /%2e%2e%2fsecret /..;/secret /a/%2e/b.txt /%252e%252e/secret /..%252fsecret",
    );
    let folder = folder();
    let site = folder.in_memory();
    assert_eq!(get(&site, "/%252e%252e/x").text(), "literal");
    assert_eq!(get(&site, "/%61/%62.txt").text(), "b");
    assert_eq!(get(&site, "/a%252fb.txt").status(), 404);
}

#[test]
fn h41_h42_backslashes_and_bytes_that_are_not_text_are_malformed() {
    all_are(400, "/a%5cb.txt /..%5c..%5csecret /%00 /a/b.txt%00.html /%c0%ae%c0%ae/secret /% /%zz /%ff");
}

#[test]
fn h43_slashes_have_one_meaning() {
    let folder = folder();
    let site = folder.in_memory();
    assert_eq!(get(&site, "/a%2fb.txt").status(), 404);
    for target in ["/a/b.txt", "//a/b.txt", "/a//b.txt", "///a///b.txt"] {
        assert_eq!(get(&site, target).text(), "b", "{target}");
    }
}

#[test]
fn h47_hidden_files_are_not_there_and_well_known_is() {
    all_are(404, "/.git/config /.git /.git/ /.env /%2eenv /page.html~ /a/.well-known/x /.nothing");
    let folder = folder();
    let site = folder.in_memory();
    assert_eq!(get(&site, "/.well-known/security.txt").text(), "contact");
    assert_eq!(get(&site, "/.well-known").field("Location"), Some("/.well-known/"));
}

#[test]
fn h56_a_redirect_can_not_hold_a_line_end() {
    let folder = folder();
    folder.write("line\r\nSet-Cookie: a=b/index.html", "");
    let site = folder.in_memory();
    for target in ["/line%0d%0aSet-Cookie:%20a=b", "/evil%0d%0aX:y", "/evil%0aX:y"] {
        let response = get(&site, target);
        assert_eq!((response.status(), response.field("Location")), (400, None), "{target}");
    }
    let response = get(&site, "/evil?%0d%0aSet-Cookie:%20a=b");
    assert_eq!(response.field("Location"), Some("/evil/?%0d%0aSet-Cookie:%20a=b"));
    assert_eq!(response.field("Set-Cookie"), None);
}

#[test]
fn h57_h60_a_redirect_stays_on_this_site() {
    let folder = folder();
    let site = folder.in_memory();
    for target in ["//evil", "///evil", "/%65vil", "http://evil.example//evil", "http://evil.example/evil"] {
        let response = get(&site, target);
        assert_eq!((response.status(), response.field("Location")), (301, Some("/evil/")), "{target}");
        assert!(!response.head.contains("example") && !response.text().contains("example"));
    }
    for target in ["//evil/..", "//evil/%2e%2e", "/%2fevil", "/%2f%2fevil", "/%5cevil", "//%5cevil/%2e%2e"] {
        assert_eq!(get(&site, target).field("Location"), None, "{target}");
    }
}

#[test]
fn a_site_is_read_and_nothing_else() {
    let folder = folder();
    let site = folder.in_memory();
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE"] {
        for target in ["/", "/nothing"] {
            let response = ask(&site, method, target, &[]);
            assert_eq!(
                (response.status(), response.field("Allow")),
                (405, Some("GET, HEAD, OPTIONS")),
                "{method}"
            );
        }
    }
    for target in ["*", "/", "/nothing"] {
        let response = ask(&site, "OPTIONS", target, &[]);
        assert_eq!(
            (response.status(), response.field("Allow")),
            (204, Some("GET, HEAD, OPTIONS")),
            "{target}"
        );
        assert_eq!((response.field("Content-Length"), response.body.len()), (None, 0));
    }
}

#[test]
fn missing_paths_get_the_error_page_of_the_site() {
    let folder = folder();
    let site = folder.in_memory();
    let plain = get(&site, "/nothing");
    assert_eq!(plain.text(), "404 Not Found\n");
    assert_eq!(plain.field("Content-Type"), Some("text/plain; charset=utf-8"));

    folder.write("404.html", "<h1>lost");
    pass(Duration::from_secs(1));
    for target in ["/nothing", "/.git/config", "/nothing"] {
        let response = get(&site, target);
        assert_eq!((response.status(), response.text()), (404, "<h1>lost"), "{target}");
        assert_eq!(response.field("Content-Type"), Some("text/html; charset=utf-8"));
        assert_eq!(response.field("X-Content-Type-Options"), Some("nosniff"));
        assert_eq!((response.field("ETag"), response.field("Last-Modified")), (None, None));
    }
    let head = ask(&site, "HEAD", "/nothing", &[]);
    assert_eq!((head.status(), head.field("Content-Length"), head.body.len()), (404, Some("8"), 0));
    assert_eq!(ask(&site, "GET", "/nothing", &["Range: bytes=0-1", "If-None-Match: *"]).text(), "<h1>lost");
    assert_eq!(get(&site, "/404.html").status(), 200);
    assert_eq!(get(&folder.by_handle(), "/nothing"), get(&site, "/nothing"));

    folder.replace("404.html", "<h1>gone astray");
    assert_eq!(get_later(&site, "/nothing").text(), "<h1>gone astray");
}
