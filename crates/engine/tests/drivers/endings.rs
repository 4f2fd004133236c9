//! How connections end: the peer ends its output with or without other events, the peer is silent, or the server
//! refuses a request.

use std::fs::File;
use std::thread;
use std::time::{Duration, Instant};

use tenfold_engine::Sender;
use tenfold_testkit::folder::TempFolder;
use tenfold_testkit::time::{PATIENCE, becomes_true, not_before, with_deadlines};

use crate::Statement;
use crate::configuration::{Configuration, any, at_once, one_loop};
use crate::launch::{Server, milliseconds, request};
use crate::pattern;
use crate::server::SMALL;

pub(crate) const STATEMENTS: &[Statement] = statements![
    any: an_end_together_with_a_request_loses_nothing, an_end_behind_a_request_leaves_the_answer_whole,
        a_peer_that_says_nothing_is_closed, a_head_that_stops_is_told_so, a_connection_that_rests_too_long_is_closed,
        an_answer_that_never_comes_is_told_so, a_refusal_reaches_a_peer_that_still_sends,
        a_refusal_of_megabytes_reaches_its_peer, a_refusal_behind_many_bytes_reaches_its_peer,
        a_refused_peer_that_falls_silent_is_closed, a_refused_peer_that_sends_without_end_is_reset,
        a_file_that_shrinks_is_not_padded, the_last_answer_comes_whole;
    one_loop: an_end_behind_many_requests_is_seen;
    at_once: a_reset_in_the_middle_closes_one_connection;
    notices: a_peer_that_goes_away_is_waited_for_no_longer;
];

fn notices(configuration: &Configuration) -> bool {
    configuration.hears_of_loss()
}

fn an_end_together_with_a_request_loses_nothing(configuration: &Configuration) {
    let server = Server::start(configuration);
    for target in ["/shared?50", "/shared?300000", "/large?3000000", "/later?20"] {
        let mut client = server.connect();
        client.get(target);
        client.end_output();
        assert_eq!(client.response().status, 200);
        client.expect_end_of_stream();
    }
    server.stop();
}

fn an_end_behind_a_request_leaves_the_answer_whole(configuration: &Configuration) {
    let server = Server::start_with_little_room(configuration);
    for pause in [0, 50] {
        let mut client = server.connect();
        client.take_next_to_nothing();
        client.get("/shared?120000");
        // The end comes together with the request, or while the answer waits for room.
        thread::sleep(Duration::from_millis(pause));
        client.end_output();
        // The server sees the end before its answer has room.
        thread::sleep(Duration::from_millis(50));
        assert!(client.response().body == pattern::bytes(120_000), "the answer is another one");
        client.expect_end_of_stream();
    }
    server.stop();
}

/// The last receive that fills the buffer also consumes the report of the end, while a request is still unprocessed.
fn an_end_behind_many_requests_is_seen(configuration: &Configuration) {
    let (server, mut client) = Server::with_client(configuration, &[]);
    let mut blocking = server.connect();
    assert_eq!(blocking.fetch("/small").body, SMALL);
    // While the loop sleeps, everything arrives. The room of a receive is 16 KiB and 2 bytes.
    blocking.get("/sleep?150");
    server.has_taken(&blocking);
    let mut all = Vec::new();
    for _ in 0..6 {
        let plain = request("/small");
        let field =
            format!("Padding: {}\r\n\r\n", "x".repeat(2731 - plain.len() + 2 - "Padding: \r\n\r\n".len()));
        all.extend_from_slice(&plain[..plain.len() - 2]);
        all.extend_from_slice(field.as_bytes());
    }
    assert_eq!(all.len(), 16 * 1024 + 2);
    all.extend_from_slice(&request("/small"));
    client.send(&all);
    client.end_output();
    for _ in 0..7 {
        assert_eq!(client.response().body, SMALL);
    }
    client.wait_at_most(Duration::from_secs(10));
    client.expect_end_of_stream();
    server.stop();
}

