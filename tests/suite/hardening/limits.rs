//! Limits and exhaustion: a peer cannot cause disproportionate costs.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use tenfold_engine::{Engine, Topology};
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::process::Process;
use tenfold_tests::server::Server;
use tenfold_tests::site;
use tenfold_tests::wire::request;

pub(crate) const THEME: Theme = Theme {
    name: "hardening",
    cases: cases![
        Shared on SEMANTICS + ONE_TLS + ANOTHER: h21_ten_thousand_headers, h22_an_endless_target,
            h33_a_thousand_overlapping_ranges, h34_ranges_at_every_edge;
        Own on DRIVERS + ANOTHER, Measure: h36_a_bad_request_costs_no_more_than_a_good_one;
        Own on DRIVERS + ANOTHER: h21_a_large_bound_on_heads_is_exact;
        Once, Measure: h29_one_connection_does_not_wake_every_worker,
            h29_some_mechanisms_wake_several_workers;
    ],
};

fn status(server: &Server, bytes: impl AsRef<[u8]>) -> u16 {
    let mut wire = server.connect();
    // The server may refuse further bytes after its response.
    let _ = wire.try_send(bytes.as_ref());
    wire.response().status
}

fn h21_ten_thousand_headers(server: &Server) {
    let line = "GET /1k.html HTTP/1.1\r\nHost: localhost\r\n";
    assert_eq!(status(server, format!("{line}{}\r\n", "X: y\r\n".repeat(10_000))), 431);
    assert_eq!(status(server, format!("{line}{}\r\n", "X: y\r\n".repeat(101))), 431);
    assert_eq!(status(server, format!("{line}X: {}\r\n\r\n", "y".repeat(1 << 20))), 431);
    // A line without an end.
    assert_eq!(status(server, format!("{line}{}", "y".repeat(1 << 20))), 431);
    assert_eq!(status(server, format!("{line}{}\r\n", "X: y\r\n".repeat(99))), 200);
}

