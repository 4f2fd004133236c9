//! Request bodies: their end, their recipient, and the handling of unread ones.

use std::thread::sleep;
use std::time::{Duration, Instant};

use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::server::Server;
use tenfold_tests::site;
use tenfold_tests::time::SOON;
use tenfold_tests::wire::Wire;

pub(crate) const THEME: Theme = Theme {
    name: "bodies",
    cases: cases![
        Shared on MECHANISMS + TLS + ANOTHER_TLS: h12_h15_unread_bodies_are_drained,
            h15_the_response_to_a_refused_upload_arrives;
        Shared on SEMANTICS + ONE_TLS + ANOTHER: h11_invalid_chunks_end_the_connection;
        Own on ENGINES + TLS + ANOTHER_TLS: a_body_comes_back_as_it_was_sent;
        Own on DRIVERS + ONE_TLS + ANOTHER: h08_h11_h12_chunks_are_read_strictly_and_bounded,
            h15_a_body_past_its_bound_is_413, h19_expect_100_continue_is_answered,
            h24_h26_a_slow_body_is_408_and_a_half_closed_one_is_released;
    ],
};

const BEHIND: &str = "GET /1k.html HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn launch(config: &Config) -> Launch {
    Launch::new(config, site::shared()).flag("--echo", "/").flag("--max-body", "100 KiB")
}

/// A server that echoes at `/` at most 100 KiB of a body.
fn echoing(config: &Config) -> Server {
    launch(config).start()
}

