//! The life of a connection: its persistence, its end, and the order of its output.

mod common;

use std::time::Duration;

use common::{
    GET, Gate, LARGE, SECOND, SHARED, Site, limits, only_response, response_in, responses, run, statuses,
};
use tenfold_http::script::Script;
use tenfold_http::{Finish, IoError, Limits, Next};

#[test]
fn an_answer_parks_the_connection_with_its_idle_deadline() {
    let outcome = run(Script::new().sends(GET));
    assert_eq!(only_response(&outcome.sent).text(), "GET /a None host=here Empty\n");
    assert_eq!(outcome.next, Next::Park(tenfold_http::script::BEGIN + limits().idle_timeout));
    assert_eq!(outcome.session.requests(), 1);
    assert_eq!(outcome.finish, None);
}

#[test]
fn a_parked_connection_is_taken_up_with_its_session() {
    let outcome = run(Script::new().sends(GET).waits(SECOND).sends(GET).waits(SECOND).sends(GET));
    assert_eq!(statuses(&outcome.sent), [200, 200, 200]);
    assert_eq!((outcome.session.requests(), outcome.parked), (3, 2));
}

#[test]
fn a_blocking_driver_needs_no_parking() {
    let outcome = run(Script::new().blocking().sends(GET).waits(SECOND).sends(GET).ends());
    assert_eq!(statuses(&outcome.sent), [200, 200]);
}

#[test]
fn nothing_that_is_parked_waits_past_its_deadline() {
    let outcome = run(Script::new().sends(GET).waits(76 * SECOND).sends(GET));
    assert_eq!(statuses(&outcome.sent), [200]);
    assert!(matches!(outcome.next, Next::Park(_)));
}

#[test]
fn every_split_of_a_request_gives_the_same_bytes() {
    let request = "\r\nPOST /b?c=d HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\nX: y z\r\n\r\nabc";
    let whole = run(Script::new().sends(request)).sent;
    assert_eq!(only_response(&whole).text(), "POST /b Some(\"c=d\") host=here Length(3)\n");
    for at in 0..=request.len() {
        let (begin, end) = request.split_at(at);
        assert_eq!(run(Script::new().sends(begin).sends(end)).sent, whole, "split at {at}");
        assert_eq!(run(Script::new().sends(begin).waits(SECOND / 2).sends(end)).sent.len(), whole.len());
    }
}

#[test]
fn every_split_of_something_malformed_is_refused_alike() {
    for request in [
        "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\n\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\r\n\r\n",
        "GET / HTTP/1.1\r\n\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\n\nGET / HTTP/1.1\r\n\r\n",
    ] {
        let whole = run(Script::new().sends(request)).sent;
        assert_eq!(only_response(&whole).status, 400, "{request:?}");
        for at in 1..request.len() {
            let (begin, end) = request.split_at(at);
            let sent = run(Script::new().sends(begin).sends(end)).sent;
            assert_eq!(
                String::from_utf8_lossy(&sent),
                String::from_utf8_lossy(&whole),
                "{begin:?} and {end:?}"
            );
        }
    }
}

#[test]
fn pauses_of_the_driver_change_nothing() {
    let request =
        "GET /large HTTP/1.1\r\nHost: a\r\n\r\nGET /soon HTTP/1.1\r\nHost: a\r\n\r\nGET /a HTTP/1.0\r\n\r\n";
    let script = || Script::new().sends(&request[..10]).waits(SECOND).sends(&request[10..]);
    let plain = run(script());
    assert_eq!(plain.next, Next::Close);
    assert_eq!(run(script().pausing()).sent, plain.sent);
    for at in 0..plain.operations {
        let outcome = run(script().pausing_at(at));
        assert_eq!((outcome.sent, outcome.next), (plain.sent.clone(), Next::Close), "a pause at {at}");
    }
}

#[test]
fn a_failure_at_any_operation_ends_the_connection() {
    let request = "GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /never HTTP/1.1\r\nHost: a\r\n\r\n";
    let script =
        || Script::new().sends(&request[..10]).waits(SECOND).sends(&request[10..]).waits(SECOND).resets();
    let operations = run(script()).operations;
    for at in 0..operations {
        for error in [IoError::Gone, IoError::Truncated, IoError::System(5)] {
            assert_eq!(run(script().failing_at(at, error)).next, Next::Close, "{error:?} at {at}");
        }
    }
}

