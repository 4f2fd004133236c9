//! Bounds of the queues to workers, and of the pipes of the sender `splice`.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use rustix::fs::OFlags;
use tenfold_engine::{Engine, MODELS, Sender, Topology, probe};
use tenfold_tests::cases;
use tenfold_tests::config::{Config, WORKERS};
use tenfold_tests::harness::{Named, Theme};
use tenfold_tests::launch::Launch;
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{EndOnDrop, SOON, becomes_true};
use tenfold_tests::tools::program;
use tenfold_tests::wire::{Wire, request};

pub(crate) const THEME: Theme = Theme {
    name: "bounds",
    cases: cases![
        Many: full_worker_queues_refuse;
        Many, Measure: without_free_pipes_bodies_are_copied;
    ],
};

/// A test for each engine with a configuration that this machine can run, according to `able`.
fn each(able: impl Fn(Engine) -> Option<Config>, run: fn(&Config)) -> Vec<Named> {
    let engines = MODELS.iter().map(|model| model.engine).filter(|&engine| probe(engine).is_ok());
    let named = |config: Config| Named { name: config.to_string(), run: Box::new(move || run(&config)) };
    engines.filter_map(able).map(named).collect()
}

fn full_worker_queues_refuse() -> Vec<Named> {
    let able = |engine: Engine| {
        let config = Config { topology: Topology::Handoff, ..Config::of(engine) };
        config.plan().is_ok().then_some(config)
    };
    each(able, workers_that_are_held_up)
}

/// Connections opened while all workers are blocked.
const CONNECTIONS: usize = 40;

/// A full pipe accepts no line of the log, so each worker blocks after its response and accepts no connection. Another
/// connection waits for each worker.
fn workers_that_are_held_up(config: &Config) {
    let folder = TempFolder::new("queues");
    let mut pipe = full_pipe(&folder);
    let launch = Launch::new(config, site::shared()).flag("--handoff-queue", 1).flag("--log-mode", "sync");
    // In this format a line is written after its response has been sent.
    let launch = launch.flag("--log-format", "json").flag("--access-log", folder.at("pipe").display());
    let server = launch.start();
    let mut wires: Vec<Wire> = Vec::new();
    for number in 1..=WORKERS {
        wires.push(asks(&server));
        becomes_true(SOON, "a worker takes it", || server.status()["connections"]["accepted"] == number);
        // Lets the workers reach the log.
        sleep(Duration::from_millis(200));
    }
    wires.extend((WORKERS..CONNECTIONS).map(|_| asks(&server)));
    let refused = |server: &Server| {
        server.status()["refusals"]["too-many-connections"].as_u64().expect("a number") as usize
    };
    // A worker may accept another connection before it reaches the log.
    becomes_true(SOON, "most are refused", || refused(&server) >= CONNECTIONS - 4 * WORKERS);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let lines = scope.spawn(|| count_lines(&mut pipe, &over));
        let ends = EndOnDrop(&over);
        let heads = wires.iter_mut().filter_map(Wire::try_head);
        let answered = heads.filter(|head| head.status == 200).count();
        assert!(answered >= 2 * WORKERS, "{answered}: those that had a place are answered");
        assert_eq!(answered + refused(&server), CONNECTIONS, "each is answered, or refused and counted");
        server.stop().unwrap_or_else(|why| panic!("{why}"));
        drop(ends);
        assert_eq!(lines.join().expect("it does not panic"), answered, "lines in the log");
    });
}

/// Requests a page, on a connection that may be refused.
fn asks(server: &Server) -> Wire {
    let mut wire = server.connect();
    let _ = wire.try_send(&request("GET", "/1k.html", &[("Connection", "close")]));
    wire
}

/// A full pipe, open at both ends.
fn full_pipe(folder: &TempFolder) -> File {
    let path = folder.at("pipe");
    let made = Command::new(program("mkfifo")).arg(&path).status().expect("it can be run");
    assert!(made.success());
    let flags = OFlags::NONBLOCK.bits() as i32;
    let both = File::options().read(true).write(true).custom_flags(flags).open(&path);
    let mut pipe = both.expect("it was just made");
    while pipe.write(&[b' '; 4096]).is_ok() {}
    pipe
}

/// Reads everything, and counts lines, until `over` is set and the pipe is empty.
fn count_lines(pipe: &mut File, over: &AtomicBool) -> usize {
    let (mut lines, mut buffer) = (0, vec![0; 64 * 1024]);
    loop {
        let last = over.load(Ordering::Relaxed);
        match pipe.read(&mut buffer) {
            Ok(count) => lines += buffer[..count].iter().filter(|byte| **byte == b'\n').count(),
            Err(error) if error.kind() == ErrorKind::WouldBlock && last => return lines,
            // The workers write at their own pace.
            Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(Duration::from_millis(2)),
            Err(error) => panic!("read our own pipe: {error}"),
        }
    }
}

fn without_free_pipes_bodies_are_copied() -> Vec<Named> {
    let able = |engine: Engine| {
        let config = Config { sender: Sender::Splice, ..Config::of(engine) };
        // A process that serves one connection has its own pipes.
        let many = !config.serial() && !config.process_per_connection();
        (many && config.plan().is_ok()).then_some(config)
    };
    each(able, more_bodies_than_pipes)
}

/// An eighth of the descriptors is for pipes, two each.
const DESCRIPTORS: u32 = 200;
const PIPES: usize = 200 / 16;
/// More concurrent bodies than pipes. Each is too large for the buffers of a connection.
const BODIES: usize = 24;
const LENGTH: usize = 8 << 20;

fn more_bodies_than_pipes(config: &Config) {
    let folder = TempFolder::new("pipes");
    let body = site::bytes(LENGTH, 5);
    folder.write("body.bin", &body);
    let server = Launch::new(config, folder.path()).descriptors(DESCRIPTORS).start();
    let ends = || {
        let all = server.workers().into_iter().flat_map(|worker| worker.descriptors());
        all.filter(|what| what.starts_with("pipe:")).count()
    };
    // Its standard error is one of the pipes.
    let others = ends();
    let mut wires: Vec<Wire> = (0..BODIES).map(|_| server.connect()).collect();
    wires.iter_mut().for_each(|wire| wire.send(request("GET", "/body.bin", &[("Connection", "close")])));
    becomes_true(SOON, "bodies wait in all pipes", || ends() - others >= 2 * PIPES);
    for wire in &mut wires {
        assert_eq!(wire.head().status, 200);
        wire.expect_body(&body);
        assert!(ends() - others <= 2 * PIPES, "{} ends of {PIPES} pipes", ends() - others);
    }
    becomes_true(SOON, "what was copied is counted", || {
        server.status()["substituted"].as_u64().is_some_and(|count| count > 0)
    });
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}