fn h21_a_large_bound_on_heads_is_exact(config: &Config) {
    let server = Launch::new(config, site::shared()).flag("--max-head", "200KiB").start();
    let head = |length: usize| {
        let bare = request("GET", "/1k.html", &[("X", "")]).len();
        request("GET", "/1k.html", &[("X", &"x".repeat(length - bare))])
    };
    for length in [64 * 1024, 64 * 1024 + 1, 70_000, 128 * 1024, 200 * 1024] {
        assert_eq!(status(&server, head(length)), 200, "a head of {length} bytes");
    }
    assert_eq!(status(&server, head(200 * 1024 + 1)), 431);
    // A request after a large request is not lost.
    let mut wire = server.connect();
    wire.send([head(100_000), head(100)].concat());
    assert_eq!((wire.response().status, wire.response().status), (200, 200));
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn h22_an_endless_target(server: &Server) {
    for length in [8 * 1024 + 1, 12 * 1024] {
        assert_eq!(status(server, request("GET", &format!("/{}", "a".repeat(length - 1)), &[])), 414);
    }
    assert_eq!(status(server, format!("GET /{}", "a".repeat(1 << 20))), 414);
    assert_eq!(status(server, request("GET", &format!("/?{}", "a".repeat(8 * 1024 - 2)), &[])), 200);
}

fn h33_a_thousand_overlapping_ranges(server: &Server) {
    for range in ["0-,".repeat(1000), "0-9,5-14,".repeat(500), "0-0,2-2,".repeat(500)] {
        let value = format!("bytes={}", range.trim_end_matches(','));
        let mut wire = server.connect();
        wire.send(request("GET", "/3m.bin", &[("Range", &value)]));
        let response = wire.head();
        assert_eq!((response.status, response.promised()), (200, 3_000_001), "the whole file");
    }
    // Within the limit the ranges are merged: one part instead of sixty times the file.
    let value = format!("bytes={}", "0-99999,".repeat(60).trim_end_matches(','));
    let response = server.ask("GET", "/3m.bin", &[("Range", &value)]);
    assert_eq!((response.status, response.body.len()), (206, 100_000));
}

fn h34_ranges_at_every_edge(server: &Server) {
    for (range, status, length) in [
        ("bytes=0-18446744073709551615", 206, 1024),
        ("bytes=1023-99999999999999999999999", 206, 1),
        ("bytes=-18446744073709551616", 206, 1024),
        ("bytes=1024-", 416, 0),
        ("bytes=-0", 416, 0),
        ("bytes=18446744073709551616-", 416, 0),
        ("bytes=5-2", 200, 1024),
        ("bytes=a-b", 200, 1024),
        ("bytes=", 200, 1024),
        ("bytes= 0-1", 200, 1024),
        ("bytes=0-1 ", 206, 2),
        ("bytes=0 - 1", 200, 1024),
    ] {
        let response = server.ask("GET", "/1k.html", &[("Range", range)]);
        assert_eq!(response.status, status, "{range}");
        assert!(status == 416 || response.body.len() == length, "{range}: {} bytes", response.body.len());
    }
}

/// Processor time for requests of one kind, a hundred at a time on a new connection.
fn cost(server: &Server, head: &[u8], status: u16, rounds: usize) -> Duration {
    let before = server.processor_time();
    for _ in 0..rounds {
        let mut wire = server.connect();
        wire.send(head.repeat(100));
        for _ in 0..100 {
            assert_eq!(wire.response().status, status, "{}", head.escape_ascii());
        }
    }
    server.processor_time() - before
}

/// Processor time for rejected requests, each on a new connection.
fn closing(server: &Server, head: &[u8], status: u16, rounds: usize) -> Duration {
    let before = server.processor_time();
    for _ in 0..rounds {
        let mut wire = server.connect();
        wire.send(head);
        assert_eq!(wire.response().status, status, "{}", head.escape_ascii());
        wire.expect_end();
    }
    server.processor_time() - before
}

/// The limit is generous, because ticks are coarse. Costs that grow with the input exceed it by far.
fn h36_a_bad_request_costs_no_more_than_a_good_one(config: &Config) {
    const TICKS: Duration = Duration::from_millis(100);
    let server = Launch::new(config, site::shared()).start();
    let tag = server.get("/1k.html").need("ETag").to_owned();
    let good = cost(&server, &request("GET", "/1k.html", &[]), 200, 40);
    for (what, head, status) in [
        ("404", request("GET", "/none/such/file.html", &[]), 404),
        ("405", request("DELETE", "/1k.html", &[]), 405),
        ("304", request("GET", "/1k.html", &[("If-None-Match", &tag)]), 304),
    ] {
        let bad = cost(&server, &head, status, 40);
        assert!(bad <= good * 3 + TICKS, "{what} took {bad:?}, 200 {good:?}");
    }
    let good = closing(&server, &request("GET", "/1k.html", &[("Connection", "close")]), 200, 200);
    let bad = closing(&server, b"GET /1k.html HTTP/1.1\r\nHost : localhost\r\n\r\n", 400, 200);
    assert!(bad <= good * 3 + TICKS, "400 took {bad:?}, a 200 that closes {good:?}");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The number of voluntary waits of each thread of a process.
fn sleeps(process: Process) -> Vec<u64> {
    let tasks = fs::read_dir(format!("/proc/{}/task", process.0)).expect("the worker is there");
    let count = |task: fs::DirEntry| {
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse().ok()
    };
    tasks.flatten().filter_map(count).collect()
}

/// The number of 40 successive connections that woke more than one of two workers on one listening socket.
fn woke_several(engine: Engine) -> usize {
    let config = Config { topology: Topology::Threads, ..Config::of(engine) };
    let server = Launch::new(&config, site::shared()).start();
    assert_eq!(server.get("/1k.html").status, 200);
    let worker = *server.workers().first().expect("a worker serves");
    // A ring restarts its accepts a few times after its start.
    sleep(Duration::from_secs(if engine == Engine::Uring { 9 } else { 1 }));
    let mut several = 0;
    for _ in 0..40 {
        let before = sleeps(worker);
        assert_eq!(server.ask("GET", "/1k.html", &[("Connection", "close")]).status, 200);
        // Workers that were woken for nothing sleep again.
        sleep(Duration::from_millis(20));
        let woken = sleeps(worker).iter().zip(&before).filter(|(now, before)| now > before).count();
        several += usize::from(woken > 1);
    }
    server.stop().unwrap_or_else(|why| panic!("{why}"));
    several
}

fn h29_one_connection_does_not_wake_every_worker() {
    for engine in [Engine::Epoll, Engine::Uring] {
        let several = woke_several(engine);
        // A worker sometimes wakes on its own, to write its log.
        assert!(several <= 20, "{engine}: {several} of 40 connections woke more than one worker");
    }
}

fn h29_some_mechanisms_wake_several_workers() {
    for engine in [Engine::Select, Engine::Poll] {
        let several = woke_several(engine);
        assert!(several >= 20, "{engine}: {several} of 40 connections woke more than one worker");
    }
}