fn stop(server: Server) {
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn post(target: &str, fields: &str) -> String {
    format!("POST {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n")
}

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

fn in_chunks(content: &[u8], size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for chunk in content.chunks(size) {
        bytes.extend(format!("{:x};a=b\r\n", chunk.len()).bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\nX-Trailer: y\r\n\r\n");
    bytes
}

/// Checks that the connection persists.
#[track_caller]
fn expect_to_go_on(wire: &mut Wire, what: &str) {
    wire.send(BEHIND);
    assert_eq!(wire.response().status, 200, "{what}");
}

fn h12_h15_unread_bodies_are_drained(server: &Server) {
    let mut wire = server.connect();
    for target in ["/1k.html", "/nothing"] {
        for length in [1, 1000, 60_000] {
            let content = content(length);
            wire.send(post(target, &format!("Content-Length: {length}\r\n")));
            wire.send(&content);
            assert_eq!(wire.response().status, 405, "{length} bytes to {target}");
            wire.send(post(target, "Transfer-Encoding: chunked\r\n"));
            wire.send(in_chunks(&content, 30_000));
            assert_eq!(wire.response().status, 405, "{length} bytes in chunks to {target}");
        }
    }
    expect_to_go_on(&mut wire, "behind bodies that nobody wanted");
    drop(wire);
    for (fields, begin) in
        [("Content-Length: 70000\r\n", ""), ("Transfer-Encoding: chunked\r\n", "11170\r\n")]
    {
        let mut wire = server.connect();
        let mut bytes = (post("/1k.html", fields) + begin).into_bytes();
        bytes.extend(content(70_000));
        wire.send(bytes);
        assert_eq!(wire.response().status, 405, "{fields}");
        wire.end_output();
        wire.expect_end();
    }
}

/// A client that reads the response only after it has sent megabytes.
fn h15_the_response_to_a_refused_upload_arrives(server: &Server) {
    let length = 4 * 1024 * 1024;
    let size = format!("Content-Length: {length}\r\n");
    // Made before the connect, because the server waits only some seconds for bytes.
    let (whole, chunks) = (vec![b'x'; length], in_chunks(&vec![b'x'; length], 100_000));
    for (fields, status) in [
        (&size[..], 405),
        (&format!("{size}Expect: 100-continue\r\n"), 405),
        ("Transfer-Encoding: chunked\r\n", 405),
        (&format!("{size}Content-Length: 1\r\n"), 400),
        (&format!("{size}X: {}\r\n", "x".repeat(20_000)), 431),
    ] {
        let mut wire = server.connect();
        wire.send(post("/1k.html", fields));
        wire.send(if fields.contains("chunked") { &chunks } else { &whole });
        assert_eq!(wire.response().status, status, "{fields:.60}");
        wire.end_output();
        wire.expect_end();
    }
}

fn h11_invalid_chunks_end_the_connection(server: &Server) {
    for chunks in ["-1\r\n", "0x1\r\nx\r\n0\r\n\r\n", "1\nx\r\n0\r\n\r\n", "1\r\nxy\r\n0\r\n\r\n", "g\r\n"] {
        let mut wire = server.connect();
        wire.send(post("/1k.html", "Transfer-Encoding: chunked\r\n") + chunks + BEHIND);
        assert_eq!(wire.response().status, 405, "{chunks:?}");
        wire.expect_end();
    }
}

fn a_body_comes_back_as_it_was_sent(config: &Config) {
    let server = echoing(config);
    let mut wire = server.connect();
    for length in [0, 1, 1000, 70_000, 100 * 1024] {
        let sent = content(length);
        wire.send(post("/", &format!("Content-Length: {length}\r\n")));
        wire.send(&sent);
        let response = wire.response();
        assert_eq!((response.status, response.body == sent), (200, true), "{length} bytes");
        assert_eq!(response.need("Content-Type"), "application/octet-stream");
        for size in [7, 1000, 50_000] {
            if length / size > 2000 {
                continue;
            }
            wire.send(post("/", "Transfer-Encoding: chunked\r\n"));
            wire.send(in_chunks(&sent, size));
            let response = wire.response();
            assert_eq!(
                (response.status, response.body == sent),
                (200, true),
                "{length} bytes, {size} at a time"
            );
        }
    }
    for method in ["GET", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        wire.send(format!("{method} / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nxyz"));
        let response = wire.response();
        assert_eq!((response.status, &response.body[..]), (200, &b"xyz"[..]), "{method}");
    }
    wire.send("HEAD / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nxyz");
    assert_eq!(wire.head().promised(), 3);
    // Three requests in one segment.
    let one = post("/", "Transfer-Encoding: chunked\r\n") + "3\r\nabc\r\n0\r\n\r\n";
    let other = post("/", "Content-Length: 3\r\n") + "xyz";
    wire.send(format!("{one}{other}{BEHIND}"));
    assert_eq!(wire.response().body, b"abc");
    assert_eq!(wire.response().body, b"xyz");
    assert_eq!(wire.response().status, 200);
    wire.send("TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(wire.response().status, 405, "TRACE is not served, not here either");
    drop(wire);
    stop(server);
}

fn h08_h11_h12_chunks_are_read_strictly_and_bounded(config: &Config) {
    let server = echoing(config);
    let refused = [
        ("\r\n", 400),
        ("-1\r\nx\r\n0\r\n\r\n", 400),
        ("0x1\r\nx\r\n0\r\n\r\n", 400),
        ("1_0\r\n0123456789abcdef\r\n0\r\n\r\n", 400),
        (" 1\r\nx\r\n0\r\n\r\n", 400),
        ("1 \r\nx\r\n0\r\n\r\n", 400),
        ("8000000000000000\r\nx", 400),
        ("1\nx\r\n0\r\n\r\n", 400),
        ("1\r\nx\n0\r\n\r\n", 400),
        ("1\r\nxy\r\n0\r\n\r\n", 400),
        ("0\r\nX : y\r\n\r\n", 400),
        ("0\r\nX: y\n\r\n", 400),
    ];
    let long = format!("0;{}\r\n\r\n", "x".repeat(20_000));
    for (chunks, status) in refused.into_iter().chain([(long.as_str(), 431)]) {
        let mut wire = server.connect();
        wire.send(post("/", "Transfer-Encoding: chunked\r\n") + chunks + BEHIND);
        let response = wire.response();
        assert_eq!(response.status, status, "{}", &chunks[..chunks.len().min(40)]);
        assert!(response.closes(), "the response does not say that it is the last");
        wire.expect_end();
    }
    stop(server);
}

fn h15_a_body_past_its_bound_is_413(config: &Config) {
    let server = echoing(config);
    for (fields, begin) in
        [("Content-Length: 102401\r\n", ""), ("Transfer-Encoding: chunked\r\n", "19001\r\n")]
    {
        let mut wire = server.connect();
        let mut bytes = (post("/", fields) + begin).into_bytes();
        bytes.extend(content(102_401));
        // The server may refuse further bytes after its response.
        let _ = wire.try_send(&bytes);
        let response = wire.response();
        assert_eq!((response.status, response.closes()), (413, true), "{fields}");
        wire.end_output();
        wire.expect_end();
    }
    stop(server);
}

fn h19_expect_100_continue_is_answered(config: &Config) {
    let server = echoing(config);
    let mut wire = server.connect();
    for (fields, body) in
        [("Content-Length: 3\r\n", "xyz"), ("Transfer-Encoding: chunked\r\n", "3\r\nxyz\r\n0\r\n\r\n")]
    {
        wire.send(post("/", &format!("{fields}Expect: 100-continue\r\n")));
        assert_eq!(wire.head().status, 100, "{fields}");
        wire.send(body);
        assert_eq!(wire.response().body, b"xyz", "{fields}");
    }
    expect_to_go_on(&mut wire, "behind a body that was waited for");
    // The server rejects requests before their body.
    wire.send(post("/", "Content-Length: 102401\r\nExpect: 100-continue\r\n"));
    assert_eq!(wire.response().status, 413);
    wire.expect_end();
    let mut wire = server.connect();
    wire.send(post("/1k.html", "Content-Length: 3\r\nExpect: 100-continue\r\n"));
    let response = wire.response();
    assert_eq!((response.status, response.closes()), (405, true));
    wire.expect_end();
    stop(server);
}

fn h24_h26_a_slow_body_is_408_and_a_half_closed_one_is_released(config: &Config) {
    const DEADLINE: Duration = Duration::from_millis(300);
    let server = launch(config).flag("--body-timeout", "300ms").start();
    let mut wire = server.connect();
    let begin = Instant::now();
    wire.send(post("/", "Content-Length: 1000\r\n"));
    for _ in 0..100 {
        if wire.try_send(b"x").is_err() || begin.elapsed() > 3 * DEADLINE {
            break;
        }
        // Bytes come until the deadline, at less than the minimum rate.
        sleep(DEADLINE / 20);
    }
    let response = wire.response();
    assert_eq!((response.status, response.closes()), (408, true));
    assert!(begin.elapsed() < SOON, "it took {:?}", begin.elapsed());
    wire.expect_end();
    // A half-close in the middle of a body frees the connection.
    let mut wire = server.connect();
    wire.send(post("/", "Content-Length: 1000\r\n") + "xyz");
    wire.end_output();
    wire.expect_end();
    stop(server);
}
