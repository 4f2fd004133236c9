//! Exact numbers of system calls.

use std::process::Command;
use std::time::Instant;

use tenfold_engine::Dispatch;
use tenfold_tests::cases;
use tenfold_tests::config::{Config, POOL_THREADS};
use tenfold_tests::floor::Floor;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::process::Process;
use tenfold_tests::server::Server;
use tenfold_tests::site;
use tenfold_tests::strace::{Calls, Tracer};
use tenfold_tests::tools;
use tenfold_tests::wire::{Wire, request};

pub(crate) const THEME: Theme = Theme {
    name: "syscalls",
    cases: cases![
        Own on EPOLL, Measure: a_kept_connection_costs_three_calls_a_request,
            a_batch_costs_one_receive_and_one_send, a_connection_for_each_request_costs_four;
        Own on URING, Measure: sixty_four_connections_beside_the_floor;
        Own on DRIVERS + ANOTHER, Measure: a_cached_file_costs_no_file_call;
    ],
};

const WAITS: [&str; 2] = ["epoll_wait", "epoll_pwait"];

/// Calls once a second: the check of a file (a reload while it is new), and the write of the log.
const HOUSEKEEPING_PER_SECOND: usize = 12;

/// The writes of the log's 64 KiB buffer for a number of lines of at most 128 bytes.
fn writes_of_the_log(lines: usize) -> usize {
    lines * 128 / (64 * 1024) + 1
}

fn ask(wire: &mut Wire, batches: usize, per_batch: usize) {
    let batch = request("GET", "/1k.html", &[]).repeat(per_batch);
    for _ in 0..batches {
        wire.send(&batch);
        for _ in 0..per_batch {
            let response = wire.response();
            assert_eq!((response.status, response.body.len()), (200, 1024));
        }
    }
}

/// Runs `drive` under strace. Returns the calls, and the number of additional calls for housekeeping.
fn traced(server: &Server, drive: impl FnOnce()) -> (Calls, usize) {
    let begin = Instant::now();
    let tracer = Tracer::attach(&server.workers());
    drive();
    let calls = tracer.detach();
    let seconds = usize::try_from(begin.elapsed().as_secs()).expect("a test ends within the century");
    (calls, (seconds + 1) * HOUSEKEEPING_PER_SECOND)
}

#[track_caller]
fn expect_about(calls: &Calls, names: &[&str], expected: usize, slack: usize) {
    let found = calls.count(names);
    let counts = calls.counts();
    assert!(
        (expected - 1..=expected + slack).contains(&found),
        "{found} of {names:?} and not {expected}; all: {counts:?}"
    );
}

