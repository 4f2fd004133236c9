//! Every wait has a deadline, and a vanished peer leaves no resources behind.

use std::io::Write;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tenfold_engine::{Dispatch, Sender, Topology};
use tenfold_tests::cases;
use tenfold_tests::config::{Config, POOL_THREADS};
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::server::Server;
use tenfold_tests::site;
use tenfold_tests::time::becomes_true;
use tenfold_tests::wire::request;

pub(crate) const THEME: Theme = Theme {
    name: "deadlines",
    cases: cases![
        Own on ENGINES: h23_a_slow_head_is_408, h24_a_slow_body_ends, an_idle_connection_times_out;
        Own on DRIVERS + ANOTHER: a_slow_but_steady_client_is_served;
        Own on SENDERS: h25_a_client_that_does_not_read_is_dropped, h27_resets_leave_nothing_behind;
        Own on TLS + ANOTHER_TLS: a_slow_head_through_the_layer;
        Own on EPOLL + URING: h97_a_record_between_requests_has_the_time_of_a_head;
    ],
};

/// The bound for an event that is due after a second, on a busy machine.
const BOUND: Duration = Duration::from_secs(15);

fn impatient(config: &Config) -> Server {
    let launch = Launch::new(config, site::shared());
    let launch = launch.flag("--head-timeout", "1s").flag("--body-timeout", "1s");
    launch.flag("--send-timeout", "1s").flag("--idle-timeout", "1s").start()
}

