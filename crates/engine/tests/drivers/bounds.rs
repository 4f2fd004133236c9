//! Bounds, and the behaviour at each bound.

use std::thread;
use std::time::{Duration, Instant};

use tenfold_engine::{Dispatch, Driver, Engine, Topology};
use tenfold_testkit::time::{PATIENCE, becomes_true, eventually, not_before, with_deadlines};
use tenfold_testkit::wire::Wire;

use crate::Statement;
use crate::configuration::{Configuration, any, at_once};
use crate::endings::{LATE, REFUSED};
use crate::launch::{Server, milliseconds, request};
use crate::server::SMALL;

pub(crate) const STATEMENTS: &[Statement] = statements![
    one_worker: connections_past_the_bound_are_closed;
    sees_all_idle: at_the_bound_the_longest_idle_connection_gives_way,
        at_the_bound_a_refused_connection_gives_way_first;
    few: a_refused_connection_gives_way_to_those_that_wait;
    selects: without_descriptors_it_waits_and_goes_on;
    any: who_sends_and_is_not_read_is_held_back;
    once: a_slow_reader_that_goes_on_reading_lives;
    at_once: a_reader_that_stops_is_closed;
];

fn one_worker(configuration: &Configuration) -> bool {
    configuration.at_once()
        && configuration.topology == Topology::Single
        && configuration.engine != Engine::Pool
}

/// Whether the server recognizes every idle connection. A pool that polls all connections does not: a connection that a
/// thread holds does not count as idle.
pub(crate) fn sees_all_idle(configuration: &Configuration) -> bool {
    let tried = configuration.engine == Engine::Busy && configuration.dispatch == Dispatch::Reactor;
    one_worker(configuration) && !tried
}

/// Whether a new connection waits until another one ends.
fn few(configuration: &Configuration) -> bool {
    !configuration.greets_at_once()
}

fn selects(configuration: &Configuration) -> bool {
    // If each worker has its own queue, connections in one may wait for descriptors that another worker holds.
    let one_queue = [Topology::Single, Topology::Threads].contains(&configuration.topology);
    configuration.driver() != Driver::Blocking && one_queue && !configuration.tls
}

/// Selects one configuration for each driver and sender, for cases that take seconds.
fn once(configuration: &Configuration) -> bool {
    let alone = configuration.topology == Topology::Single && configuration.is_default();
    configuration.at_once() && alone && !configuration.scarce && !configuration.tls
}

/// A request that lacks its last line.
const BEGUN: &[u8] = b"GET /small HTTP/1.1\r\nHost: localhost\r\n";

/// Waits until a new connection gets a response, and returns it.
fn is_admitted(server: &Server) -> Wire {
    eventually(PATIENCE, "a new connection is admitted", || {
        let mut client = server.connect();
        // The server may close it meanwhile.
        let _ = client.try_send(&request("/small"));
        client.try_response().map(|_| client)
    })
}

fn connections_past_the_bound_are_closed(configuration: &Configuration) {
    let server = Server::start_with(configuration, &[("connections", "4")]);
    let mut clients: Vec<_> = (0..4).map(|_| server.connect()).collect();
    // No connection is idle: the next request begins before the first is answered.
    clients.iter_mut().for_each(|client| {
        client.send([&request("/small"), BEGUN].concat());
        assert_eq!(client.response().body, SMALL);
    });
    for _ in 0..3 {
        let mut refused = server.connect();
        let (rest, _) = refused.rest();
        assert_eq!(rest, b"");
    }
    clients.iter_mut().for_each(|client| {
        client.send([b"\r\n", BEGUN].concat());
        assert_eq!(client.response().body, SMALL);
    });
    clients.truncate(2);
    is_admitted(&server);
    clients[0].send(b"\r\n");
    assert_eq!(clients[0].response().body, SMALL);
    let text = String::from_utf8(clients[0].fetch("/counters").body).expect("counters are text");
    let count = text.lines().find_map(|line| line.strip_prefix("too-many ")).map(str::parse::<u64>);
    assert!(count.is_some_and(|count| count.is_ok_and(|count| count >= 3)), "{text}");
    server.stop();
}

fn at_the_bound_the_longest_idle_connection_gives_way(configuration: &Configuration) {
    let server = Server::start_with(configuration, &[("connections", "4")]);
    let mut clients: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.fetch("/small").body, SMALL);
        let is_inline =
            configuration.driver() != Driver::Blocking && configuration.dispatch == Dispatch::Inline;
        // The server has a coarse clock, and a separate thread may read it late.
        thread::sleep(Duration::from_millis(if is_inline { 50 } else { 300 }));
    }
    // The first one has not asked for longest, and the second one has begun to ask.
    assert_eq!(clients[0].fetch("/small").body, SMALL);
    clients[1].send(BEGUN);
    // The parent of `fork` does not see bytes that its child has not received.
    server.has_taken(&clients[1]);
    let mut served = is_admitted(&server);
    clients.remove(2).expect_end_of_stream();
    clients[1].send(b"\r\n");
    assert_eq!(clients[1].response().body, SMALL);
    for client in clients.iter_mut().chain([&mut served]) {
        assert_eq!(client.fetch("/small").body, SMALL);
    }
    let text = String::from_utf8(clients[0].fetch("/counters").body).expect("counters are text");
    assert!(text.lines().any(|line| line == "evicted 1"), "{text}");
    server.stop();
}

