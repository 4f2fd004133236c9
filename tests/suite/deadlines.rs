//! Every wait has a deadline, and a vanished peer leaves no resources behind.

use std::io::{ErrorKind, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tenfold_engine::{Dispatch, Sender, Topology};
use tenfold_tests::cases;
use tenfold_tests::config::{Config, POOL_THREADS};
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::server::Server;
use tenfold_tests::site;
use tenfold_tests::time::{SOON, becomes_true, not_before, with_deadlines};
use tenfold_tests::wire::{Wire, request};

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

/// The bound for an event that is due after a deadline, on a busy machine.
const BOUND: Duration = Duration::from_secs(15);
/// A deadline that applies however late the client is.
const DEADLINE: Duration = Duration::from_millis(300);

/// A flag of the server with this time.
fn launch(config: &Config, flag: &str, time: Duration) -> Launch {
    Launch::new(config, site::shared()).flag(flag, format!("{}ms", time.as_millis()))
}

/// Requests a page. Returns false if the connection has ended, or ends before the response.
fn asks(wire: &mut Wire) -> bool {
    let sent = wire.try_send(&request("GET", "/1k.html", &[])).is_ok();
    let response = sent.then(|| wire.try_response()).flatten();
    response.is_some_and(|response| {
        assert_eq!(response.status, 200);
        true
    })
}

/// Whether bytes or the end of the server's output have come. Through TLS, the tickets of the session also come.
fn has_come(wire: &Wire) -> bool {
    let socket = wire.socket();
    socket.set_nonblocking(true).expect("a socket takes options");
    let peeked = socket.peek(&mut [0]);
    socket.set_nonblocking(false).expect("a socket takes options");
    !peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// Single bytes do not extend the deadline.
fn h23_a_slow_head_is_408(config: &Config) {
    with_deadlines(|deadline| sends_slowly(config, deadline));
}

/// The timeout of a head also applies to the handshake.
fn a_slow_head_through_the_layer(config: &Config) {
    with_deadlines(|deadline| sends_slowly(config, deadline));
}

/// Sends a head for longer than the server waits, then another in time. Returns whether the first bytes were in time.
fn sends_slowly(config: &Config, deadline: Duration) -> bool {
    let server = launch(config, "--head-timeout", deadline).start();
    let begin = Instant::now();
    let mut wire = server.connect();
    let head = request("GET", "/1k.html", &[("X-Long", &"x".repeat(2000))]);
    for byte in &head {
        // The server discards bytes after its response, or refuses them.
        let is_over = if config.tls { begin.elapsed() > 2 * deadline } else { has_come(&wire) };
        if is_over || wire.try_send(&[*byte]).is_err() {
            break;
        }
        // Bytes come until the deadline.
        sleep(deadline / 20);
    }
    // Without a byte in time there is no response.
    let response = wire.try_response();
    not_before(deadline, begin);
    let Some(response) = response else { return false };
    assert_eq!(response.status, 408);
    assert!(response.closes(), "the response does not say that it is the last");
    wire.expect_end();
    becomes_true(SOON, "a head in time is answered", || asks(&mut server.connect()));
    server.stop().unwrap_or_else(|why| panic!("{why}"));
    true
}

/// A connection with a part of a record is not idle, so the idle timeout must not apply. The timeout of a head applies
/// to the handshake too.
fn h97_a_record_between_requests_has_the_time_of_a_head(config: &Config) {
    with_deadlines(|deadline| {
        let launch = launch(&config.over_tls(), "--head-timeout", deadline);
        let server = launch.flag("--idle-timeout", "60s").start();
        let (mut begin, mut wire) = (Instant::now(), server.connect());
        if !asks(&mut wire) {
            not_before(deadline, begin);
            return false;
        }
        begin = Instant::now();
        wire.socket().write_all(&[23, 3, 3, 0]).expect("it is connected");
        let (rest, _) = wire.rest();
        assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
        not_before(deadline, begin);
        server.stop().unwrap_or_else(|why| panic!("{why}"));
        true
    });
}

fn h24_a_slow_body_ends(config: &Config) {
    let server = launch(config, "--body-timeout", DEADLINE).start();
    let mut wire = server.connect();
    let begin = Instant::now();
    wire.send(request("POST", "/1k.html", &[("Content-Length", "10000")]));
    assert_eq!(wire.response().status, 405);
    while !has_come(&wire) && begin.elapsed() < SOON && wire.try_send(b"b").is_ok() {
        // Bytes come until the deadline, at less than the minimum rate.
        sleep(DEADLINE / 20);
    }
    let (rest, _) = wire.rest();
    let rest = String::from_utf8_lossy(&rest).into_owned();
    assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 408 "), "{rest:?}");
    not_before(DEADLINE, begin);
    assert!(begin.elapsed() < SOON, "it took {:?}", begin.elapsed());
    assert_eq!(server.get("/1k.html").status, 200, "the server goes on");
}

/// Each request extends the time of an idle connection.
fn an_idle_connection_times_out(config: &Config) {
    with_deadlines(|deadline| {
        let server = launch(config, "--idle-timeout", deadline).start();
        let mut wire = server.connect();
        let mut asked = Instant::now();
        for number in 0..10 {
            let before = std::mem::replace(&mut asked, Instant::now());
            if !asks(&mut wire) {
                assert!(number > 0, "a new connection is not idle");
                not_before(deadline, before);
                return false;
            }
            // Ten of them take longer than the deadline.
            sleep(deadline / 5);
        }
        wire.expect_dropped();
        not_before(deadline, asked);
        assert_eq!(server.get("/1k.html").status, 200, "the server goes on");
        true
    });
}

/// The client reads for longer than two deadlines, at a rate above the minimum.
fn a_slow_but_steady_client_is_served(config: &Config) {
    with_deadlines(|deadline| {
        let server = launch(config, "--send-timeout", deadline).start();
        let mut wire = server.connect();
        rustix::net::sockopt::set_socket_recv_buffer_size(wire.socket(), 16 * 1024)
            .expect("a socket of ours");
        wire.get("/large.bin");
        assert_eq!(wire.head().status, 200);
        let (begin, mut read, mut rest) = (Instant::now(), Instant::now(), site::large());
        while begin.elapsed() < 5 * deadline / 2 {
            let before = std::mem::replace(&mut read, Instant::now());
            let (part, after) = rest.split_at(100_000);
            match wire.try_take(part.len()) {
                Some(bytes) => assert!(bytes == part, "the body is another"),
                None => {
                    not_before(deadline, before);
                    return false;
                }
            }
            rest = after;
            // A pace far below that of the server.
            sleep(deadline / 40);
        }
        wire.expect_body(rest);
        true
    });
}

fn h25_a_client_that_does_not_read_is_dropped(config: &Config) {
    let server = launch(config, "--send-timeout", DEADLINE).start();
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
