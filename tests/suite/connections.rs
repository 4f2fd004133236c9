//! Connections: persistent, closed, pipelined, and read or written slowly.

use std::thread::sleep;
use std::time::Duration;

use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::server::Server;
use tenfold_tests::site;
use tenfold_tests::wire::request;

pub(crate) const THEME: Theme = Theme {
    name: "connections",
    cases: cases![
        Shared on MECHANISMS + TLS + ANOTHER_TLS: kept_and_ended_by_version_and_field,
            sixteen_pipelined_requests, h17_a_thousand_pipelined_requests, h18_one_byte_per_packet,
            half_closed_behind_a_request, half_closed_behind_many_requests, h15_an_unread_body_is_skipped,
            large_files_pipelined;
        Shared on SEMANTICS + ONE_TLS: an_empty_line_before_a_request;
        Shared on SENDERS + TLS + ANOTHER_TLS: a_slow_reader;
        Own on TOPOLOGIES + TLS + ANOTHER_CONCURRENT_TLS: five_hundred_at_once;
    ],
};

fn kept_and_ended_by_version_and_field(server: &Server) {
    let outcomes = [
        ("HTTP/1.1", "", true),
        ("HTTP/1.1", "Connection: keep-alive\r\n", true),
        ("HTTP/1.1", "Connection: close\r\n", false),
        ("HTTP/1.1", "Connection: keep-alive, close\r\n", false),
        ("HTTP/1.1", "Connection: CLOSE\r\n", false),
        ("HTTP/1.0", "", false),
        ("HTTP/1.0", "Connection: close\r\n", false),
        ("HTTP/1.0", "Connection: keep-alive\r\n", true),
    ];
    for (version, field, kept) in outcomes {
        let mut wire = server.connect();
        for _ in 0..3 {
            wire.send(format!("GET /1k.html {version}\r\nHost: localhost\r\n{field}\r\n"));
            let response = wire.response();
            assert_eq!((response.status, response.body.len()), (200, 1024), "{version} {field:?}");
            assert_eq!(response.closes(), !kept, "{version} {field:?}: {}", response.head);
            if !kept {
                break;
            }
            if version == "HTTP/1.0" {
                assert_eq!(
                    response.need("Connection").to_ascii_lowercase(),
                    "keep-alive",
                    "1.0 has to be told"
                );
            }
        }
        if !kept {
            wire.expect_end();
        }
    }
}

fn sixteen_pipelined_requests(server: &Server) {
    let targets =
        ["/1k.html", "/16k.bin", "/none.html", "/folder", "/style.css", "/empty.txt", "/128k.bin", "/"];
    let sixteen: Vec<&str> = targets.iter().chain(&targets).copied().collect();
    let mut wire = server.connect();
    let single: Vec<Vec<u8>> = sixteen
        .iter()
        .map(|target| {
            wire.get(target);
            wire.response().dateless()
        })
        .collect();
    wire.send(sixteen.iter().flat_map(|target| request("GET", target, &[])).collect::<Vec<u8>>());
    for (target, single) in sixteen.iter().zip(single) {
        assert!(wire.response().dateless() == single, "{target} is answered otherwise in a pipeline");
    }
}

fn h17_a_thousand_pipelined_requests(server: &Server) {
    let mut wire = server.connect();
    let names = ["1k.html", "style.css", "folder/page.html"];
    let bytes: Vec<u8> =
        (0..1000).flat_map(|at| request("GET", &format!("/{}", names[at % names.len()]), &[])).collect();
    wire.send(bytes);
    for at in 0..1000 {
        let body = wire.response().body;
        assert!(body == site::content(names[at % names.len()]), "answer {at} is another's");
    }
}

fn large_files_pipelined(server: &Server) {
    let mut wire = server.connect();
    let targets = ["3m.bin", "1k.html", "3m.bin", "128k.bin"];
    wire.send(targets.iter().flat_map(|name| request("GET", &format!("/{name}"), &[])).collect::<Vec<u8>>());
    for name in targets {
        assert_eq!(wire.head().status, 200, "{name}");
        wire.expect_body(&site::content(name));
    }
}

