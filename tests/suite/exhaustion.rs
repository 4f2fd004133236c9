//! More connections than the server accepts.

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use tenfold_engine::{Dispatch, Engine, Topology};
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::process::Process;
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::tools::{is_root, program};
use tenfold_tests::wire::{BEGUN, Wire, request};

pub(crate) const THEME: Theme = Theme {
    name: "exhaustion",
    cases: cases![
        Own on CONCURRENT + DISPATCHES: h35_connections_past_the_bound_are_closed_and_counted,
            the_bound_follows_the_descriptor_limit, other_connections_go_on_and_service_returns,
            h28_no_descriptors_no_spin;
        Own on ENGINES, Measure: a_thousand_at_once_are_answered;
        Once: a_full_pool_queue_refuses_and_counts;
    ],
};

/// The limit of each worker.
const BOUND: usize = 10;

/// After this number of refusals, the kernel has chosen every worker with its own socket.
const CHOICES: u64 = 300;

fn refusals(server: &Server) -> u64 {
    let status = server.status();
    let count =
        |name: &str| status["refusals"][name].as_u64().unwrap_or_else(|| panic!("no {name} in {status}"));
    count("too-many-connections") + count("exhausted")
}

/// Connections in the middle of a request, up to the limit of each worker.
struct FullServer {
    kept: Vec<Wire>,
    /// The number of refused connections so far.
    refused: u64,
    /// The number of connections that all workers accept together.
    room: usize,
}

impl FullServer {
    /// Opens connections until each worker of `server` is at its limit. If the kernel chooses the worker, a full one
    /// refuses while another has room. On a shared socket it may choose the same worker repeatedly.
    #[track_caller]
    fn of(server: &Server) -> FullServer {
        let config = &server.config;
        let mut full = FullServer { kept: Vec::new(), refused: 0, room: BOUND * config.workers() };
        // There is one worker, or the workers take turns.
        let in_order = config.workers() == 1 || config.topology == Topology::Handoff;
        let sure = if in_order { full.room } else { BOUND };
        while full.kept.len() < full.room && full.refused < CHOICES {
            full.one_more(server);
            let kept = full.kept.len();
            assert!(full.refused == 0 || kept >= sure, "connection {kept} of {sure} was refused");
        }
        let all = full.kept.len() == full.room || config.topology == Topology::Threads;
        assert!(all, "{} connections, with room for {}; all others were refused", full.kept.len(), full.room);
        full
    }

    /// Opens another connection, which is refused if all workers are full.
    #[track_caller]
    fn one_more(&mut self, server: &Server) {
        match server.busy() {
            Some(wire) => self.kept.push(wire),
            None => self.refused += 1,
        }
        assert!(self.kept.len() <= self.room, "a connection past the bound was served");
    }
}

/// A server with a long timeout for requests.
fn bounded(config: &Config) -> Server {
    let launch = Launch::new(config, site::shared()).flag("--max-connections", BOUND);
    launch.flag("--head-timeout", "300s").start()
}

