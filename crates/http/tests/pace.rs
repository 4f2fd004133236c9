//! Timeouts and minimum rates, on a virtual clock: slow clients are served, stalled ones are not.

mod common;

use std::time::Duration;

use common::{GET, LARGE, SECOND, Site, limits, only_response, run, statuses};
use tenfold_http::script::Script;
use tenfold_http::{Finish, Limits, Next};

#[test]
fn a_silent_connection_is_closed_without_a_response() {
    let outcome = run(Script::new().blocking());
    assert_eq!((outcome.sent.len(), outcome.next), (0, Next::Close));
    assert_eq!(outcome.took, limits().head_timeout);
}

#[test]
fn h23_a_head_by_drops_is_408_at_an_absolute_deadline() {
    for gap in [SECOND / 10, SECOND, 9 * SECOND] {
        let head = format!("GET /a HTTP/1.1\r\nHost: here\r\nX: {}\r\n\r\n", "x".repeat(500));
        let outcome = run(Script::new().drips(head, gap));
        let response = only_response(&outcome.sent);
        assert_eq!((response.status, response.field("Connection")), (408, Some("close")));
        assert_eq!((outcome.next, outcome.finish), (Next::Linger, Some(Finish::Linger)));
        assert!(outcome.took <= gap + limits().head_timeout, "{:?}", outcome.took);
    }
}

#[test]
fn h23_empty_lines_by_drops_extend_nothing() {
    let outcome = run(Script::new().drips("\r\n".repeat(100), SECOND * 9));
    assert!(outcome.took <= 9 * SECOND + limits().head_timeout, "{:?}", outcome.took);
    assert_eq!(outcome.parked, 1);
}

#[test]
fn an_empty_line_that_nothing_follows_is_closed_without_a_word() {
    let outcome = run(Script::new().sends("\r\n"));
    assert_eq!((outcome.sent.len(), outcome.next), (0, Next::Close));
    assert_eq!(outcome.took, limits().head_timeout);
}

#[test]
fn a_head_that_cannot_become_valid_is_refused_before_its_end() {
    for begin in ["\r\n\r\n", "\n", "GET / HTTP/1.1\n", "GET / HTTP/1.1\r\nHost: a\n"] {
        let outcome = run(Script::new().sends(begin));
        assert_eq!((only_response(&outcome.sent).status, outcome.took), (400, Duration::ZERO), "{begin:?}");
    }
}

#[test]
fn a_malformed_request_line_is_refused_when_it_ends() {
    for (line, status) in [
        ("GET /x", 400),
        ("GET  / HTTP/1.1", 400),
        ("GET /a b HTTP/1.1", 400),
        ("G\"T / HTTP/1.1", 400),
        ("GET / HTTP/1.x", 400),
        ("GET / HTTP/2.0", 505),
        ("x", 400),
    ] {
        for begin in ["", "\r\n"] {
            let outcome = run(Script::new().drips(format!("{begin}{line}\r\n"), SECOND / 100));
            assert_eq!(only_response(&outcome.sent).status, status, "{line:?}");
            assert!(outcome.took < SECOND, "{line:?} took {:?}", outcome.took);
        }
    }
    let outcome = run(Script::new().drips("\r\nGET / HTTP/1.7\r\nHost: here\r\n\r\n", SECOND / 100));
    assert_eq!(only_response(&outcome.sent).status, 200);
}

#[test]
fn a_head_within_its_time_is_served_however_it_comes() {
    let outcome = run(Script::new().drips(GET, SECOND / 10));
    assert_eq!(statuses(&outcome.sent), [200]);
}

#[test]
fn the_deadline_of_a_head_begins_with_its_own_first_byte() {
    let script = Script::new().sends(GET).waits(60 * SECOND).sends("G").waits(9 * SECOND).sends(&GET[1..]);
    assert_eq!(statuses(&run(script).sent), [200, 200]);
    let script = Script::new().sends(GET).waits(60 * SECOND).sends("G").waits(11 * SECOND).sends(&GET[1..]);
    assert_eq!(statuses(&run(script).sent), [200, 408]);
    // The first head uses most of its time. The next one, which begins in the same bytes, has the full
    // timeout.
    let script = Script::new().sends("G").waits(9 * SECOND).sends(format!("{}G", &GET[1..]));
    let outcome = run(script.waits(9 * SECOND).sends(&GET[1..]));
    assert_eq!((statuses(&outcome.sent), outcome.parked), (vec![200, 200], 0));
    // The timeout of a partial head after the last request starts with the response.
    let script = Script::new().sends(format!("{GET}G")).waits(11 * SECOND).sends(&GET[1..]);
    assert_eq!(statuses(&run(script).sent), [200, 408]);
}