/// Single bytes do not extend the deadline.
fn h23_a_slow_head_is_408(config: &Config) {
    let server = impatient(config);
    send_slowly(&server, Duration::from_secs(1));
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The timeout of a head also applies to the handshake, which takes a second on a busy machine.
fn a_slow_head_through_the_layer(config: &Config) {
    let server = Launch::new(config, site::shared()).flag("--head-timeout", "3s").start();
    send_slowly(&server, Duration::from_secs(3));
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// Sends a head for longer than the server waits, then another in time.
fn send_slowly(server: &Server, timeout: Duration) {
    let mut wire = server.connect();
    let begin = Instant::now();
    let head = request("GET", "/1k.html", &[("X-Long", &"x".repeat(2000))]);
    for byte in &head {
        // The server may refuse further bytes after its response.
        if wire.try_send(&[*byte]).is_err() || begin.elapsed() > timeout + Duration::from_millis(1500) {
            break;
        }
        sleep(Duration::from_millis(20));
    }
    let response = wire.response();
    assert_eq!(response.status, 408);
    assert!(response.closes(), "the response does not say that it is the last");
    assert!(begin.elapsed() < BOUND, "it took {:?}", begin.elapsed());
    wire.expect_end();
    let mut wire = server.connect();
    wire.get("/1k.html");
    assert_eq!(wire.response().status, 200, "a head in time is answered");
}

/// A connection with a part of a record is not idle, so the idle timeout must not apply. The timeout of a head applies
/// to the handshake too.
fn h97_a_record_between_requests_has_the_time_of_a_head(config: &Config) {
    let launch = Launch::new(&config.over_tls(), site::shared());
    let server = launch.flag("--head-timeout", "3s").flag("--idle-timeout", "60s").start();
    let mut wire = server.connect();
    wire.get("/1k.html");
    assert_eq!(wire.response().status, 200);
    let (begin, mut socket) = (Instant::now(), wire.socket());
    socket.write_all(&[23, 3, 3, 0]).expect("it is connected");
    let (rest, _) = wire.rest();
    assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
    assert!(begin.elapsed() < BOUND, "it took {:?}", begin.elapsed());
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn h24_a_slow_body_ends(config: &Config) {
    let server = impatient(config);
    let mut wire = server.connect();
    wire.send(request("POST", "/1k.html", &[("Content-Length", "10000")]));
    assert_eq!(wire.response().status, 405);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(4) && wire.try_send(b"b").is_ok() {
        sleep(Duration::from_millis(50));
    }
    let (rest, _) = wire.rest();
    let rest = String::from_utf8_lossy(&rest).into_owned();
    assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 408 "), "{rest:?}");
    assert!(begin.elapsed() < BOUND, "it took {:?}", begin.elapsed());
    assert_eq!(server.get("/1k.html").status, 200, "the server goes on");
}

fn an_idle_connection_times_out(config: &Config) {
    // Longer than in the other cases, so that a late request is in time.
    let launch = Launch::new(config, site::shared()).flag("--head-timeout", "1s");
    let server = launch.flag("--idle-timeout", "4500ms").start();
    let mut wire = server.connect();
    for _ in 0..10 {
        wire.get("/1k.html");
        assert_eq!(wire.response().status, 200);
        sleep(Duration::from_millis(500));
    }
    let begin = Instant::now();
    wire.expect_dropped();
    assert!(begin.elapsed() < BOUND, "it took {:?}", begin.elapsed());
    let mut silent = server.connect();
    silent.send("G");
    silent.rest();
    assert_eq!(server.get("/1k.html").status, 200, "the server goes on");
}

/// The client reads for longer than two deadlines, at a rate above the minimum. On a busy machine it may pause for
/// seconds.
fn a_slow_but_steady_client_is_served(config: &Config) {
    let server = Launch::new(config, site::shared()).flag("--send-timeout", "4s").start();
    let mut wire = server.connect();
    rustix::net::sockopt::set_socket_recv_buffer_size(wire.socket(), 16 * 1024).expect("a socket of ours");
    wire.get("/large.bin");
    assert_eq!(wire.head().status, 200);
    let large = site::large();
    let mut at = 0;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(10) {
        wire.expect_body(&large[at..at + 100_000]);
        at += 100_000;
        sleep(Duration::from_millis(100));
    }
    wire.expect_body(&large[at..]);
}

fn h25_a_client_that_does_not_read_is_dropped(config: &Config) {
    let server = impatient(config);
    let left = settled(&server);
    let mut stalled: Vec<_> = (0..if config.serial() { 1 } else { 5 }).map(|_| server.connect()).collect();
    for wire in &mut stalled {
        rustix::net::sockopt::set_socket_recv_buffer_size(wire.socket(), 64 * 1024)
            .expect("a socket of ours");
        wire.get("/large.bin");
        assert_eq!(wire.head().status, 200);
    }
    becomes_true(BOUND, "stalled connections are dropped", || left.none(&server));
    for mut wire in stalled {
        let (rest, _) = wire.rest();
        assert!(rest.len() < site::LARGE, "it was sent whole to somebody who did not read");
    }
    assert_eq!(server.get("/1k.html").status, 200, "the server goes on");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn h27_resets_leave_nothing_behind(config: &Config) {
    let server = Launch::new(config, site::shared()).start();
    let left = settled(&server);
    for round in 0..10usize {
        let mut wire = server.connect();
        wire.get("/large.bin");
        wire.take(1 + round * 50_000);
        wire.reset();
        let mut wire = server.connect();
        wire.get("/1k.html");
        wire.reset();
        let mut wire = server.connect();
        wire.send("GET /1k.html HT");
        wire.reset();
    }
    becomes_true(BOUND, "descriptors are given back", || left.none(&server));
    assert_eq!(server.get("/1k.html").status, 200, "the server goes on");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The most connections of a case that send concurrently, each with a pipe.
const MOST_AT_ONCE: usize = 10;

/// The descriptors of a server after its connections have ended.
struct Left {
    sockets: usize,
    descriptors: usize,
}

impl Left {
    /// Whether all resources of connections are released. Threads that serve for the first time keep two files open. On
    /// a shared socket, one of them may have served all connections until then. Pipes are kept for later use by splice.
    fn none(&self, server: &Server) -> bool {
        let config = &server.config;
        let pool = if config.dispatch == Dispatch::Inline { 0 } else { POOL_THREADS };
        let pipes = if config.sender == Sender::Splice { MOST_AT_ONCE } else { 0 };
        let workers = if config.topology == Topology::Threads { config.workers() - 1 } else { 0 };
        let kept = 2 * (config.at_once().unwrap_or_default() + workers + pool + pipes);
        server.sockets() <= self.sockets && server.descriptors() <= self.descriptors + kept
    }
}

fn settled(server: &Server) -> Left {
    // Each worker keeps files of its own open, so each must serve both files, even if workers take connections in turn.
    for _ in 0..16 {
        let mut wire = server.connect();
        for (target, fields) in [("/1k.html", &[][..]), ("/large.bin", &[("Connection", "close")])] {
            wire.send(request("HEAD", target, fields));
            assert_eq!(wire.head().status, 200);
        }
    }
    let mut before = (0, 0);
    becomes_true(BOUND, "descriptors settle", || {
        let now = (server.sockets(), server.descriptors());
        std::mem::replace(&mut before, now) == now
    });
    Left { sockets: before.0, descriptors: before.1 }
}