fn a_reset_in_the_middle_closes_one_connection(configuration: &Configuration) {
    let server = Server::start_with_little_room(configuration);
    for target in ["/large?60000000", "/shared", "/mix", "/later?50", "/small"] {
        let mut client = server.connect();
        client.get(target);
        if target != "/later?50" {
            client.head();
        }
        client.reset();
    }
    server.connect().reset();
    let mut client = server.connect();
    client.send(b"GET /sm");
    client.reset();
    server.has_counted("closed", 7);
    assert_eq!(server.connect().fetch("/small").body, SMALL);
    server.stop();
}

fn a_peer_that_says_nothing_is_closed(configuration: &Configuration) {
    let server = Server::start_with(configuration, &[("head-timeout", "200")]);
    let begun = Instant::now();
    server.connect().expect_end_of_stream();
    not_before(Duration::from_millis(200), begun);
    server.stop();
}

fn a_head_that_stops_is_told_so(configuration: &Configuration) {
    with_deadlines(|deadline| {
        let server = Server::start_with(configuration, &[("head-timeout", &milliseconds(deadline))]);
        let begun = Instant::now();
        let mut client = server.connect();
        // A server that gets no byte in time closes without a response.
        let _ = client.try_send(b"GET /small HTTP/1.1\r\nHost: local");
        let response = client.try_response();
        not_before(deadline, begun);
        let Some(response) = response else { return false };
        assert_eq!(response.status, 408);
        client.expect_end_of_stream();
        server.stop();
        true
    });
}

fn a_connection_that_rests_too_long_is_closed(configuration: &Configuration) {
    with_deadlines(|deadline| {
        let server = Server::start_with(configuration, &[("idle-timeout", &milliseconds(deadline))]);
        let mut client = server.connect();
        let mut asked = Instant::now();
        assert_eq!(client.fetch("/small").body, SMALL);
        let before = std::mem::replace(&mut asked, Instant::now());
        let _ = client.try_send(&request("/small"));
        let Some(response) = client.try_response() else {
            not_before(deadline, before);
            return false;
        };
        assert_eq!(response.body, SMALL);
        client.expect_end_of_stream();
        not_before(deadline, asked);
        server.stop();
        true
    });
}

fn an_answer_that_never_comes_is_told_so(configuration: &Configuration) {
    let server = Server::start_with(configuration, &[("later-timeout", "200")]);
    let mut client = server.connect();
    let begun = Instant::now();
    client.send([request("/never"), request("/small")].concat());
    assert_eq!(client.response().status, 503);
    not_before(Duration::from_millis(200), begun);
    client.expect_end_of_stream();
    server.stop();
}

fn a_peer_that_goes_away_is_waited_for_no_longer(configuration: &Configuration) {
    let server = Server::start_with(configuration, &[("later-timeout", "600000")]);
    for before in [false, true] {
        let mut client = server.connect();
        if before {
            assert_eq!(client.fetch("/small").body, SMALL);
        }
        client.get("/never");
        // The server waits for the answer.
        thread::sleep(Duration::from_millis(50));
        client.reset();
    }
    server.has_counted("closed", 2);
    server.stop();
}

/// A request that is refused. More bytes may follow it.
pub(crate) const REFUSED: &[u8] = b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n";

/// Limits of lingering for a client that may be late by seconds.
pub(crate) const LATE: [(&str, &str); 2] = [("linger-time", "20000"), ("linger-wait", "20000")];

fn a_refusal_reaches_a_peer_that_still_sends(configuration: &Configuration) {
    let server = Server::start_with(configuration, &LATE);
    let mut client = server.connect();
    client.send(REFUSED);
    for _ in 0..20 {
        if client.try_send(&[b'x'; 8192]).is_err() {
            break;
        }
        // The bytes come in many packets, some of them after the response.
        thread::sleep(Duration::from_millis(2));
    }
    client.end_output();
    assert_eq!(client.response().status, 400);
    client.expect_end_of_stream();
    server.stop();
}