#[test]
fn a_blocking_connection_has_the_idle_timeout_of_a_parked_connection() {
    let outcome = run(Script::new().blocking().sends(GET).waits(74 * SECOND).sends(GET));
    assert_eq!(statuses(&outcome.sent), [200, 200]);
}

#[test]
fn h24_a_body_by_drops_is_given_up() {
    let request = "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 4000\r\n\r\n";
    let outcome = run(Script::new().sends(request).drips("x".repeat(4000), SECOND));
    assert_eq!((statuses(&outcome.sent), outcome.next), (vec![200], Next::Close));
    assert!(outcome.took <= limits().body_timeout, "{:?}", outcome.took);
}

/// A window shorter than a second also has a minimum of many bytes.
#[test]
fn h24_a_body_by_drops_is_given_up_after_a_short_window() {
    let window = SECOND * 3 / 10;
    let limits = Limits { body_timeout: window, ..limits() };
    let request = "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 4000\r\n\r\n";
    let script = Script::new().sends(request).drips("x".repeat(4000), SECOND / 100);
    let outcome = script.run(&Site::default(), &limits);
    assert_eq!((statuses(&outcome.sent), outcome.next), (vec![200], Next::Close));
    assert!(outcome.took <= window, "{:?}", outcome.took);
}

#[test]
fn h24_a_wanted_body_by_drops_is_408() {
    let fields = ["Content-Length: 2000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n7d0\r\n"];
    for fields in fields {
        let request = format!("POST /echo HTTP/1.1\r\nHost: a\r\n{fields}");
        let outcome = run(Script::new().sends(request).drips("x".repeat(1999), SECOND));
        let response = only_response(&outcome.sent);
        assert_eq!((response.status, response.field("Connection")), (408, Some("close")));
        assert_eq!((outcome.next, outcome.finish), (Next::Linger, Some(Finish::Linger)));
        assert!(outcome.took <= limits().body_timeout, "{:?}", outcome.took);
    }
}

#[test]
fn a_slow_and_steady_body_that_is_wanted_is_read() {
    let limits = Limits { min_rate: 10, ..limits() };
    let request = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n";
    let mut script = Script::new().sends(request);
    for _ in 0..160 {
        script = script.waits(SECOND).sends("x".repeat(12));
    }
    let outcome = script.sends("x".repeat(80)).sends(GET).run(&Site::default(), &limits);
    assert_eq!((statuses(&outcome.sent), outcome.took), (vec![200, 200], 160 * SECOND));
}

#[test]
fn a_slow_and_steady_body_is_read() {
    let limits = Limits { max_discard: 64 * 1024, ..limits() };
    let request = "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n";
    let mut script = Script::new().sends(request);
    for _ in 0..200 {
        script = script.waits(SECOND).sends("x".repeat(300));
    }
    let outcome = script.sends(GET).run(&Site::default(), &limits);
    assert_eq!((statuses(&outcome.sent), outcome.took), (vec![200, 200], 200 * SECOND));
}

#[test]
fn h25_a_reader_that_does_not_read_is_dropped_within_two_windows() {
    for (step, gap) in [(0, SECOND), (1, SECOND), (239, SECOND)] {
        let outcome = run(Script::new().sends("GET /large HTTP/1.1\r\nHost: a\r\n\r\n").takes(step, gap));
        assert_eq!((outcome.next, outcome.finish), (Next::Close, None), "{step} bytes a second");
        assert!(outcome.took <= 2 * limits().send_timeout, "{:?}", outcome.took);
    }
    // The client reads fast at first, and then stalls.
    let outcome =
        run(Script::new().sends("GET /large HTTP/1.1\r\nHost: a\r\n\r\n").takes(500_000, 100 * SECOND));
    assert_eq!(outcome.next, Next::Close);
}

#[test]
fn a_slow_and_steady_reader_gets_everything() {
    let script = Script::new().sends("GET /large HTTP/1.1\r\nHost: a\r\n\r\n").takes(300, SECOND);
    let outcome = run(script);
    assert_eq!(only_response(&outcome.sent).body.len() as u64, LARGE);
    assert!(outcome.took >= 3300 * SECOND, "{:?}", outcome.took);
}
