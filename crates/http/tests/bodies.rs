//! Request bodies: read for services that want them, otherwise discarded, and refused if malformed. The
//! numbers are those of `docs/internals/hardening.md`.

mod common;

use std::time::Duration;

use common::{
    BEHIND, ECHOED, SECOND, Site, limits, only_response, post, response_in, responses, run, statuses,
    understood,
};
use tenfold_http::script::{Outcome, Script};
use tenfold_http::{Finish, IoError, Limits, Next};

/// A request whose body is sent back.
fn echo_request(version: &str, fields: &str) -> String {
    format!("POST /echo HTTP/{version}\r\nHost: here\r\n{fields}\r\n")
}

/// Such a request, with the body `xyz` in chunks.
const CHUNKED: &str = "POST /echo HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n\
                       1;a=b\r\nx\r\n2\r\nyz\r\n0\r\nX: y\r\n\r\n";

/// Such a request, with the body `xyz` and a `Content-Length`.
const BY_LENGTH: &str = "POST /echo HTTP/1.9\r\nHost: here\r\nContent-Length: 3\r\n\r\nxyz";

#[test]
fn a_wanted_body_reaches_the_service() {
    for request in [CHUNKED, BY_LENGTH] {
        for path in ["/echo", "/echo/later"] {
            let request = request.replace("/echo", path);
            let outcome = run(Script::new().sends(format!("{request}{request}{BEHIND}")));
            let found = responses(&outcome.sent);
            assert_eq!(found.len(), 3);
            for response in &found[..2] {
                assert_eq!((&response.body[..], response.field("Connection")), (&b"xyz"[..], None));
            }
            assert_eq!(found[2].text(), "GET /smuggled None host=here Empty\n");
            assert_eq!((outcome.session.requests(), outcome.next), (3, Next::Park(rests_until(&outcome))));
        }
    }
}

/// When a connection that becomes idle now is closed.
fn rests_until(outcome: &Outcome) -> tenfold_http::Instant {
    tenfold_http::script::BEGIN + outcome.took + limits().idle_timeout
}

#[test]
fn every_split_of_a_body_gives_the_same_bytes() {
    for request in [CHUNKED, BY_LENGTH] {
        let request = format!("{request}{BEHIND}");
        let whole = run(Script::new().sends(&request)).sent;
        assert_eq!(statuses(&whole), [200, 200]);
        for at in 1..request.len() {
            let (begin, end) = request.split_at(at);
            assert_eq!(run(Script::new().sends(begin).sends(end)).sent, whole, "split at {at}");
            let outcome =
                run(Script::new().blocking().pausing().sends(begin).waits(SECOND / 2).sends(end).ends());
            assert_eq!(statuses(&outcome.sent), [200, 200], "split at {at}");
        }
        assert_eq!(run(Script::new().drips(&request, Duration::ZERO)).sent, whole);
    }
}

#[test]
fn a_body_that_nobody_sends_is_empty_and_needs_no_wait() {
    let requests = "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n".repeat(16);
    let outcome = run(Script::new().sends(requests));
    assert_eq!(responses(&outcome.sent).iter().map(|found| found.body.len()).sum::<usize>(), 0);
    assert_eq!((outcome.receives, outcome.flushes), (1, 1));
}

#[test]
fn every_method_has_a_body_and_the_response_to_head_has_no_body() {
    for method in ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        let outcome = run(Script::new().sends(BY_LENGTH.replace("POST", method)));
        let response = only_response(&outcome.sent);
        assert_eq!((response.status, &response.body[..]), (200, &b"xyz"[..]), "{method}");
        assert_eq!(response.field("Content-Type"), Some("application/octet-stream"));
    }
    let outcome = run(Script::new().sends(CHUNKED.replace("POST", "HEAD")));
    let (response, rest) = response_in(&outcome.sent, false);
    assert_eq!((response.field("Content-Length"), rest.len()), (Some("3"), 0));
}

