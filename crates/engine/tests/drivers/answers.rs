//! Responses arrive whole and in order, however requests are split and responses are read.

use std::thread;
use std::time::Duration;

use tenfold_engine::{Driver, Engine, Sender, Topology};
use tenfold_testkit::folder::TempFolder;

use crate::Statement;
use crate::configuration::{Configuration, any, at_once};
use crate::launch::{Server, request};
use crate::pattern;
use crate::server::{SMALL, TAIL};

pub(crate) const STATEMENTS: &[Statement] = statements![
    any: requests_on_one_connection_are_answered, a_large_file_comes_whole, a_slow_reader_gets_every_byte,
        memory_and_files_keep_their_order, a_request_may_come_byte_by_byte, bodies_are_passed_over,
        sixteen_requests_at_once_are_answered_in_order, a_thousand_requests_wait_for_a_reader_that_stops,
        answers_that_take_time_come_in_their_place, what_panicked_elsewhere_is_answered,
        h74_a_panic_closes_one_connection;
    on_a_loop: batches_of_many_connections_are_answered;
    one_worker: a_connection_rests_and_is_served_again, ipv6_is_served;
    at_once: hundreds_of_connections_are_served_at_once;
    unix: unix_sockets_are_served;
];

fn one_worker(configuration: &Configuration) -> bool {
    configuration.topology == Topology::Single
}

/// Only TCP sends without copying.
fn unix(configuration: &Configuration) -> bool {
    one_worker(configuration) && configuration.sender != Sender::Zerocopy
}

fn on_a_loop(configuration: &Configuration) -> bool {
    configuration.driver() != Driver::Blocking
}

fn requests_on_one_connection_are_answered(configuration: &Configuration) {
    let server = Server::start(configuration);
    let mut client = server.connect();
    for _ in 0..5 {
        let response = client.fetch("/small");
        assert_eq!((response.status, response.body.as_slice()), (200, SMALL));
        assert_eq!(client.fetch("/shared?70000").body, pattern::bytes(70_000));
    }
    assert_eq!(client.fetch("/nothing").status, 404);
    drop(client);
    server.stop();
}

fn a_large_file_comes_whole(configuration: &Configuration) {
    let plain = !configuration.tls && !configuration.scarce && configuration.is_default();
    let length = if plain && one_worker(configuration) { pattern::LARGE } else { 4 << 20 };
    let server = Server::start(configuration);
    let mut client = server.connect();
    client.get(&format!("/large?{length}"));
    assert_eq!(client.head().promised(), length);
    for part in pattern::large()[..length].chunks(1 << 20) {
        assert!(client.take(part.len()) == part, "a part of the file is another one");
    }
    assert_eq!(client.fetch("/small").body, SMALL);
    drop(client);
    server.stop();
}

fn a_slow_reader_gets_every_byte(configuration: &Configuration) {
    let length = 2 << 20;
    let server = Server::start_with_little_room(configuration);
    for target in ["/shared?1000000", "/large?2097152"] {
        let mut client = server.connect();
        client.take_little();
        client.get(target);
        let length = client.head().promised().min(length);
        // The pieces are so small that the server waits for room repeatedly.
        for part in pattern::large()[..length].chunks(length / 50) {
            assert!(client.take(part.len()) == part, "a part of {target} is another one");
            // Meanwhile the server fills the buffers.
            thread::sleep(Duration::from_millis(4));
        }
        assert_eq!(client.fetch("/small").body, SMALL);
    }
    server.stop();
}

fn memory_and_files_keep_their_order(configuration: &Configuration) {
    let server = Server::start_with_little_room(configuration);
    let mut client = server.connect();
    client.take_little();
    let mut expected = Vec::new();
    for part in [0..3000, 100_000..400_001, 17..18] {
        expected.extend_from_slice(&pattern::large()[..5000]);
        expected.extend_from_slice(&pattern::large()[part]);
        expected.extend_from_slice(TAIL);
    }
    for _ in 0..3 {
        client.get("/mix");
    }
    for _ in 0..3 {
        assert!(client.response().body == expected, "the parts of an answer are in another order");
    }
    drop(client);
    server.stop();
}

fn a_request_may_come_byte_by_byte(configuration: &Configuration) {
    let server = Server::start(configuration);
    let mut client = server.connect();
    for _ in 0..2 {
        for byte in request("/small") {
            client.send([byte]);
            // The server often receives a byte at a time.
            thread::sleep(Duration::from_micros(500));
        }
        assert_eq!(client.response().body, SMALL);
    }
    drop(client);
    server.stop();
}

fn bodies_are_passed_over(configuration: &Configuration) {
    let server = Server::start(configuration);
    let mut client = server.connect();
    for length in [1, 5000, 60_000] {
        let head = format!("POST /small HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n");
        let whole = [head.into_bytes(), vec![b'x'; length], request("/shared?10")].concat();
        let (first, rest) = whole.split_at(70);
        client.send(first);
        // The server waits in the middle of the head.
        thread::sleep(Duration::from_millis(10));
        client.send(rest);
        assert_eq!(client.response().body, SMALL);
        assert_eq!(client.response().body, pattern::bytes(10));
    }
    drop(client);
    server.stop();
}

fn sixteen_requests_at_once_are_answered_in_order(configuration: &Configuration) {
    let server = Server::start(configuration);
    let mut client = server.connect();
    for _ in 0..3 {
        let all: Vec<u8> = (0..16).flat_map(|number| request(&format!("/shared?{number}000"))).collect();
        client.send(&all);
        for number in 0..16 {
            assert!(
                client.response().body == pattern::bytes(number * 1000),
                "answer {number} is another one"
            );
        }
    }
    drop(client);
    server.stop();
}