fn at_the_bound_a_refused_connection_gives_way_first(configuration: &Configuration) {
    let server = Server::start_with(configuration, &[&[("connections", "4")], &LATE[..]].concat());
    let mut refused = server.connect();
    refused.send(REFUSED);
    assert_eq!(refused.response().status, 400);
    let mut clients: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.fetch("/small").body, SMALL);
    }
    // A thread reports late that its connection is idle. After this pause, all connections count as idle.
    thread::sleep(Duration::from_millis(match (configuration.driver(), configuration.dispatch) {
        (Driver::Blocking, _) => 500,
        (_, Dispatch::Inline) => 0,
        (_, _) => 300,
    }));
    clients.push(server.connect());
    for client in &mut clients {
        assert_eq!(client.fetch("/small").body, SMALL);
    }
    refused.expect_end_of_stream();
    becomes_true(PATIENCE, "the refused connection is closed", || refused.try_send_raw(b"x").is_err());
    let text = String::from_utf8(clients[0].fetch("/counters").body).expect("counters are text");
    assert!(text.lines().any(|line| line == "evicted 1"), "{text}");
    server.stop();
}

fn a_refused_connection_gives_way_to_those_that_wait(configuration: &Configuration) {
    let settings = [&[("pool-threads", "1")], &LATE[..]].concat();
    for sends in [false, true] {
        let server = Server::start_with(configuration, &settings);
        let mut refused = server.connect();
        refused.send(REFUSED);
        assert_eq!(refused.response().status, 400);
        let sending = thread::spawn(move || {
            while sends && refused.try_send_raw(b"x").is_ok() {
                // Each byte comes before the linger time is over.
                thread::sleep(Duration::from_millis(5));
            }
            refused
        });
        let mut client = server.connect();
        client.wait_at_most(Duration::from_secs(10));
        assert_eq!(client.fetch("/small").body, SMALL);
        drop(client);
        sending.join().expect("it ends with its connection");
        server.stop();
    }
}

fn without_descriptors_it_waits_and_goes_on(configuration: &Configuration) {
    let server = Server::start_with(configuration, &[("descriptors", "40")]);
    // Each worker opens its own descriptors before connections take the rest. It opens its eventfds last.
    let workers = if configuration.topology == Topology::Single { 1 } else { 2 };
    becomes_true(PATIENCE, "its workers begin", || server.eventfds() >= 2 * workers);
    let mut clients: Vec<_> = (0..60).map(|_| server.connect()).collect();
    clients.iter_mut().for_each(|client| client.get("/small"));
    clients[0].response();
    if configuration.sleeps() {
        server.falls_asleep();
    }
    // Connections that end make room for waiting ones.
    for mut client in clients.drain(1..) {
        assert_eq!(client.response().body, SMALL);
    }
    assert!(server.count("exhausted") >= 1);
    server.stop();
}

/// The server does not receive while an answer is being computed, or while the send buffer is full.
fn who_sends_and_is_not_read_is_held_back(configuration: &Configuration) {
    let server = Server::start(configuration);
    // Each response that takes time begins another wait for the client, which is still sending.
    for (first, others) in [("/never", "/small"), ("/later?5", "/later?5"), ("/large?60000000", "/small")] {
        let mut client = server.connect();
        client.get(first);
        let requests = request(others).repeat(8192);
        let taken = client.send_while_taken(&requests, 128);
        assert!(taken < 64, "{} MiB were taken and not read", (taken * requests.len()) >> 20);
        drop(client);
        if configuration.driver() == Driver::Blocking {
            // A blocking thread only waits for the answer.
            break;
        }
    }
    drop(server);
}

/// The kernel reports room only when much of the buffer is free. Bytes that the client reads before that count as
/// progress.
fn a_slow_reader_that_goes_on_reading_lives(configuration: &Configuration) {
    with_deadlines(|deadline| {
        let server = Server::start_with(configuration, &[("send-timeout", &milliseconds(deadline))]);
        let mut clients = [server.connect(), server.connect()];
        clients[0].get("/large?60000000");
        clients[1].send(request("/shared").repeat(10));
        let (begun, mut read) = (Instant::now(), Instant::now());
        while begun.elapsed() < 3 * deadline {
            let before = std::mem::replace(&mut read, Instant::now());
            if !clients.iter_mut().all(|client| client.try_take(10_000).is_some()) {
                not_before(deadline, before);
                return false;
            }
            // A pace far below that of the server.
            thread::sleep(deadline / 20);
        }
        drop(clients);
        server.has_others(0);
        server.stop();
        true
    });
}

fn a_reader_that_stops_is_closed(configuration: &Configuration) {
    let server = Server::start_with(configuration, &[("send-timeout", "300")]);
    let mut client = server.connect();
    client.take_little();
    client.get("/large?60000000");
    client.head();
    server.has_others(0);
    server.stop();
}
