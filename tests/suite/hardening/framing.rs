//! The end of a message (RFC 9112): ambiguous messages are rejected, and the bytes after them are never read as a
//! request.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use tenfold_engine::{Engine, UNREAD_BYTES};
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::process::Process;
use tenfold_tests::server::Server;
use tenfold_tests::site;
use tenfold_tests::time::{SOON, becomes_true, eventually};
use tenfold_tests::wire::{ConnectionEnd, Wire, request};

pub(crate) const THEME: Theme = Theme {
    name: "hardening",
    cases: cases![
        Shared on SEMANTICS + ONE_TLS + ANOTHER: h01_a_length_beside_a_transfer_coding,
            h02_a_duplicate_length, h03_a_length_that_is_not_a_number,
            h04_a_transfer_coding_that_is_not_chunked, h05_a_transfer_coding_in_http_1_0, h06_folded_lines,
            h07_white_space_around_a_name, h08_bare_line_feeds, h09_bare_carriage_returns,
            h10_control_characters, h13_an_invalid_host, h14_the_authority_of_an_absolute_target_wins,
            h16_an_upgrade_is_ignored, h20_versions_and_methods;
        Own on DRIVERS + ANOTHER, Measure: h17_a_thousand_unread_responses_take_bounded_memory,
            h17_requests_behind_a_response_that_waits_are_bounded;
    ],
};

/// A request that must not be processed.
const BEHIND: &str = "GET /1k.html HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Expects one response with this status that announces the close, then the end, and no response to the bytes after it.
#[track_caller]
fn refused(server: &Server, message: &[u8], status: u16) {
    let shown = || message.escape_ascii().to_string();
    let mut wire = server.connect();
    wire.send([message, BEHIND.as_bytes()].concat());
    let response = wire.response();
    assert_eq!(response.status, status, "{}", shown());
    assert!(response.closes(), "{} is not said to be the last", shown());
    let (rest, end) = wire.rest();
    assert!(
        rest.is_empty() && end == ConnectionEnd::Closed,
        "{}: {} bytes more, {end:?}",
        shown(),
        rest.len()
    );
}

fn post(fields: &str) -> Vec<u8> {
    format!("POST /1k.html HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n").into_bytes()
}

#[track_caller]
fn all_refused(server: &Server, fields: &[&str]) {
    fields.iter().for_each(|fields| refused(server, &post(fields), 400));
}

fn h01_a_length_beside_a_transfer_coding(server: &Server) {
    all_refused(
        server,
        &[
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
            "content-length: 0\r\nTRANSFER-ENCODING: chunked\r\n",
        ],
    );
}

fn h02_a_duplicate_length(server: &Server) {
    all_refused(
        server,
        &[
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "Content-Length: 5, 6\r\n",
            // Identical duplicates are rejected as well, because their sender is broken.
            "Content-Length: 5\r\nContent-Length: 5\r\n",
            "Content-Length: 5, 5\r\n",
        ],
    );
}

fn h03_a_length_that_is_not_a_number(server: &Server) {
    for length in ["+5", "-1", "0x5", "5 6", "", "5.0", "1e1", "18446744073709551616", "\u{665}"] {
        refused(server, &post(&format!("Content-Length: {length}\r\n")), 400);
    }
}

fn h04_a_transfer_coding_that_is_not_chunked(server: &Server) {
    refused(server, &post("Transfer-Encoding: gzip, chunked\r\n"), 501);
    for coding in ["", "identity", "gzip", "chunked, gzip", "chunked, chunked", "xchunked", "\"chunked\""] {
        refused(server, &post(&format!("Transfer-Encoding: {coding}\r\n")), 400);
    }
    all_refused(server, &["Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"]);
}

fn h05_a_transfer_coding_in_http_1_0(server: &Server) {
    let head = "POST /1k.html HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n";
    refused(server, head.as_bytes(), 400);
}

fn h06_folded_lines(server: &Server) {
    all_refused(server, &["X: a\r\n b\r\n", "X: a\r\n\tb\r\n", "X: a\r\n \r\n", "Content-Length:\r\n 5\r\n"]);
}

fn h07_white_space_around_a_name(server: &Server) {
    all_refused(server, &["X : a\r\n", "X\t: a\r\n", "Transfer-Encoding : chunked\r\n"]);
    refused(server, b"GET /1k.html HTTP/1.1\r\n Host: localhost\r\n\r\n", 400);
    refused(server, b"GET /1k.html HTTP/1.1\r\n\tX: a\r\nHost: localhost\r\n\r\n", 400);
}

