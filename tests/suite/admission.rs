//! Limits per address and per connection.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::server::Server;
use tenfold_tests::site;
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::wire::{Wire, request};

pub(crate) const THEME: Theme = Theme {
    name: "admission",
    cases: cases![
        Own on WORKERS + ANOTHER: h35_connections_past_the_bound_of_an_address_are_closed_and_counted,
            requests_past_the_rate_of_an_address_are_429_and_counted;
        Own on DRIVERS + ANOTHER: a_connection_keeps_its_rate;
        Own on PROCESSES: a_dead_worker_releases_its_counts;
        Own on DRIVERS + ANOTHER_CONCURRENT: without_settings_there_is_no_limit;
    ],
};

fn refusals(server: &Server, name: &str) -> u64 {
    let status = server.status();
    status["refusals"][name].as_u64().unwrap_or_else(|| panic!("no {name} in {status}"))
}

fn stop(server: Server) {
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn h35_connections_past_the_bound_of_an_address_are_closed_and_counted(config: &Config) {
    const BOUND: usize = 6;
    if config.serial() {
        let output = Launch::new(config, site::shared()).flag("--max-connections-per-address", 6).refused();
        assert_eq!(output.status.code(), Some(2), "one at a time cannot be bounded");
        return;
    }
    let server = Launch::new(config, site::shared()).flag("--max-connections-per-address", BOUND).start();
    let mut kept: Vec<_> =
        (0..BOUND).map(|at| server.idle().unwrap_or_else(|| panic!("connection {at}"))).collect();
    for _ in 0..5 {
        assert!(server.idle().is_none(), "a connection past the bound was served");
        for wire in &mut kept {
            wire.get("/1k.html");
            assert_eq!(wire.response().status, 200, "a connection within the bound");
        }
    }
    becomes_true(SOON, "refusals are counted", || refusals(&server, "too-many-of-address") == 5);
    server.expect_report("127.0.0.1 has 6 connections");
    // Another address of this machine has its own limit.
    let mut other = Wire::connect_from("127.0.0.2", server.address);
    other.get("/1k.html");
    assert_eq!(other.response().status, 200, "another address");
    drop(kept);
    becomes_true(SOON, "there is room again", || server.idle().is_some());
    stop(server);
}

fn requests_past_the_rate_of_an_address_are_429_and_counted(config: &Config) {
    const BURST: usize = 20;
    let launch = Launch::new(config, site::shared()).flag("--max-requests-per-address", 1);
    let server = launch.flag("--request-burst", BURST).start();
    let mut statuses = Vec::new();
    // Several connections, so that several workers receive some.
    for _ in 0..6 {
        let mut wire = server.connect();
        wire.send(request("GET", "/1k.html", &[]).repeat(10));
        for _ in 0..10 {
            let response = wire.response();
            if response.status == 429 {
                let seconds: u64 = response.need("Retry-After").parse().expect("seconds");
                assert!((1..=2).contains(&seconds), "Retry-After: {seconds}");
            }
            statuses.push(response.status);
        }
    }
    assert!(statuses.iter().all(|status| [200, 429].contains(status)), "{statuses:?}");
    let throttled = statuses.iter().filter(|status| **status == 429).count();
    // The bucket gains one request per elapsed second.
    assert!((20..=60 - BURST).contains(&throttled), "{throttled} of 60 requests were too many");
    assert!(statuses[..BURST].iter().all(|status| *status == 200), "a burst is allowed: {statuses:?}");
    becomes_true(SOON, "refusals are counted", || refusals(&server, "throttled") == throttled as u64);
    becomes_true(SOON, "and logged", || server.log().matches("\" 429 ").count() == throttled);
    let mut other = Wire::connect_from("127.0.0.2", server.address);
    other.get("/1k.html");
    assert_eq!(other.response().status, 200, "another address");
    drop(other);
    becomes_true(SOON, "after a pause there is some again", || server.get("/1k.html").status == 200);
    stop(server);
}

/// The kernel paces the connection. On loopback the first ten segments of 64 KiB are not paced.
fn a_connection_keeps_its_rate(config: &Config) {
    let server = Launch::new(config, site::shared()).flag("--max-rate", "2 MiB").start();
    let mut wire = server.connect();
    let begin = Instant::now();
    wire.get("/3m.bin");
    assert_eq!(wire.head().status, 200);
    wire.expect_body(&site::content("3m.bin"));
    assert!(begin.elapsed() > Duration::from_millis(600), "3 MiB at 2 MiB a second in {:?}", begin.elapsed());
    wire.get("/1k.html");
    assert_eq!(wire.response().status, 200, "the connection goes on");
    drop(wire);
    stop(server);
}

fn a_dead_worker_releases_its_counts(config: &Config) {
    const BOUND: usize = 8;
    let server = Launch::new(config, site::shared()).flag("--max-connections-per-address", BOUND).start();
    let kept: Vec<_> = (0..BOUND).filter_map(|_| server.idle()).collect();
    assert_eq!(kept.len(), BOUND);
    assert!(server.idle().is_none(), "the bound is of all workers");
    let killed = server.workers();
    killed.iter().for_each(|worker| worker.signal(Signal::KILL));
    // A worker is replaced after its counts have been settled.
    becomes_true(SOON, "others have taken their places", || {
        let now = server.workers();
        now.len() == killed.len() && !now.iter().any(|worker| killed.contains(worker))
    });
    becomes_true(SOON, "there is room again", || server.idle().is_some());
    let again: Vec<_> = (0..BOUND).filter_map(|_| server.idle()).collect();
    assert!(again.len() >= BOUND - 1, "{} connections", again.len());
    drop((kept, again));
    stop(server);
}

fn without_settings_there_is_no_limit(config: &Config) {
    let server = Launch::new(config, site::shared()).start();
    let kept: Vec<_> = (0..100).filter_map(|_| server.idle()).collect();
    assert_eq!(kept.len(), 100);
    assert_eq!(refusals(&server, "too-many-of-address") + refusals(&server, "throttled"), 0);
    drop(kept);
    stop(server);
}
