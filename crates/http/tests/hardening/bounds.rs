//! Bounds, and input that is too long, too short, or sent byte by byte.

use std::sync::Arc;
use std::time::Duration;

use tenfold_http::script::Script;
use tenfold_http::{Limits, Next, Out, Part};

use crate::common::{Site, limits, only_response, responses, statuses};
use crate::{all_refused, post, refused, refused_with, run, understood};

#[test]
fn h17_a_thousand_pipelined_requests_are_answered_in_order_in_bounded_memory() {
    let requests: String = (0..1000).map(|n| format!("GET /{n} HTTP/1.1\r\nHost: here\r\n\r\n")).collect();
    for script in [Script::new(), Script::new().takes(100, Duration::ZERO)] {
        let outcome = script.sends(&requests).run(&Site::default(), &limits());
        let found = responses(&outcome.sent);
        assert_eq!(found.len(), 1000);
        for (n, response) in found.iter().enumerate() {
            assert_eq!(response.text(), format!("GET /{n} None host=here Empty\n"));
        }
        assert!(outcome.most_to_send < Out::MEMORY_BOUND as u64 + 1000, "{} bytes", outcome.most_to_send);
    }
}

#[test]
fn h17_output_that_is_full_waits_for_a_flush() {
    let requests = "GET /shared HTTP/1.1\r\nHost: here\r\n\r\n".repeat(1000);
    // All requests arrive together: the bound on a head does not limit the bytes after it.
    let limits = Limits { max_head: 1 << 20, ..limits() };
    let outcome = Script::new().sends(&requests).run(&Site::default(), &limits);
    assert_eq!(statuses(&outcome.sent).len(), 1000);
    assert_eq!(outcome.receives, 1);
    assert!(outcome.flushes >= 1000 / Out::PARTS_BOUND, "{} flushes", outcome.flushes);
    assert!(outcome.most_to_send < 10_000, "{} bytes", outcome.most_to_send);
}

#[test]
fn h17_a_client_that_does_not_read_holds_few_responses_in_shared_memory() {
    for length in [32_000, 60_000] {
        let mut out = Out::new();
        let responses: Vec<Arc<[u8]>> = (0..100).map(|_| vec![7; length].into()).collect();
        for response in &responses {
            if out.full() {
                break;
            }
            out.stage(b"head");
            // Even a short range keeps all bytes in memory.
            out.push(Part::Shared(Arc::clone(response), 0..1));
        }
        let held = responses.iter().filter(|response| Arc::strong_count(response) > 1).count();
        assert!(held * length < Out::MEMORY_BOUND + length, "{held} responses of {length} bytes are held");
    }
}

#[test]
fn h18_one_byte_at_a_time_gives_the_same_answer_for_linear_work() {
    let request = format!("GET /a HTTP/1.1\r\nHost: here\r\nX: {}\r\n\r\n", "x".repeat(900));
    let whole = run(Script::new().sends(&request));
    let drips = run(Script::new().drips(&request, Duration::ZERO));
    assert_eq!(drips.sent, whole.sent);
    assert_eq!(drips.receives, request.len());
    assert!(drips.operations <= request.len() + 2, "{} operations", drips.operations);
}

#[test]
fn h21_the_bounds_on_heads_are_exact() {
    let head = |length: usize| {
        let begin = "GET /a HTTP/1.1\r\nHost: here\r\nX: ";
        format!("{begin}{}\r\n\r\n", "x".repeat(length - begin.len() - 4))
    };
    let bound = limits().max_head;
    understood(&head(bound - 1));
    understood(&head(bound));
    understood(&format!("\r\n{}", head(bound)));
    all_refused([head(bound + 1), "X".repeat(bound + 1), head(bound * 100)], 431);
    let fields = |count: usize| {
        let fields: String = (1..count).map(|n| format!("X{n}: y\r\n")).collect();
        format!("GET /a HTTP/1.1\r\nHost: here\r\n{fields}\r\n")
    };
    let bound = limits().max_headers;
    understood(&fields(bound));
    all_refused([fields(bound + 1), fields(10_000)], 431);
    let wide = Limits { max_head: 1 << 20, max_headers: Limits::MOST_HEADERS, ..limits() };
    refused_with(&wide, fields(10_000), 431);
    refused_with(&wide, fields(Limits::MOST_HEADERS + 1), 431);
}

#[test]
fn h21_a_head_that_is_too_large_by_drops_is_refused_alike() {
    let head = format!("GET /a HTTP/1.1\r\nHost: here\r\nX: {}\r\n\r\n", "x".repeat(2000));
    let outcome = run(Script::new().drips(&head, Duration::ZERO));
    assert_eq!(only_response(&outcome.sent).status, 431);
    assert_eq!(outcome.receives, limits().max_head);
}

#[test]
fn h22_the_bound_on_targets_is_exact() {
    let request = |length: usize, more: &str| {
        format!("GET /{} HTTP/1.1\r\nHost: a\r\n{more}\r\n", "x".repeat(length - 1))
    };
    let bound = limits().max_target;
    understood(&request(bound, ""));
    all_refused([request(bound + 1, ""), request(10_000, "")], 414);
    // If the target is within its bound, a head that is too long is 431.
    refused(request(bound, &format!("X: {}\r\n", "x".repeat(2000))), 431);
    refused(request(bound + 1, &format!("X: {}\r\n", "x".repeat(2000))), 414);
}

#[test]
fn h27_a_reset_at_any_byte_is_a_close() {
    let request = post("Content-Length: 10\r\n") + "12345";
    for at in 0..request.len() {
        let outcome = run(Script::new().sends(&request[..at]).resets());
        assert_eq!(outcome.next, Next::Close, "a reset at {at}");
    }
}