fn h08_bare_line_feeds(server: &Server) {
    refused(server, b"GET /1k.html HTTP/1.1\nHost: localhost\r\n\r\n", 400);
    refused(server, b"GET /1k.html HTTP/1.1\r\nHost: localhost\n\r\n", 400);
    refused(server, b"GET /1k.html HTTP/1.1\r\nHost: localhost\r\n\n", 400);
    refused(server, b"GET /1k.html HTTP/1.1\r\nHost: localhost\r\nX: a\nY: b\r\n\r\n", 400);
}

fn h09_bare_carriage_returns(server: &Server) {
    all_refused(server, &["X: a\rb\r\n", "X: a\r\r\n", "X\r: a\r\n", "\rX: a\r\n"]);
    refused(server, b"GET /1k.html\rHTTP/1.1\r\nHost: localhost\r\n\r\n", 400);
}

fn h10_control_characters(server: &Server) {
    for control in (0..=31).chain([127u8]).filter(|byte| !b"\t\r\n".contains(byte)) {
        let (before, behind) = ("X: a".as_bytes(), "b\r\n".as_bytes());
        let value = [&post("")[..post("").len() - 2], before, &[control], behind, b"\r\n"].concat();
        refused(server, &value, 400);
    }
    for control in [0, 1, 9, 11, 12, 27, 127u8] {
        let name = [&post("")[..post("").len() - 2], b"X", &[control], b": a\r\n\r\n"].concat();
        refused(server, &name, 400);
        let target = [b"GET /1k", &[control][..], b".html HTTP/1.1\r\nHost: localhost\r\n\r\n"].concat();
        refused(server, &target, 400);
    }
}

fn h13_an_invalid_host(server: &Server) {
    for host in [
        "",
        "Host: localhost\r\nHost: localhost\r\n",
        "Host: localhost\r\nhost: other\r\n",
        "Host: a/b\r\n",
        "Host: a b\r\n",
        "Host: user@localhost\r\n",
        "Host: localhost:port\r\n",
        "Host: [::1\r\n",
    ] {
        refused(server, format!("GET /1k.html HTTP/1.1\r\n{host}\r\n").as_bytes(), 400);
    }
}

fn h14_the_authority_of_an_absolute_target_wins(server: &Server) {
    let ask = |target: &str, host: &str| {
        let mut wire = server.connect();
        wire.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        wire.response()
    };
    let plain = ask("/1k.html", "localhost");
    let scheme = server.config.scheme();
    let absolute = ask(&format!("{scheme}://localhost/1k.html"), "evil.example");
    assert!(plain.dateless() == absolute.dateless(), "{}", absolute.head);
    let folder = ask(&format!("{scheme}://localhost/folder"), "evil.example");
    assert!(!folder.need("Location").contains("evil"), "{}", folder.head);
    for target in
        ["http://a b/1k.html", "http://user@localhost/1k.html", "http:///1k.html", "ftp://localhost/"]
    {
        refused(server, format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes(), 400);
    }
}

fn h16_an_upgrade_is_ignored(server: &Server) {
    let upgrade =
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c, websocket\r\nHTTP2-Settings: AAMAAABk\r\n";
    let mut wire = server.connect();
    wire.send(format!("GET /1k.html HTTP/1.1\r\nHost: localhost\r\n{upgrade}\r\n{BEHIND}"));
    for at in 0..2 {
        let response = wire.response();
        assert_eq!((response.status, response.body.len()), (200, 1024), "answer {at}");
        assert!(response.field("Upgrade").is_none(), "{}", response.head);
    }
    // Only the first bytes of a connection can be the preface of HTTP/2.
    wire.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert_eq!(wire.response().status, 505);
}

fn h20_versions_and_methods(server: &Server) {
    for (line, status) in [
        ("GET /", 400),
        ("GET / HTTP/0.9", 505),
        ("GET / HTTP/3.7", 505),
        ("GET / HTTP/1", 400),
        ("GET / HTTP/1.10", 400),
        ("GET / http/1.1", 400),
        ("G@T / HTTP/1.1", 400),
        (" / HTTP/1.1", 400),
        ("get / HTTP/1.1", 501),
        ("BREW / HTTP/1.1", 501),
    ] {
        refused(server, format!("{line}\r\nHost: localhost\r\n\r\n").as_bytes(), status);
    }
    let mut wire = server.connect();
    wire.send("GET /1k.html HTTP/1.7\r\nHost: localhost\r\n\r\n");
    assert_eq!(wire.response().status, 200, "a later 1.x is served as 1.1");
}