#[test]
fn the_connection_field_is_decided_after_the_body() {
    let close = CHUNKED.replace("Host: here", "Host: here\r\nConnection: close");
    let outcome = run(Script::new().sends(&close));
    assert_eq!(only_response(&outcome.sent).field("Connection"), Some("close"));
    assert_eq!(outcome.next, Next::Close);
    let outcome = run(Script::new().sends(format!("{close}{BEHIND}")));
    assert_eq!((statuses(&outcome.sent), outcome.next), (vec![200], Next::Linger));
    // The server begins to drain while the body arrives.
    let (begin, end) = CHUNKED.split_at(CHUNKED.len() - 10);
    let outcome = run(Script::new().sends(begin).waits(SECOND).drains().sends(end).sends(BEHIND));
    assert_eq!(only_response(&outcome.sent).field("Connection"), Some("close"));
    assert_eq!(outcome.next, Next::Linger);
    let limits = Limits { requests_per_connection: Some(1), ..limits() };
    let outcome = Script::new().sends(format!("{CHUNKED}{BEHIND}")).run(&Site::default(), &limits);
    assert_eq!(
        (only_response(&outcome.sent).field("Connection"), outcome.next),
        (Some("close"), Next::Linger)
    );
    // This body is longer than the server would discard, but the service wants it.
    let long = "x".repeat(1000);
    let request = format!("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{long}{BEHIND}");
    let narrow = Limits { max_discard: 10, ..limits };
    let outcome = Script::new()
        .sends(request)
        .run(&Site::default(), &Limits { requests_per_connection: None, ..narrow });
    assert_eq!(statuses(&outcome.sent), [200, 200]);
}

#[test]
fn a_failure_at_any_operation_of_a_body_ends_the_connection() {
    for request in [CHUNKED.replace("/echo", "/echo/later"), CHUNKED.replace("/echo", "/b")] {
        let script =
            || Script::new().sends(&request[..70]).waits(SECOND).sends(&request[70..]).waits(SECOND).resets();
        let plain = run(script());
        assert_eq!((statuses(&plain.sent), plain.next), (vec![200], Next::Close));
        for at in 0..plain.operations {
            for error in [IoError::Gone, IoError::System(5)] {
                assert_eq!(run(script().failing_at(at, error)).next, Next::Close, "{error:?} at {at}");
            }
            let outcome = run(script().failing_at(at, IoError::TimedOut));
            assert!(matches!(outcome.next, Next::Close | Next::Linger), "at {at}");
            assert_eq!(run(script().pausing_at(at)).sent, plain.sent, "a pause at {at}");
        }
    }
}

/// Malformed chunked bodies.
const MALFORMED_CHUNKS: [&str; 23] = [
    "\r\n",
    "-1\r\nx\r\n0\r\n\r\n",
    "+1\r\nx\r\n0\r\n\r\n",
    "0x1\r\nx\r\n0\r\n\r\n",
    "1_0\r\n0123456789abcdef\r\n0\r\n\r\n",
    " 1\r\nx\r\n0\r\n\r\n",
    "1 \r\nx\r\n0\r\n\r\n",
    "g\r\n",
    "8000000000000000\r\nx",
    "ffffffffffffffff\r\nx",
    "10000000000000000\r\nx",
    "1\nx\r\n0\r\n\r\n",
    "1\r\nx\n0\r\n\r\n",
    "1\r\nx\r\n0\n\r\n",
    "1\r\nx\r\n0\r\n\n",
    "1\r\nx0\r\n\r\n",
    "1\r\nxy\r\n0\r\n\r\n",
    "1;a\nx\r\n0\r\n\r\n",
    "1;a\rb\r\nx\r\n0\r\n\r\n",
    "1;a=\0\r\nx\r\n0\r\n\r\n",
    "0\r\nX : y\r\n\r\n",
    "0\r\nX: y\n\r\n",
    "0\r\n X: y\r\n\r\n",
];

#[test]
fn h08_h11_malformed_chunks_of_a_needed_body_are_refused() {
    for chunks in MALFORMED_CHUNKS {
        let site = Site::default();
        let request = "POST /echo HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n";
        let outcome = Script::new().sends(format!("{request}{chunks}{BEHIND}")).run(&site, &limits());
        let response = only_response(&outcome.sent);
        assert_eq!((response.status, response.field("Connection")), (400, Some("close")), "{chunks:?}");
        assert_eq!((outcome.next, outcome.finish), (Next::Linger, Some(Finish::Linger)), "{chunks:?}");
        assert_eq!(*site.asked.lock().expect("no test panics there"), ["/echo"], "{chunks:?}");
    }
}

#[test]
fn h08_h11_malformed_chunks_of_a_discarded_body_end_the_connection_after_the_response() {
    for chunks in MALFORMED_CHUNKS {
        let site = Site::default();
        let request = post("Transfer-Encoding: chunked\r\n");
        let outcome = Script::new().sends(format!("{request}{chunks}{BEHIND}")).run(&site, &limits());
        assert_eq!(only_response(&outcome.sent).text(), "POST /a None host=here Streamed\n");
        assert_eq!((outcome.next, outcome.finish), (Next::Linger, Some(Finish::Linger)), "{chunks:?}");
        assert_eq!(*site.asked.lock().expect("no test panics there"), ["/a"], "{chunks:?}");
    }
}

