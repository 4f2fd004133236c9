//! Stuck processes and the supervisor.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::pipe::fcntl_setpipe_size;
use rustix::process::Signal;
use tenfold_engine::{Engine, Topology};
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::process::Process;
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::wire::Wire;

pub(crate) const THEME: Theme = Theme {
    name: "stuck",
    cases: cases![
        Own on EPOLL: a_full_standard_error_stops_nothing;
        Own on EPOLL + URING: a_worker_that_is_stuck_is_replaced;
        Own on URING: a_former_worker_that_is_stuck_takes_no_connections;
        Own on DRIVERS: a_worker_offers_itself_before_the_supervisor;
        Once: a_process_of_a_connection_offers_itself_first;
    ],
};

/// The size of the smallest pipe.
const PAGE: usize = 4096;

/// The pipe is never read, so the report of the first dead worker does not fit.
fn a_full_standard_error_stops_nothing(config: &Config) {
    let folder = TempFolder::new("unread");
    let path = folder.at("errors");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("our own folder");
    let mut pipe = File::options().read(true).write(true).open(&path).expect("it was made");
    fcntl_setpipe_size(&pipe, PAGE).expect("a page is allowed");
    pipe.write_all(&[b'\n'; PAGE]).expect("it is empty");
    let script = format!("exec \"$@\" 2>{}", path.display());
    let launch = Launch::new(config, site::shared()).flag("--log-level", "warn");
    let server = launch.through("sh", &["-c", &script, "sh"]).start();
    kill_one(&server);
    pipe.read_exact(&mut [0; PAGE]).expect("it is full");
    kill_one(&server);
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains("1 lines of diagnostics were lost here") {
        let mut bytes = [0; PAGE];
        let count = pipe.read(&mut bytes).expect("the server writes to it");
        said.extend(&bytes[..count]);
    }
    pipe.write_all(&[b'\n'; PAGE / 2]).expect("there is room");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn kill_one(server: &Server) {
    let before = server.workers();
    before[0].signal(Signal::KILL);
    becomes_true(SOON, "it is replaced", || {
        let now = server.workers();
        now.len() == before.len() && !now.contains(&before[0])
    });
    assert_eq!(server.get("/1k.html").status, 200);
}

/// A server with two processes, each with its own socket.
fn with_processes(config: &Config, folder: &TempFolder) -> Server {
    folder.write("site/index.html", "the page\n");
    let config = Config { topology: Topology::ReuseportProcesses, ..*config };
    Launch::new(&config, &folder.at("site")).flag("--admin", unix(folder)).start()
}

fn unix(folder: &TempFolder) -> String {
    format!("unix:{}", folder.at("admin").display())
}

/// Twenty connections, some of which wait at the socket of a stopped process.
fn all_are_served(server: &Server, within: Duration) {
    let mut wires: Vec<_> = (0..20).map(|_| server.connect()).collect();
    let begun = Instant::now();
    wires.iter_mut().for_each(|wire| wire.get("/"));
    for mut wire in wires {
        assert_eq!(wire.response().body, b"the page\n");
    }
    assert!(begun.elapsed() < within, "{:?}", begun.elapsed());
}

fn is_ready(folder: &TempFolder) -> String {
    let mut wire = Wire::connect_unix(&folder.at("admin"));
    wire.get("/status");
    let report: serde_json::Value = serde_json::from_slice(&wire.response().body).expect("it is JSON");
    report["ready"].to_string()
}

fn stop_one(server: &Server) -> Process {
    let worker = server.workers()[0];
    worker.signal(Signal::STOP);
    becomes_true(SOON, "it stops", || worker.is_stopped());
    worker
}

fn a_worker_that_is_stuck_is_replaced(config: &Config) {
    let folder = TempFolder::new("stuck");
    let server = with_processes(config, &folder);
    all_are_served(&server, SOON);
    let stopped = stop_one(&server);
    thread::scope(|scope| {
        scope.spawn(|| all_are_served(&server, 4 * SOON));
        becomes_true(4 * SOON, "reports show the worker that is stuck", || {
            let states = server.status()["workers"].to_string();
            states.contains("\"stuck\"") && is_ready(&folder) == "false"
        });
    });
    becomes_true(4 * SOON, "it is replaced", || {
        let status = server.status();
        status["stuck"] == 1 && status["restarts"] == 1 && status["ready"] == true
    });
    server.expect_report("is stuck: its loop has not turned for 10s; it is killed");
    server.expect_report("was killed by the supervisor, because it was stuck; another takes its place");
    assert!(!stopped.is_running());
    all_are_served(&server, SOON);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The ring of the former worker still waits at the socket, and takes the wake-ups of its successor's ring.
fn a_former_worker_that_is_stuck_takes_no_connections(config: &Config) {
    let folder = TempFolder::new("stuck");
    let server = with_processes(config, &folder);
    // The supervisor watches a loop from its first turn on.
    all_are_served(&server, SOON);
    let stopped = stop_one(&server);
    server.process.signal(Signal::HUP);
    server.expect_report("serving with the new configuration");
    all_are_served(&server, 2 * SOON);
    becomes_true(4 * SOON, "it is killed", || !stopped.is_running());
    all_are_served(&server, SOON);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn offer(process: Process) -> i32 {
    let path = format!("/proc/{}/oom_score_adj", process.0);
    std::fs::read_to_string(Path::new(&path)).expect("it runs").trim().parse().expect("a number")
}

fn a_worker_offers_itself_before_the_supervisor(config: &Config) {
    let server = Launch::new(config, site::shared()).start();
    let workers = server.workers();
    assert!(workers.iter().all(|worker| offer(*worker) > offer(server.process)));
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// Also in the sandbox without privileges.
fn a_process_of_a_connection_offers_itself_first() {
    let server = Launch::new(&Config::of(Engine::Fork), site::shared()).start();
    let mut wire = server.connect();
    wire.get("/1k.html");
    assert_eq!(wire.response().status, 200);
    let worker = server.workers()[0];
    let connections = worker.children();
    assert!(!connections.is_empty());
    assert!(connections.iter().all(|process| offer(*process) > offer(worker)));
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}
