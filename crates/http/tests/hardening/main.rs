//! Attacks of a hostile or broken peer on the framing and the bounds of HTTP, by the numbers of
//! `docs/hardening.md`. Every refusal is sent, closes the connection, and nothing behind it is read.

#[path = "../common/mod.rs"]
mod common;

mod body;
mod bounds;
mod lines;
mod method;
mod target;

use common::{Response, Site, limits, only_response, responses};
use tenfold_http::script::{Outcome, Script};
use tenfold_http::{Finish, Limits, Next};

const BEHIND: &str = "GET /smuggled HTTP/1.1\r\nHost: here\r\n\r\n";

fn run(script: Script) -> Outcome {
    script.run(&Site::default(), &limits())
}

/// Sends `request` and another behind it; the first is refused with `status`, and the second never read.
#[track_caller]
fn refused_with(limits: &Limits, request: impl AsRef<[u8]>, status: u16) -> Response {
    let site = Site::default();
    let shown = request.as_ref().escape_ascii().to_string();
    let outcome = Script::new().sends([request.as_ref(), BEHIND.as_bytes()].concat()).run(&site, limits);
    let response = only_response(&outcome.sent);
    assert_eq!(response.status, status, "{shown}: {}", response.text());
    assert_eq!(response.field("Connection"), Some("close"), "{shown}");
    assert_eq!((outcome.next, outcome.finish), (Next::Linger, Some(Finish::Linger)), "{shown}");
    assert_eq!(*site.asked.lock().expect("no test panics there"), [""; 0], "{shown}");
    response
}

#[track_caller]
fn refused(request: impl AsRef<[u8]>, status: u16) -> Response {
    refused_with(&limits(), request, status)
}

/// Sends `request`; it is answered and the connection goes on. Returns the request as the server understood it.
#[track_caller]
fn understood(request: &str) -> String {
    let outcome = run(Script::new().sends(format!("{request}GET /next HTTP/1.1\r\nHost: a\r\n\r\n")));
    let found = responses(&outcome.sent);
    assert_eq!(found.len(), 2, "{request:?}: {}", found[0].text());
    assert_eq!(found[1].text(), "GET /next None host=a Empty\n");
    found[0].text().to_owned()
}

/// A POST with these fields.
fn post(fields: &str) -> String {
    format!("POST /a HTTP/1.1\r\nHost: here\r\n{fields}\r\n")
}

/// A GET with these lines behind its request line.
fn get(lines: impl AsRef<[u8]>) -> Vec<u8> {
    [b"GET /a HTTP/1.1\r\n", lines.as_ref(), b"\r\n"].concat()
}
