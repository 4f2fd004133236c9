//! Idle connections give way to new ones.

use std::net::{SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::Duration;

use tenfold_engine::{Dispatch, Engine};
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::server::Server;
use tenfold_tests::site;
use tenfold_tests::time::{SOON, becomes_true, eventually};
use tenfold_tests::wire::{Wire, request};

pub(crate) const THEME: Theme = Theme {
    name: "eviction",
    cases: cases![
        Own on TOPOLOGIES: h84_an_idle_connection_gives_way_to_a_new_one;
        Own on DISPATCHES: h84_idle_connections_of_a_dispatched_loop_give_way;
        Own on ENGINES: h84_a_connection_without_a_request_gives_way;
        Once: h84_off_loopback_an_address_has_a_quarter_of_the_connections;
    ],
};

/// The limit of each worker.
const BOUND: usize = 10;

/// A server, and the number of its concurrent connections.
fn bounded(config: &Config) -> (Server, usize) {
    let launch = Launch::new(config, site::shared());
    match config.at_once() {
        Some(count) => (launch.start(), count),
        None => (launch.flag("--max-connections", BOUND).start(), BOUND * config.workers()),
    }
}

fn evicted(server: &Server) -> u64 {
    let status = server.status();
    status["connections"]["evicted"].as_u64().unwrap_or_else(|| panic!("no such number in {status}"))
}

fn stop(server: Server) {
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn h84_an_idle_connection_gives_way_to_a_new_one(config: &Config) {
    if config.workers() > 1 {
        return each_new_connection_is_served(config);
    }
    let (server, room) = bounded(config);
    let mut kept = Vec::new();
    for number in 0..room {
        kept.push(server.idle().unwrap_or_else(|| panic!("connection {number} within the bound")));
        let waits = number == 0 && config.engine != Engine::Busy;
        if waits {
            let all_wait = || server.process.with_descendants().iter().all(|process| process.is_sleeping());
            becomes_true(SOON, "the connection waits", all_wait);
        }
        // The server uses a coarse clock, and a loop that never waits may try connections late.
        sleep(Duration::from_millis(if number > 0 {
            1
        } else if waits {
            50
        } else {
            500
        }));
    }
    assert_eq!(evicted(&server), 0);
    // If calls block, a connection counts as idle only after one of their waits.
    kept.push(eventually(SOON, "a new connection is served", || server.idle()));
    let first = kept.remove(0);
    becomes_true(SOON, "the longest idle one ends in order", || first.has_ended());
    for wire in &mut kept {
        wire.get("/1k.html");
        assert_eq!(wire.response().status, 200, "the others go on");
    }
    assert_eq!(evicted(&server), 1);
    let words = "idle connections are closed for new ones";
    server.expect_report(words);
    assert_eq!(server.errors().matches(words).count(), 1, "{}", server.errors());
    drop(kept);
    stop(server);
}

fn h84_idle_connections_of_a_dispatched_loop_give_way(config: &Config) {
    each_new_connection_is_served(config);
}

/// The kernel, or a queue, chooses the worker; each worker has its own limit.
fn each_new_connection_is_served(config: &Config) {
    let (server, room) = bounded(config);
    // The threads of a pool that try every connection in turn may hold all connections at the time of an accept.
    let sees_all = config.engine != Engine::Busy || config.dispatch != Dispatch::Reactor;
    let connect = |at: usize| match sees_all {
        true => server.idle().unwrap_or_else(|| panic!("connection {at}")),
        false => eventually(SOON, "a new connection is served", || server.idle()),
    };
    let all: Vec<Wire> = (0..3 * room).map(connect).collect();
    becomes_true(SOON, "those that end are counted", || {
        let ended = all.iter().filter(|wire| wire.has_ended()).count();
        let status = server.status();
        status["connections"]["evicted"] == ended && status["connections"]["open"] == all.len() - ended
    });
    let (ended, left): (Vec<_>, Vec<_>) = all.into_iter().partition(Wire::has_ended);
    assert!(ended.len() >= 2 * room, "{} of {} gave way", ended.len(), 3 * room);
    for mut wire in left {
        wire.get("/1k.html");
        assert_eq!(wire.response().status, 200, "the others go on");
    }
    let refused = &server.status()["refusals"]["too-many-connections"];
    assert!(*refused == 0 || !sees_all, "{refused} were refused");
    stop(server);
}

/// Otherwise an attacker could hold all connections without a request until the timeout.
fn h84_a_connection_without_a_request_gives_way(config: &Config) {
    let (server, room) = bounded(config);
    let silent: Vec<Wire> = (0..room).map(|_| server.connect()).collect();
    let accepted = |server: &Server| server.status()["connections"]["accepted"] == room;
    becomes_true(SOON, "they are accepted", || accepted(&server));
    let mut served = eventually(SOON, "a new connection is served", || server.idle());
    becomes_true(SOON, "one of them ends in order", || silent.iter().any(Wire::has_ended));
    assert_eq!(silent.iter().filter(|wire| wire.has_ended()).count(), 1);
    assert_eq!(evicted(&server), 1);
    served.get("/1k.html");
    assert_eq!(served.response().status, 200);
    drop(silent);
    stop(server);
}

/// A non-loopback address of this machine, if it has one: the source address of a packet that is never sent.
fn own_address() -> Option<SocketAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("198.51.100.1:9").ok()?;
    socket.local_addr().ok().filter(|at| !at.ip().is_loopback())
}

fn h84_off_loopback_an_address_has_a_quarter_of_the_connections() {
    const LEAST: usize = 256;
    let config = Config::of(Engine::Epoll);
    let launch = Launch::new(&config, site::shared()).flag("--max-connections", 4 * LEAST + 3);
    let launch = launch.flag("--listen", "0.0.0.0:0").flag("--log-level", "debug");
    let server = launch.start_configured();
    let loopback = server.address;
    assert!(server.errors().contains(", 256 of one address"), "{}", server.errors());
    let served = |at: SocketAddr| {
        let mut wire = Wire::connect(at);
        wire.try_send(&request("HEAD", "/1k.html", &[])).ok()?;
        wire.try_head().filter(|head| head.status == 200)?;
        Some(wire)
    };
    let here = || served(loopback).expect("loopback has no bound by default");
    let mut kept: Vec<Wire> = (0..LEAST + 10).map(|_| here()).collect();
    // A machine without a network has no other address. Unit tests also cover this case.
    if let Some(own) = own_address() {
        let own = SocketAddr::new(own.ip(), loopback.port());
        kept.extend((0..LEAST).map(|at| served(own).unwrap_or_else(|| panic!("connection {at}"))));
        assert!(served(own).is_none(), "a connection past the bound was served");
        becomes_true(SOON, "it is counted", || server.status()["refusals"]["too-many-of-address"] == 1);
        kept.push(here());
    }
    assert_eq!(evicted(&server), 0);
    drop(kept);
    stop(server);
}