/// Each batch of a connection costs one receive and one send. Returns the calls and the number of additional calls.
fn batches_cost_two_calls(
    config: &Config,
    batches: usize,
    per_batch: usize,
    sends: &[&'static str],
) -> (Calls, usize) {
    let server = Launch::new(config, site::shared()).start();
    let mut wire = server.connect();
    ask(&mut wire, 100 / per_batch, per_batch);
    let (calls, housekeeping) = traced(&server, || ask(&mut wire, batches, per_batch));
    let with_log = housekeeping + writes_of_the_log(batches * per_batch);
    expect_about(&calls, &["recvfrom"], batches, 1);
    expect_about(&calls, sends, batches, with_log);
    let others = calls.others(&[&["recvfrom", WAITS[0], WAITS[1]], sends].concat());
    assert!(others.len() <= with_log, "other calls than those of housekeeping: {others:#?}");
    (calls, housekeeping)
}

fn a_kept_connection_costs_three_calls_a_request(config: &Config) {
    const REQUESTS: usize = 10_000;
    let (calls, housekeeping) = batches_cost_two_calls(config, REQUESTS, 1, &["write"]);
    // Each second adds a wait.
    expect_about(&calls, &WAITS, REQUESTS, 1 + housekeeping / HOUSEKEEPING_PER_SECOND);
}

fn a_batch_costs_one_receive_and_one_send(config: &Config) {
    batches_cost_two_calls(config, 1000, 16, &["write", "writev"]);
}

/// Accept, receive, send, close; one more accept finds the queue empty.
fn a_connection_for_each_request_costs_four(config: &Config) {
    const REQUESTS: usize = 1000;
    let server = Launch::new(config, site::shared()).start();
    let close = [("Connection", "close")];
    assert_eq!(server.ask("GET", "/1k.html", &close).status, 200);
    let (calls, housekeeping) = traced(&server, || {
        for _ in 0..REQUESTS {
            assert_eq!(server.ask("GET", "/1k.html", &close).status, 200);
        }
    });
    assert_eq!(calls.successes("accept4").len(), REQUESTS, "{:?}", calls.counts());
    expect_about(&calls, &["accept4"], REQUESTS, REQUESTS + 1);
    expect_about(&calls, &["recvfrom"], REQUESTS, 1);
    expect_about(&calls, &["write"], REQUESTS, housekeeping);
    expect_about(&calls, &["close"], REQUESTS, housekeeping);
    let others = calls.others(&["accept4", "recvfrom", "write", "close", WAITS[0], WAITS[1]]);
    assert!(others.len() <= housekeeping, "other calls than those of housekeeping: {:?}", calls.counts());
}

fn a_cached_file_costs_no_file_call(config: &Config) {
    const REQUESTS: usize = 1000;
    let server = Launch::new(config, site::shared()).start();
    // The processes of `fork` have no cache of earlier connections.
    let mut wire = server.connect();
    ask(&mut wire, 10, 1);
    let mut traced_processes = server.workers();
    traced_processes.extend(server.workers().iter().flat_map(|worker| worker.children()));
    let tracer = Tracer::attach(&traced_processes);
    let begin = Instant::now();
    ask(&mut wire, REQUESTS, 1);
    let calls = tracer.detach();
    let seconds = usize::try_from(begin.elapsed().as_secs()).expect("a test ends within the century");
    let file_calls =
        ["open", "openat", "openat2", "stat", "fstat", "newfstatat", "statx", "pread64", "preadv2"];
    let found = calls.count(&file_calls);
    // Each thread of a pool opens a file at its first use.
    let threads = if config.dispatch == Dispatch::Inline { 1 } else { POOL_THREADS };
    assert!(
        found <= (seconds + 1) * threads * HOUSEKEEPING_PER_SECOND,
        "{found} for {REQUESTS} requests: {:?}",
        calls.counts()
    );
}

/// Calls per request with 64 busy connections of wrk; infinite if the machine paused.
fn calls_per_request(address: std::net::SocketAddr, processes: &[Process]) -> f64 {
    let wrk = tools::program("wrk");
    let tracer = Tracer::attach(processes);
    let url = format!("http://{address}/1k.html");
    let output =
        Command::new(wrk).args(["-t1", "-c64", "-d2s", "--timeout", "20s", &url]).output().expect("wrk runs");
    let calls = tracer.detach();
    let said = String::from_utf8_lossy(&output.stdout);
    let line = said
        .lines()
        .find(|line| line.contains(" requests in "))
        .unwrap_or_else(|| panic!("wrk said: {said}"));
    let requests: f64 =
        line.split_ascii_whitespace().next().and_then(|count| count.parse().ok()).expect("a number");
    assert!(!said.contains("Socket errors") && !said.contains("Non-2xx"), "wrk said: {said}");
    if requests < 1000.0 {
        return f64::INFINITY;
    }
    let total = u32::try_from(calls.lines.len()).expect("a test makes fewer calls");
    f64::from(total) / requests
}

fn sixty_four_connections_beside_the_floor(config: &Config) {
    let server = Launch::new(config, site::shared()).start();
    assert_eq!(server.get("/1k.html").status, 200);
    let floor = Floor::uring();
    // The number of requests per wait depends on the load of the machine, so server and floor take turns.
    let (mut ours, mut least) = (f64::INFINITY, f64::INFINITY);
    for round in 1..=4 {
        ours = ours.min(calls_per_request(server.address, &server.workers()));
        least = least.min(calls_per_request(*floor.address, &[floor.process()]));
        if round > 1 && ours <= 1.4 * least {
            return;
        }
    }
    panic!("{ours:.4} calls for a request; {least:.4} of the floor");
}