/// Private memory of the server's processes, in KiB.
fn private(server: &Server) -> u64 {
    let own = |process: &Process| {
        let line = process.status("RssAnon").unwrap_or_default();
        line.split_ascii_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0)
    };
    server.process.with_descendants().iter().map(own).sum()
}

/// A thousand requests for 128 KiB each, from a client that reads only after its last request.
fn h17_a_thousand_unread_responses_take_bounded_memory(config: &Config) {
    const REQUESTS: usize = 1000;
    let server = Launch::new(config, site::shared()).start();
    assert_eq!(server.get("/128k.bin").status, 200);
    let before = private(&server);
    let mut wire = server.connect();
    let mut sender = wire.socket().try_clone().expect("descriptors");
    thread::scope(|scope| {
        scope.spawn(move || {
            let all = request("GET", "/128k.bin", &[]).repeat(REQUESTS);
            sender.write_all(&all).expect("the server takes them in the end");
        });
        // The server reads as much as it would read without a bound.
        thread::sleep(Duration::from_millis(200));
        let grown = private(&server).saturating_sub(before);
        assert!(grown < 8 * 1024, "{grown} KiB more for answers that nobody read");
        let expected = site::content("128k.bin");
        for at in 0..REQUESTS {
            assert_eq!(wire.head().status, 200, "answer {at}");
            wire.expect_body(&expected);
        }
    });
    drop(wire);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The bytes in the send queue and in the receive queue of this end of a connection (`man 5 proc`, /proc/net/tcp).
fn queues(local: SocketAddr, remote: SocketAddr) -> (usize, usize) {
    let port = |address: SocketAddr| format!(":{:04X}", address.port());
    let of_it = |row: &Vec<&str>| row[1].ends_with(&port(local)) && row[2].ends_with(&port(remote));
    // The table is read in pieces, and a row can be missing if other rows change in between.
    let queued = eventually(SOON, "the row of the connection", || {
        let table = fs::read_to_string("/proc/net/tcp").expect("Linux has it");
        let mut rows = table.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
        rows.find(of_it).map(|row| row[4].to_owned())
    });
    let (sent, received) = queued.split_once(':').expect("the columns tx_queue and rx_queue");
    let bytes = |text| usize::from_str_radix(text, 16).expect("a number in hexadecimal");
    (bytes(sent), bytes(received))
}

/// The system enlarges the receive buffer of a server that reads fast. A multishot receive would take the whole buffer.
fn h17_requests_behind_a_response_that_waits_are_bounded(config: &Config) {
    // The answered request, and the bytes read with it.
    let mut most = 32 * 1024;
    if config.engine == Engine::Uring {
        most += usize::try_from(UNREAD_BYTES).expect("it is memory");
    }
    let server = Launch::new(config, site::shared()).start();
    let mut wire = Wire::connect_with_buffer(4096, server.address);
    let mut sender = wire.socket().try_clone().expect("descriptors");
    thread::scope(|scope| {
        let small = request("GET", "/1k.html", &[]).repeat(5000);
        scope.spawn(move || sender.write_all(&small).expect("the server reads"));
        for _ in 0..5000 {
            assert_eq!(wire.response().status, 200);
        }
    });
    let own = wire.socket().local_addr().expect("it is connected");
    let serving = &server.process.with_descendants()[1..];
    serving.iter().for_each(|process| process.signal(Signal::STOP));
    becomes_true(SOON, "the server stops", || serving.iter().all(|process| process.is_stopped()));
    let large = request("GET", "/3m.bin", &[]).repeat(100_000);
    let mut socket = wire.socket();
    socket.set_nonblocking(true).expect("a socket takes options");
    let mut sent = 0;
    // The system may have room for all bytes.
    while sent < large.len()
        && let Ok(count) = socket.write(&large[sent..])
    {
        sent += count;
    }
    socket.set_nonblocking(false).expect("a socket takes options");
    serving.iter().for_each(|process| process.signal(Signal::CONT));
    becomes_true(SOON, "the response has begun", || queues(own, server.address).1 > 0);
    // The server reads as much as it would read without a bound.
    thread::sleep(Duration::from_millis(100));
    let taken = sent - queues(own, server.address).0 - queues(server.address, own).1;
    assert!(taken <= most, "{taken} of {sent} bytes were taken");
    drop(wire);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}