/// A client that reads the response only after it has sent everything.
fn a_refusal_of_megabytes_reaches_its_peer(configuration: &Configuration) {
    let server = Server::start_with(configuration, &LATE);
    let mut client = server.connect();
    client.send(REFUSED);
    for sent in 0..128 {
        let taken = client.try_send(&[b'x'; 64 * 1024]);
        taken.unwrap_or_else(|error| panic!("after {sent} times 64 KiB: {error}"));
    }
    assert_eq!(client.response().status, 400);
    client.end_output();
    client.expect_end_of_stream();
    server.has_counted("closed", 1);
    server.stop();
}

fn a_refused_peer_that_falls_silent_is_closed(configuration: &Configuration) {
    let server = Server::start_with(configuration, &[("linger-time", "60000"), ("linger-wait", "300")]);
    let mut client = server.connect();
    client.send(REFUSED);
    assert_eq!(client.response().status, 400);
    client.expect_end_of_stream();
    server.has_others(0);
    becomes_true(PATIENCE, "the peer notices the close", || client.try_send_raw(b"x").is_err());
    server.stop();
}

fn a_refused_peer_that_sends_without_end_is_reset(configuration: &Configuration) {
    // One receive can return all bytes that have arrived.
    let settings = [("linger-time", "150"), ("linger-wait", "60000"), ("receive-buffer", "16000")];
    let server = Server::start_with(configuration, &settings);
    let mut client = server.connect();
    client.send(REFUSED);
    let begun = Instant::now();
    while client.try_send_raw(&[b'x'; 64 * 1024]).is_ok() {
        assert!(begun.elapsed() < PATIENCE, "the peer does not notice the close");
    }
    // A write that waits for room also has a time limit.
    assert!(begun.elapsed() < PATIENCE / 2, "the peer noticed the close after {:?}", begun.elapsed());
    server.has_counted("closed", 1);
    server.stop();
}

/// When the server refuses the request, more bytes have arrived than it discards.
fn a_refusal_behind_many_bytes_reaches_its_peer(configuration: &Configuration) {
    let server = Server::start_with_little_room(configuration);
    for target in ["/later?60", "/shared?900000"] {
        let mut client = server.connect();
        client.take_little();
        client.send([request(target), REFUSED.to_vec()].concat());
        let mut writer = client.writer();
        let asking = thread::spawn(move || {
            for _ in 0..25 {
                if writer.try_send(&[b'x'; 8000]).is_err() {
                    return;
                }
            }
        });
        // Meanwhile the writer fills the buffers of the server.
        thread::sleep(Duration::from_millis(120));
        assert_eq!(client.response().status, 200);
        assert_eq!(client.response().status, 400);
        asking.join().expect("a writer that is refused stops");
        client.end_output();
        client.expect_end_of_stream();
    }
    server.stop();
}

fn a_file_that_shrinks_is_not_padded(configuration: &Configuration) {
    let folder = TempFolder::new("shrinking");
    let path = folder.write("file", &pattern::large()[..12 << 20]);
    let file = File::options().write(true).open(&path).expect("our own file");
    let server = Server::start_with(configuration, &[("sparse", &path.to_string_lossy())]);
    let mut client = server.connect();
    client.take_little();
    client.get("/sparse");
    let length = client.head().promised();
    client.take(100_000);
    file.set_len(20_000).expect("a file of ours can be cut");
    let (rest, _) = client.rest();
    assert!(100_000 + rest.len() < length, "the connection ends before the answer does");
    // The kernel may have zeroed pages that a socket holds by reference; copied bytes are right.
    if matches!(configuration.sender, Sender::Copy | Sender::Mmap) {
        assert!(
            rest == pattern::large()[100_000..100_000 + rest.len()],
            "what came is not what was in the file"
        );
    }
    assert_eq!(server.connect().fetch("/small").body, SMALL);
    server.stop();
}

fn the_last_answer_comes_whole(configuration: &Configuration) {
    let server = Server::start_with_little_room(configuration);
    for target in ["/small", "/shared?120000", "/shared", "/large?5000000"] {
        let mut client = server.connect();
        client.take_little();
        client.send(
            format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes(),
        );
        // The close waits until the answer has room.
        thread::sleep(Duration::from_millis(50));
        let head = client.head();
        assert!(head.closes(), "{}", head.head);
        client.take(head.promised());
        client.expect_end_of_stream();
    }
    server.stop();
}