/// One tick answers the requests of many connections.
fn batches_of_many_connections_are_answered(configuration: &Configuration) {
    let server = Server::start(configuration);
    let (mut clients, mut slow): (Vec<_>, _) =
        ((0..24).map(|_| server.connect()).collect(), server.connect());
    let batch = [request("/small"), request("/shared?7000")].concat().repeat(30);
    for _ in 0..3 {
        // The other requests arrive during this sleep.
        slow.get("/sleep?100");
        for client in &mut clients {
            client.send(&batch);
        }
        for client in &mut clients {
            for _ in 0..30 {
                assert_eq!(client.response().body, SMALL);
                assert_eq!(client.response().body, pattern::bytes(7000));
            }
        }
        assert_eq!(slow.response().body, SMALL);
    }
    drop((clients, slow));
    server.stop();
}

fn a_thousand_requests_wait_for_a_reader_that_stops(configuration: &Configuration) {
    let length = if configuration.tls || configuration.scarce { 2000 } else { 9_000 };
    let server = Server::start(configuration);
    let mut client = server.connect();
    let mut writer = client.writer();
    let asking = thread::spawn(move || {
        for number in 0..1000 {
            writer.get(&format!("/shared?{}", length + number % 7));
        }
    });
    // The answers fill the buffers of both ends.
    thread::sleep(Duration::from_millis(200));
    let expected = pattern::bytes(length + 7);
    for number in 0..1000 {
        if number % 250 == 0 {
            // The buffers fill again.
            thread::sleep(Duration::from_millis(50));
        }
        let body = client.response().body;
        assert!(body == expected[..length + number % 7], "answer {number} is another one");
    }
    asking.join().expect("the requests were taken");
    drop(client);
    server.stop();
}

fn a_connection_rests_and_is_served_again(configuration: &Configuration) {
    // Each request is a round trip between two processes, so only one configuration of each driver makes many.
    let times = if configuration.is_default() && configuration.sends_files() { 10_000 } else { 300 };
    let server = Server::start(configuration);
    let mut client = server.connect();
    for _ in 0..times {
        assert_eq!(client.fetch("/small").body, SMALL);
    }
    if configuration.at_once() {
        let accepted = server.count("accepted");
        // A process may answer before its parent has counted the connection that asks.
        let is_uncounted = configuration.engine == Engine::Fork && accepted == 1;
        assert!(accepted == 2 || is_uncounted, "{accepted}, and not one connection and the one that asks");
    }
    drop(client);
    server.stop();
}

fn hundreds_of_connections_are_served_at_once(configuration: &Configuration) {
    let count = configuration.most_at_once();
    // The server waits for the first connection's request until the last connection is open.
    let server = Server::start_with(configuration, &[("head-timeout", "60000")]);
    let mut clients: Vec<_> = (0..count).map(|_| server.connect()).collect();
    for _ in 0..2 {
        clients.iter_mut().for_each(|client| client.get("/shared?2000"));
        for client in &mut clients {
            assert!(client.response().body == pattern::bytes(2000), "an answer is another one");
        }
    }
    drop(clients);
    if configuration.driver() != Driver::Blocking {
        server.has_counted("closed", count);
    }
    server.stop();
}

fn answers_that_take_time_come_in_their_place(configuration: &Configuration) {
    let server = Server::start(configuration);
    let mut client = server.connect();
    client.send([request("/shared?20"), request("/later?30"), request("/shared?40")].concat());
    // The server computes the second answer.
    thread::sleep(Duration::from_millis(10));
    // These requests arrive while the answer is being computed.
    client.send([request("/later?1"), request("/shared?60")].concat());
    assert_eq!(client.response().body, pattern::bytes(20));
    assert_eq!(client.response().body, SMALL);
    assert_eq!(client.response().body, pattern::bytes(40));
    assert_eq!(client.response().body, SMALL);
    assert_eq!(client.response().body, pattern::bytes(60));
    for _ in 0..20 {
        assert_eq!(client.fetch("/later?0").body, SMALL);
    }
    drop(client);
    server.stop();
}

fn what_panicked_elsewhere_is_answered(configuration: &Configuration) {
    let server = Server::start(configuration);
    let mut client = server.connect();
    assert_eq!(client.fetch("/later?13").status, 500);
    assert_eq!(client.fetch("/later?1").body, SMALL);
    drop(client);
    server.stop();
}

fn h74_a_panic_closes_one_connection(configuration: &Configuration) {
    let server = Server::start(configuration);
    for before in ["", "/small", "/large?300000"] {
        let mut client = server.connect();
        if !before.is_empty() {
            client.get(before);
            client.response();
        }
        client.get("/panic");
        let (rest, _) = client.rest();
        assert_eq!(rest, b"");
    }
    // The next connection may get the descriptor number of this one.
    for _ in 3..20 {
        let mut client = server.connect();
        client.get("/panic");
        assert_eq!(client.rest().0, b"");
        assert_eq!(server.connect().fetch("/small").body, SMALL);
    }
    server.has_counted("panicked", 20);
    server.stop();
}

fn unix_sockets_are_served(configuration: &Configuration) {
    let folder = TempFolder::new("socket");
    let path = folder.at("socket");
    let (server, mut client) =
        Server::with_client(configuration, &[("listen", &format!("unix:{}", path.display()))]);
    assert!(client.fetch("/mix").body.ends_with(TAIL));
    assert!(client.fetch("/large?3000000").body == pattern::large()[..3_000_000], "the file is another one");
    drop(client);
    server.stop();
}

fn ipv6_is_served(configuration: &Configuration) {
    let server = Server::start_with(configuration, &[("listen", "[::1]:0")]);
    assert!(server.address().is_ipv6());
    assert_eq!(server.connect().fetch("/small").body, SMALL);
    server.stop();
}