#[test]
fn h12_extensions_and_trailers_are_dropped_and_bounded() {
    let request = "POST /echo HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n";
    let ask = |chunks: &str| {
        let outcome = run(Script::new().sends(format!("{request}{chunks}{BEHIND}")));
        responses(&outcome.sent).into_iter().map(|found| (found.status, found.body)).collect::<Vec<_>>()
    };
    let next = (200, b"GET /smuggled None host=here Empty\n".to_vec());
    let chunks = "3;a=\"b\"\r\nxyz\r\n0;c\r\nHost: evil\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(ask(chunks), [(200, b"xyz".to_vec()), next.clone()]);
    let bound = limits().max_head;
    for chunks in [
        |count: usize| format!("0;{}\r\n\r\n", "x".repeat(count - 1)),
        |count: usize| format!("0\r\nX:{}\r\n\r\n", "x".repeat(count - 4)),
        |count: usize| {
            let before = count / 2 - 1;
            let last = "x".repeat(count - 2 * before - 1);
            format!("{}0;{last}\r\n\r\n", "1;x\r\nx\r\n".repeat(before))
        },
    ] {
        assert_eq!(ask(&chunks(bound))[1], next);
        let found = ask(&chunks(bound + 1));
        assert_eq!((found.len(), found[0].0), (1, 431));
    }
}

#[test]
fn h15_a_body_that_nobody_reads_is_read_away_up_to_a_bound() {
    let bound = limits().max_discard as usize;
    let request = |length: usize| post(&format!("Content-Length: {length}\r\n")) + &"x".repeat(length);
    assert_eq!(understood(&request(bound)), format!("POST /a None host=here Length({bound})\n"));
    let site = Site::default();
    let outcome = Script::new().sends(request(bound + 1) + BEHIND).run(&site, &limits());
    assert_eq!(only_response(&outcome.sent).field("Connection"), Some("close"));
    assert_eq!((outcome.next, outcome.finish), (Next::Linger, Some(Finish::Linger)));
    assert_eq!(*site.asked.lock().expect("no test panics there"), ["/a"]);
}

#[test]
fn h15_chunks_that_nobody_reads_are_read_away_up_to_a_bound() {
    let bound = limits().max_discard as usize;
    // A request whose body has `length` bytes, including the chunk size lines.
    let request = |length: usize| {
        let size = length - "0000\r\n\r\n0\r\n\r\n".len();
        let chunks = format!("{size:04x}\r\n{}\r\n0\r\n\r\n", "x".repeat(size));
        post("Transfer-Encoding: chunked\r\n") + &chunks
    };
    for length in [20, 1000, bound] {
        assert_eq!(understood(&request(length)), "POST /a None host=here Streamed\n");
    }
    assert_eq!(
        understood(&(post("Transfer-Encoding: chunked\r\n") + "0\r\n\r\n")),
        "POST /a None host=here Streamed\n"
    );
    for length in [bound + 1, 2 * bound, 100 * bound] {
        let site = Site::default();
        let outcome = Script::new().sends(request(length) + BEHIND).run(&site, &limits());
        assert_eq!(only_response(&outcome.sent).status, 200);
        assert_eq!((outcome.next, outcome.finish), (Next::Linger, Some(Finish::Linger)));
        assert_eq!(*site.asked.lock().expect("no test panics there"), ["/a"]);
    }
}

