//! Attacks by a hostile or broken client on framing and bounds. The numbers are those of
//! `docs/internals/hardening.md`. Each refusal is sent and closes the connection, and nothing after it is
//! read.

#[path = "../common/mod.rs"]
mod common;

mod body;
mod bounds;
mod lines;
mod method;
mod target;

use common::{BEHIND, Response, Site, limits, only_response, post, run, understood};
use tenfold_http::script::Script;
use tenfold_http::{Finish, Limits, Next};

/// Sends `request` followed by another. The first must be refused with `status`, and the second must not be
/// read.
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

/// Sends each request in a connection of its own.
#[track_caller]
fn all_refused<R: AsRef<[u8]>>(requests: impl IntoIterator<Item = R>, status: u16) {
    for request in requests {
        refused(request, status);
    }
}

/// A GET request with these header lines.
fn get(lines: impl AsRef<[u8]>) -> Vec<u8> {
    [b"GET /a HTTP/1.1\r\n", lines.as_ref(), b"\r\n"].concat()
}