fn h18_one_byte_per_packet(server: &Server) {
    let mut wire = server.connect();
    wire.get("/1k.html");
    let whole = wire.response().dateless();
    for byte in request("GET", "/1k.html", &[]) {
        wire.send([byte]);
        // Gives the server a chance to receive single bytes.
        std::thread::yield_now();
    }
    assert!(wire.response().dateless() == whole, "the answer is another");
    let bytes = request("GET", "/1k.html", &[("X-Slow", "yes")]);
    for byte in &bytes[..20] {
        wire.send([*byte]);
        // The server often receives a byte at a time.
        sleep(Duration::from_millis(2));
    }
    wire.send(&bytes[20..]);
    assert!(wire.response().dateless() == whole, "the answer is another");
}

fn half_closed_behind_a_request(server: &Server) {
    for name in ["1k.html", "3m.bin"] {
        let mut wire = server.connect();
        wire.get(&format!("/{name}"));
        wire.end_output();
        let response = wire.head();
        assert_eq!(response.status, 200, "{name}");
        wire.expect_body(&site::content(name));
        wire.expect_end();
    }
    let mut wire = server.connect();
    wire.end_output();
    wire.expect_dropped();
    let mut wire = server.connect();
    wire.send("GET / HT");
    wire.end_output();
    wire.expect_dropped();
}

/// Responses in progress still arrive after the client's end of output.
fn half_closed_behind_many_requests(server: &Server) {
    let large = site::content("128k.bin");
    let middle = site::content("16k.bin");
    for (target, expected, rounds) in [("/128k.bin", &large, 1), ("/16k.bin", &middle, 40)] {
        for _ in 0..rounds {
            let mut wire = server.connect();
            wire.send(request("GET", target, &[]).repeat(8));
            wire.end_output();
            for at in 0..8 {
                assert_eq!(wire.head().status, 200, "{target}, answer {at}");
                wire.expect_body(expected);
            }
            wire.expect_end();
        }
    }
}

fn h15_an_unread_body_is_skipped(server: &Server) {
    let mut wire = server.connect();
    for length in [1, 100, 10_000, 60_000] {
        let mut bytes = request("POST", "/1k.html", &[("Content-Length", &length.to_string())]);
        bytes.resize(bytes.len() + length, b'G');
        bytes.extend(request("GET", "/1k.html", &[]));
        wire.send(bytes);
        assert_eq!(wire.response().status, 405, "{length}");
        assert_eq!(wire.response().status, 200, "behind a body of {length}");
    }
    wire.send(request("POST", "/1k.html", &[("Content-Length", "10000000")]));
    let response = wire.response();
    assert_eq!(response.status, 405);
    assert!(response.closes(), "a body past the bound ends the connection");
    wire.send([b'x'; 100_000]);
    wire.expect_end();
}

fn an_empty_line_before_a_request(server: &Server) {
    let mut wire = server.connect();
    for _ in 0..2 {
        wire.send(b"\r\nGET /1k.html HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(wire.response().status, 200, "RFC 9112 §2.2");
    }
}

fn a_slow_reader(server: &Server) {
    let mut wire = server.connect();
    wire.get("/large.bin");
    assert_eq!(wire.head().promised(), site::LARGE);
    let large = site::large();
    assert!(wire.take(1024) == large[..1024], "the first kilobyte");
    // The buffers of both ends fill.
    sleep(Duration::from_millis(100));
    let half = site::LARGE / 2;
    wire.expect_body(&large[1024..half]);
    // They fill again.
    sleep(Duration::from_millis(50));
    wire.expect_body(&large[half..]);
}

/// On an engine with few concurrent connections, the other connections wait. On a busy machine, 500 handshakes take
/// longer than the default of `head-timeout`.
fn five_hundred_at_once(config: &Config) {
    let server = Launch::new(config, site::shared()).flag("--head-timeout", "60s").start();
    let serial = server.config.at_once().is_some();
    let mut wires: Vec<_> = (0..500).map(|_| server.connect().sends_early(true)).collect();
    let fields: &[_] = if serial { &[("Connection", "close")] } else { &[] };
    for round in 0..if serial { 1 } else { 2 } {
        // In two parts, so that a TLS client continues its handshake in between.
        let head = request("GET", "/1k.html", fields);
        for part in [&head[..9], &head[9..]] {
            wires.iter_mut().for_each(|wire| wire.send(part));
        }
        for (at, wire) in wires.iter_mut().enumerate() {
            let response = wire.response();
            assert_eq!((response.status, response.body.len()), (200, 1024), "connection {at}, round {round}");
        }
    }
    drop(wires);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}