#[test]
fn h15_a_body_past_the_bound_of_the_service_is_413_and_later_bytes_are_not_read() {
    let bound = ECHOED as usize;
    let by_length = |length: usize| format!("Content-Length: {length}\r\n\r\n{}", "x".repeat(length));
    let by_chunks = |length: usize| {
        format!("Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(length))
    };
    let by_drops =
        |length: usize| format!("Transfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n", "1\r\nx\r\n".repeat(length));
    let ask = |body: String, limits: &Limits| {
        let site = Site::default();
        let request = format!("POST /echo HTTP/1.1\r\nHost: here\r\n{body}{BEHIND}");
        let outcome = Script::new().sends(request).run(&site, limits);
        (statuses(&outcome.sent), outcome.next, site.asked.into_inner().expect("no test panics there").len())
    };
    let narrow = Limits { max_body: 100, ..limits() };
    for (bound, limits) in [(bound, limits()), (100, narrow)] {
        for body in [by_length, by_chunks, by_drops] {
            let (found, next, asked) = ask(body(bound), &limits);
            assert!(
                matches!((&found[..], next, asked), ([200, 200], Next::Park(_), 3)),
                "{found:?} {next:?}"
            );
            assert_eq!(ask(body(bound + 1), &limits), (vec![413], Next::Linger, 1));
        }
    }
}

#[test]
fn h19_a_client_that_waits_for_100_continue_gets_it_if_the_body_is_needed() {
    const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
    for (fields, body) in
        [("Content-Length: 3\r\n", "xyz"), ("Transfer-Encoding: chunked\r\n", "3\r\nxyz\r\n0\r\n\r\n")]
    {
        let expecting = format!("{fields}Expect: 100-continue\r\n");
        let request = echo_request("1.1", &expecting);
        let outcome = run(Script::new().sends(&request).waits(SECOND).sends(body).sends(BEHIND));
        let rest = outcome.sent.strip_prefix(CONTINUE).expect("100 Continue comes first");
        let found = responses(rest);
        assert_eq!((found.len(), &found[0].body[..]), (2, &b"xyz"[..]));
        assert_eq!(found[0].field("Connection"), None);
        // 100 Continue is sent before any byte of the body arrives.
        let outcome = run(Script::new().sends(&request).waits(SECOND).resets());
        assert_eq!(outcome.sent, CONTINUE);
        // It is not sent if the client did not wait for it.
        let outcome = run(Script::new().sends(format!("{request}{body}{BEHIND}")));
        assert_eq!(statuses(&outcome.sent), [200, 200]);
        // It is not sent if the client does not expect it.
        let outcome = run(Script::new().sends(echo_request("1.1", fields)).waits(SECOND).sends(body));
        assert_eq!(statuses(&outcome.sent), [200]);
    }
    // It is not sent to HTTP/1.0 clients, and not if the body is empty or too long.
    let expecting = |length: u64| format!("Content-Length: {length}\r\nExpect: 100-continue\r\n");
    let outcome = run(Script::new().sends(echo_request("1.0", &expecting(1))).waits(SECOND).sends("x"));
    assert_eq!(only_response(&outcome.sent).body, b"x");
    let outcome = run(Script::new().sends(echo_request("1.1", &expecting(0))));
    assert_eq!(only_response(&outcome.sent).body, b"");
    let outcome = run(Script::new().sends(echo_request("1.1", &expecting(ECHOED + 1))));
    assert_eq!((only_response(&outcome.sent).status, outcome.next), (413, Next::Linger));
}

#[test]
fn h19_an_expectation_may_be_answered_with_the_final_status() {
    for (fields, body) in
        [("Content-Length: 3\r\n", "xyz"), ("Transfer-Encoding: chunked\r\n", "3\r\nxyz\r\n0\r\n\r\n")]
    {
        let request = post(&format!("Expect: 100-Continue\r\n{fields}"));
        // The server cannot know whether the client sends its body anyway, so it reads no further.
        let outcome = run(Script::new().sends(format!("{request}{body}{BEHIND}")));
        let response = only_response(&outcome.sent);
        assert_eq!((response.status, response.field("Connection")), (200, Some("close")));
        assert_eq!(outcome.next, Next::Linger);
    }
    assert_eq!(understood(&post("Expect: 100-continue\r\n")), "POST /a None host=here Empty\n");
    // HTTP/1.0 has no expectations, so the field is ignored.
    let outcome = run(Script::new().sends("GET /a HTTP/1.0\r\nExpect: wonders\r\n\r\n"));
    assert_eq!(only_response(&outcome.sent).status, 200);
}

#[test]
fn h26_a_peer_that_ends_in_the_middle_is_let_go() {
    let request = post("Content-Length: 10\r\n") + "12345";
    let outcome = run(Script::new().sends(&request).ends());
    assert_eq!((statuses(&outcome.sent), outcome.next), (vec![200], Next::Close));
    for at in 1..request.find("12345").expect("the body is there") {
        let outcome = run(Script::new().sends(&request[..at]).ends());
        assert_eq!((outcome.sent.len(), outcome.next), (0, Next::Close), "an end at {at}");
    }
}

#[test]
fn h26_a_peer_that_ends_in_the_middle_of_a_wanted_body_is_let_go() {
    for request in [
        echo_request("1.1", "Content-Length: 10\r\n") + "123456789",
        echo_request("1.1", "Transfer-Encoding: chunked\r\n") + "3;a=b\r\nxyz\r\n0\r\nX: y\r\n\r",
    ] {
        for at in request.find("\r\n\r\n").expect("a head") + 4..=request.len() {
            let outcome = run(Script::new().sends(&request[..at]).ends());
            assert_eq!((outcome.sent.len(), outcome.next), (0, Next::Close), "an end at {at}");
            let outcome = run(Script::new().sends(&request[..at]).resets());
            assert_eq!((outcome.sent.len(), outcome.next), (0, Next::Close), "a reset at {at}");
        }
    }
}