#[test]
fn a_deadline_that_passes_at_any_operation_ends_the_connection_or_is_renewed() {
    let request = "GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /never HTTP/1.1\r\nHost: a\r\n\r\n";
    let script = || Script::new().blocking().sends(&request[..10]).waits(SECOND).sends(&request[10..]);
    for at in 0..run(script()).operations {
        let outcome = run(script().failing_at(at, IoError::TimedOut));
        assert!(matches!(outcome.next, Next::Close | Next::Linger), "at {at}");
        assert!(statuses(&outcome.sent).iter().all(|status| [200, 408, 503].contains(status)), "at {at}");
    }
}

#[test]
fn sixteen_pipelined_requests_leave_in_one_flush_in_order() {
    let requests: String = (0..16).map(|n| format!("GET /{n} HTTP/1.1\r\nHost: here\r\n\r\n")).collect();
    let outcome = run(Script::new().sends(requests));
    let texts: Vec<String> =
        responses(&outcome.sent).iter().map(|response| response.text().to_owned()).collect();
    let expected: Vec<String> = (0..16).map(|n| format!("GET /{n} None host=here Empty\n")).collect();
    assert_eq!(texts, expected);
    assert_eq!((outcome.receives, outcome.flushes), (1, 1));
}

#[test]
fn output_of_every_kind_leaves_in_order_however_it_is_taken() {
    let paths = ["/a", "/shared", "/large", "/later", "/shared", "/soon", "/a"];
    let requests: String =
        paths.iter().map(|path| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
    for (step, gap) in [(usize::MAX, Duration::ZERO), (1000, Duration::ZERO), (70_000, SECOND)] {
        let site = Site::default();
        site.gate.keep();
        let outcome = Script::new().takes(step, gap).sends(&requests).run(&site, &limits());
        let found = responses(&outcome.sent);
        assert_eq!(found.len(), paths.len());
        assert_eq!(found[1].body, SHARED);
        assert_eq!(found[2].body.len() as u64, LARGE);
        assert!(found[2].body.iter().enumerate().all(|(at, &byte)| byte == (at % 251) as u8));
        assert_eq!(found[3].text(), "later\n");
        assert_eq!(found[4].body, SHARED);
    }
}

#[test]
fn version_and_connection_field_decide_persistence() {
    let goes_on = |line: &str, field: &str| {
        let outcome = run(Script::new().sends(format!("GET /a {line}\r\nHost: a\r\n{field}\r\n")));
        let response = only_response(&outcome.sent);
        let connection = response.field("Connection").map(str::to_owned);
        let goes_on = matches!(outcome.next, Next::Park(_));
        assert_eq!(connection.as_deref() != Some("close"), goes_on, "{line} {field}");
        (goes_on, connection.unwrap_or_default())
    };
    let (says_nothing, alive, close) = (String::new(), "keep-alive".to_owned(), "close".to_owned());
    assert_eq!(goes_on("HTTP/1.1", ""), (true, says_nothing.clone()));
    assert_eq!(goes_on("HTTP/1.1", "Connection: keep-alive\r\n"), (true, says_nothing.clone()));
    assert_eq!(goes_on("HTTP/1.1", "Connection: upgrade\r\n"), (true, says_nothing));
    assert_eq!(goes_on("HTTP/1.1", "Connection: close\r\n"), (false, close.clone()));
    assert_eq!(goes_on("HTTP/1.1", "Connection: x, Close ,y\r\n"), (false, close.clone()));
    assert_eq!(
        goes_on("HTTP/1.1", "Connection: keep-alive\r\nConnection: close\r\n"),
        (false, close.clone())
    );
    assert_eq!(goes_on("HTTP/1.0", ""), (false, close.clone()));
    assert_eq!(goes_on("HTTP/1.0", "Connection: Keep-Alive\r\n"), (true, alive));
    assert_eq!(goes_on("HTTP/1.0", "Connection: keep-alive, close\r\n"), (false, close));
}

#[test]
fn bytes_after_the_last_request_are_not_read() {
    let site = Site::default();
    let last = "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let outcome = Script::new().sends(format!("{GET}{last}{GET}")).run(&site, &limits());
    assert_eq!(statuses(&outcome.sent), [200, 200]);
    assert_eq!(*site.asked.lock().expect("no panic"), ["/a", "/last"]);
    // The client may still be sending: closing now would reset the connection and lose the response.
    assert_eq!((outcome.next, outcome.finish), (Next::Linger, Some(Finish::Linger)));
}

#[test]
fn a_client_that_asks_to_close_is_closed_immediately() {
    let outcome = run(Script::new().sends("GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    assert_eq!((outcome.next, outcome.finish), (Next::Close, Some(Finish::Close)));
}

#[test]
fn a_service_may_end_the_connection() {
    let outcome = run(Script::new().sends("GET /close HTTP/1.1\r\nHost: a\r\n\r\n").sends(GET));
    assert_eq!(statuses(&outcome.sent), [200]);
    assert_eq!((outcome.next, outcome.finish), (Next::Linger, Some(Finish::Linger)));
}

#[test]
fn the_bound_on_requests_is_exact_and_announced() {
    let limits = Limits { requests_per_connection: Some(2), ..limits() };
    let outcome = Script::new().sends(format!("{GET}{GET}{GET}")).run(&Site::default(), &limits);
    let found = responses(&outcome.sent);
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].field("Connection"), found[1].field("Connection")), (None, Some("close")));
    assert_eq!(outcome.next, Next::Linger);
    // The bound counts requests before and after parking.
    let outcome = Script::new().sends(GET).waits(SECOND).sends(GET).sends(GET).run(&Site::default(), &limits);
    assert_eq!((statuses(&outcome.sent), outcome.next), (vec![200, 200], Next::Linger));
}

