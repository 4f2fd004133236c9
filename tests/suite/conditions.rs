//! Conditional requests (RFC 9110 §13).

use tenfold_tests::cases;
use tenfold_tests::harness::Theme;
use tenfold_tests::server::Server;
use tenfold_tests::site::MODIFIED_DATE;
use tenfold_tests::wire::request;

pub(crate) const THEME: Theme = Theme {
    name: "conditions",
    cases: cases![
        Shared on SEMANTICS + ONE_TLS: not_modified_by_tag, not_modified_by_date,
            unchanged_files_keep_their_tag;
    ],
};

fn not_modified_by_tag(server: &Server) {
    let mut wire = server.connect();
    wire.get("/1k.html");
    let whole = wire.response();
    let tag = whole.need("ETag");
    let same = [tag.to_owned(), format!("W/{tag}"), format!("\"a\", {tag}, \"b\""), "*".to_owned()];
    for method in ["GET", "HEAD"] {
        for condition in &same {
            wire.send(request(method, "/1k.html", &[("If-None-Match", condition)]));
            let response = wire.head();
            assert_eq!(response.status, 304, "{method} If-None-Match: {condition}");
            assert_eq!(response.need("ETag"), tag, "{method} If-None-Match: {condition}");
            assert!(matches!(response.field("Content-Length"), None | Some("1024")), "{}", response.head);
        }
    }
    for condition in ["\"another\"", "W/\"another\"", "\"a\", \"b\""] {
        wire.send(request("GET", "/1k.html", &[("If-None-Match", condition)]));
        let response = wire.response();
        assert_eq!((response.status, response.body.len()), (200, 1024), "If-None-Match: {condition}");
    }
}

fn not_modified_by_date(server: &Server) {
    let mut wire = server.connect();
    let outcomes = [
        (MODIFIED_DATE, 304),
        ("Wed, 15 Nov 2023 22:13:20 GMT", 304),
        ("Mon, 13 Nov 2023 22:13:20 GMT", 200),
        ("yesterday", 200),
    ];
    for (date, status) in outcomes {
        wire.send(request("GET", "/1k.html", &[("If-Modified-Since", date)]));
        assert_eq!(wire.response().status, status, "If-Modified-Since: {date}");
    }
    let both = [("If-None-Match", "\"another\""), ("If-Modified-Since", MODIFIED_DATE)];
    wire.send(request("GET", "/1k.html", &both));
    assert_eq!(wire.response().status, 200, "a tag counts, and the date beside it does not");
}

fn unchanged_files_keep_their_tag(server: &Server) {
    let first = server.get("/16k.bin").need("ETag").to_owned();
    assert_eq!(server.get("/16k.bin").need("ETag"), first);
    assert_ne!(server.get("/1k.html").need("ETag"), first, "two files have two tags");
}