fn h35_connections_past_the_bound_are_closed_and_counted(config: &Config) {
    let server = bounded(config);
    let mut full = FullServer::of(&server);
    (0..10).for_each(|_| full.one_more(&server));
    assert!(full.refused > 0, "nobody was refused");
    becomes_true(SOON, "refusals are counted", || refusals(&server) == full.refused);
    assert_eq!(server.status()["connections"]["evicted"], 0, "none was idle");
    for wire in &mut full.kept {
        assert_eq!(wire.response_between().status, 200, "a connection within the bound");
    }
    let words = "there are as many connections as the bounds allow";
    server.expect_report(words);
    let said = server.errors().matches(words).count();
    assert!((1..=config.workers()).contains(&said), "each process says it once: {}", server.errors());
    drop(full);
    becomes_true(SOON, "there is room again", || server.idle().is_some());
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn other_connections_go_on_and_service_returns(config: &Config) {
    let server = bounded(config);
    let mut full = FullServer::of(&server);
    for _ in 0..3 {
        full.one_more(&server);
        for wire in &mut full.kept {
            assert_eq!(wire.response_between().status, 200, "a connection within the bound");
        }
    }
    // If the kernel may choose one worker repeatedly, a connection of every worker must end.
    let left = if config.topology == Topology::Threads { BOUND } else { full.kept.len() };
    full.kept.truncate(left - 1);
    becomes_true(SOON, "service returns when one connection is gone", || server.idle().is_some());
    drop(full);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// With few descriptors and no configured limit, the limit is derived, and descriptors never run out.
fn the_bound_follows_the_descriptor_limit(config: &Config) {
    if config.process_per_connection() {
        // Each connection has a process with its own descriptor table.
        return;
    }
    let launch = Launch::new(config, site::shared()).descriptors(256);
    let server = launch.flag("--head-timeout", "300s").start();
    // Each process has its own descriptor table.
    let (tried, descriptors) = (300 * config.processes(), 256 * config.processes());
    let kept: Vec<_> = (0..tried).filter_map(|_| server.busy()).collect();
    assert!(kept.len() >= 16, "{} connections with {descriptors} descriptors", kept.len());
    assert!(kept.len() < descriptors, "{} connections with {descriptors} descriptors", kept.len());
    becomes_true(SOON, "refusals are counted", || refusals(&server) == (tried - kept.len()) as u64);
    assert!(!server.errors().contains("panicked"), "{}", server.errors());
    drop(kept);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The limit of a running server is lowered, so that accept fails. The server does not spin, and recovers soon.
fn h28_no_descriptors_no_spin(config: &Config) {
    let folder = TempFolder::new("spin");
    folder.write("1k.html", site::content("1k.html"));
    let server = Launch::new(config, folder.path()).start();
    let mut first = server.idle().expect("there is room");
    let workers = server.workers();
    assert_eq!(workers.len(), config.processes(), "each process that serves, and no other");
    workers.iter().for_each(|worker| limit(*worker, worker.first_free_descriptor()));
    let mut waiting: Vec<_> = (0..10).map(|_| server.connect()).collect();
    waiting.iter_mut().for_each(|wire| wire.send(request("GET", "/1k.html", &[("Connection", "close")])));
    becomes_true(SOON, "descriptors are short", || refusals(&server) > 0);
    let before = server.processor_time();
    // Processor time is counted in ticks, so a shorter time shows little.
    sleep(Duration::from_secs(1));
    let used = server.processor_time() - before;
    assert!(
        used < Duration::from_millis(250),
        "{used:?} of processor time in 1 s without a descriptor to spare"
    );
    if !config.process_per_connection() {
        first.get("/1k.html");
        let status = first.response().status;
        // Only the thread that has the file in memory can serve it without opening it.
        let elsewhere = config.dispatch != Dispatch::Inline && status == 503;
        assert!(status == 200 || elsewhere, "who is connected is served on, and not with {status}");
        first.send(request("PUT", "/1k.html", &[]));
        assert_eq!(first.response().status, 405, "what takes no descriptor is answered as ever");
    }
    workers.iter().for_each(|worker| limit(*worker, 1000));
    if !config.process_per_connection() {
        first.get("/1k.html");
        assert_eq!(first.response().status, 200, "who was connected all the time");
    }
    becomes_true(SOON, "service returns", || server.idle().is_some());
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// A thousand connections, or the number that `select` supports. On an engine with few concurrent connections the
/// others wait.
fn a_thousand_at_once_are_answered(config: &Config) {
    if *config != (Config { dispatch: config.dispatch, ..Config::of(config.engine) }) {
        // Several workers share the limit, and connections are not assigned in turn.
        return;
    }
    let count = if config.engine == Engine::Select { 992 } else { 1000 };
    let in_turn = config.at_once().is_some();
    let launch = Launch::new(config, site::shared());
    let launch = if in_turn { launch } else { launch.flag("--max-connections", count) };
    let server = launch.flag("--head-timeout", "300s").start();
    let fields: &[_] = if in_turn { &[("Connection", "close")] } else { &[] };
    let asked = request("GET", "/1k.html", fields);
    let connect = |_| {
        let mut wire = server.connect();
        // While others wait, such an engine closes a connection without a request.
        if in_turn {
            wire.send(&asked);
        }
        wire
    };
    let mut wires: Vec<_> = (0..count).map(connect).collect();
    let rounds = if in_turn { 1 } else { 2 };
    for round in 0..rounds {
        // The connections are not idle at the end, so that no connection is evicted.
        let next = if round + 1 == rounds { BEGUN } else { b"" };
        for wire in wires.iter_mut().filter(|_| !in_turn) {
            wire.send([&asked, next].concat());
        }
        for (at, wire) in wires.iter_mut().enumerate() {
            let response = wire.response();
            assert_eq!((response.status, response.body.len()), (200, 1024), "connection {at}, round {round}");
        }
    }
    if !in_turn {
        assert_eq!(server.status()["connections"]["open"], count, "all of them are open");
        assert!(server.busy().is_none(), "a connection past the bound was served");
        assert_eq!(refusals(&server), 1);
    }
    drop(wires);
    becomes_true(SOON, "there is room again", || server.idle().is_some());
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn a_full_pool_queue_refuses_and_counts() {
    let launch = Launch::new(&Config::of(Engine::Pool), site::shared());
    let launch = launch.flag("--pool-threads", 2).flag("--pool-queue", 4);
    let server = launch.flag("--head-timeout", "300s").start();
    let held: Vec<_> = (0..2).map(|_| server.busy().expect("a thread is free")).collect();
    let mut waiting: Vec<_> = (0..4).map(|_| server.connect()).collect();
    waiting.iter_mut().for_each(|wire| wire.send(request("GET", "/1k.html", &[("Connection", "close")])));
    // The earlier connections were accepted in this order.
    for _ in 0..5 {
        assert!(server.busy().is_none(), "a connection past the queue was served");
    }
    becomes_true(SOON, "refusals are counted", || refusals(&server) == 5);
    drop(held);
    for mut wire in waiting {
        assert_eq!(wire.response().status, 200, "who waits has a turn");
    }
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// Sets the descriptor limit of a running process as its owner, without the right to trace it.
fn limit(worker: Process, count: usize) {
    let mut words = Vec::new();
    let owner = worker.status("Uid").and_then(|ids| Some(ids.split_ascii_whitespace().next()?.to_owned()));
    let group = worker.status("Gid").and_then(|ids| Some(ids.split_ascii_whitespace().next()?.to_owned()));
    let (owner, group) = (owner.expect("the worker is there"), group.expect("the worker is there"));
    let mut command = Command::new(program(if is_root() { "setpriv" } else { "prlimit" }));
    if is_root() {
        words.extend([format!("--reuid={owner}"), format!("--regid={group}"), "--clear-groups".into()]);
        words.push(program("prlimit").display().to_string());
    }
    words.extend(["--pid".into(), worker.0.to_string(), format!("--nofile={count}:")]);
    let status = command.args(&words).status().expect("setpriv and prlimit run");
    assert!(status.success(), "the limit of {worker:?} cannot be set: {words:?}");
}