#[test]
fn a_draining_server_closes_the_connection_with_its_next_response() {
    let outcome = run(Script::new().sends(GET).waits(SECOND).drains().sends(GET).sends(GET));
    let found = responses(&outcome.sent);
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].field("Connection"), found[1].field("Connection")), (None, Some("close")));
    assert_eq!(outcome.next, Next::Linger);
}

#[test]
fn a_server_that_leaves_does_not_park() {
    let site = Site::default();
    let promise = site.gate.clone();
    let request = "GET /later HTTP/1.1\r\nHost: a\r\n\r\n";
    let script = Script::new().sends(request).waits(SECOND).drains().meanwhile(move || promise.keep());
    let outcome = script.run(&site, &limits());
    assert_eq!((statuses(&outcome.sent), outcome.next), (vec![200], Next::Close));
}

#[test]
fn an_end_between_requests_is_a_close() {
    let outcome = run(Script::new().sends(GET).ends());
    assert_eq!((statuses(&outcome.sent), outcome.next), (vec![200], Next::Close));
    let outcome = run(Script::new().ends());
    assert_eq!((outcome.sent.len(), outcome.next), (0, Next::Close));
}

#[test]
fn a_request_before_the_end_of_input_is_answered() {
    let outcome =
        run(Script::new().sends("GET /large HTTP/1.1\r\nHost: a\r\n\r\n").ends().takes(1000, SECOND / 100));
    assert_eq!(only_response(&outcome.sent).body.len() as u64, LARGE);
}

#[test]
fn a_peer_that_goes_at_any_byte_of_an_answer_is_let_go() {
    let requests =
        "GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /shared HTTP/1.1\r\nHost: a\r\n\r\n".to_owned() + GET;
    let whole = run(Script::new().sends(&requests)).sent.len();
    for count in 0..whole {
        let outcome = run(Script::new().sends(&requests).gone_after(count));
        assert_eq!((outcome.sent.len(), outcome.next), (count, Next::Close));
    }
}

#[test]
fn a_file_that_shrinks_closes_the_connection_without_padding() {
    let script = Script::new().sends("GET /large HTTP/1.1\r\nHost: a\r\n\r\n").sends(GET);
    let outcome = run(script.reading_files_with(|_, range, to| {
        to.extend(range.take(1234).map(|_| b'x'));
        if to.len() > 2000 { Err(IoError::Truncated) } else { Ok(()) }
    }));
    assert_eq!(outcome.next, Next::Close);
    assert!((outcome.sent.len() as u64) < LARGE);
}

#[test]
fn an_answer_to_head_has_the_length_and_no_body() {
    let outcome = run(Script::new().sends("HEAD /large HTTP/1.1\r\nHost: a\r\n\r\n"));
    let (response, rest) = response_in(&outcome.sent, false);
    assert_eq!((response.field("Content-Length"), rest.len()), (Some("1000000"), 0));
}

#[test]
fn a_body_within_the_bound_is_read_away_and_the_connection_goes_on() {
    let request = |length: usize| {
        let body = "x".repeat(length);
        format!("POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}{GET}")
    };
    let bound = limits().max_discard as usize;
    for length in [1, 1000, bound - 1, bound] {
        let outcome = run(Script::new().sends(request(length)));
        assert_eq!(statuses(&outcome.sent), [200, 200], "{length}");
        let bytes = request(length);
        let (begin, end) = bytes.split_at(bytes.len() / 2);
        let outcome = run(Script::new().sends(begin).waits(SECOND).sends(end));
        assert_eq!(statuses(&outcome.sent), [200, 200], "{length}");
    }
    let outcome = run(Script::new().sends(request(bound + 1)));
    assert_eq!(only_response(&outcome.sent).field("Connection"), Some("close"));
    assert_eq!(outcome.next, Next::Linger);
}

#[test]
fn an_answer_that_comes_later_is_waited_for() {
    let site = Site::default();
    let promise = site.gate.clone();
    let requests = format!("{GET}GET /later HTTP/1.1\r\nHost: a\r\n\r\n{GET}");
    let script = Script::new().sends(requests).waits(5 * SECOND).meanwhile(move || promise.keep());
    let outcome = script.run(&site, &limits());
    let found = responses(&outcome.sent);
    assert_eq!(found.iter().map(|response| response.status).collect::<Vec<_>>(), [200, 200, 200]);
    assert_eq!(found[1].text(), "later\n");
    assert_eq!(outcome.took, 5 * SECOND);
    // Responses are sent in the order of their requests.
    assert_eq!(outcome.flushes, 3);
}

#[test]
fn an_answer_that_does_not_come_in_time_is_503() {
    let outcome = run(Script::new().sends("GET /never HTTP/1.1\r\nHost: a\r\n\r\n").sends(GET));
    let response = only_response(&outcome.sent);
    assert_eq!((response.status, response.field("Connection")), (503, Some("close")));
    assert_eq!((outcome.took, outcome.next), (limits().later_timeout, Next::Linger));
    let whole = outcome.sent;
    let outcome = run(Script::new().sends("HEAD /never HTTP/1.1\r\nHost: a\r\n\r\n").sends(GET));
    assert!(outcome.sent.ends_with(b"\r\n\r\n") && whole.starts_with(&outcome.sent), "it has a body");
}

#[test]
fn a_peer_that_goes_away_cancels_the_answer_it_waits_for() {
    let site = Site::default();
    let cancelled: Gate = site.gate.clone();
    let script = Script::new().sends("GET /never HTTP/1.1\r\nHost: a\r\n\r\n").waits(SECOND).resets();
    let outcome = script.run(&site, &limits());
    assert!(cancelled.is_kept(), "the future was not dropped");
    assert_eq!((outcome.sent.len(), outcome.next, outcome.took), (0, Next::Close, SECOND));
}

#[test]
fn a_peer_that_only_ended_its_output_still_waits() {
    let site = Site::default();
    let promise = site.gate.clone();
    let script = Script::new().sends("GET /later HTTP/1.1\r\nHost: a\r\n\r\n").ends().waits(SECOND);
    let outcome = script.meanwhile(move || promise.keep()).run(&site, &limits());
    assert_eq!(only_response(&outcome.sent).text(), "later\n");
}
