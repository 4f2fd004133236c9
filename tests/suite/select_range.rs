//! The limit of `select`, also as the method of libevent, and other descriptors above it.

use std::fs;

use tenfold_engine::{Engine, Sender};
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{Launch, tenfold};
use tenfold_tests::server::Server;
use tenfold_tests::site;
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::wire::Wire;

pub(crate) const THEME: Theme = Theme {
    name: "select-range",
    cases: cases![
        Once: files_are_kept_above_the_range, more_than_the_range_holds_is_refused_at_the_start;
        Once, Measure: connections_past_the_range_are_refused_and_counted,
            h84_a_connection_past_the_range_takes_the_descriptor_of_an_idle_one;
    ],
};

fn files_are_kept_above_the_range() {
    let config = Config { sender: Sender::Sendfile, ..Config::of(Engine::Select) };
    let server = Launch::new(&config, site::shared()).flag("--log-level", "debug").start();
    assert!(server.errors().contains("of which select watches those below 1024)"), "{}", server.errors());
    let mut wire = server.connect();
    wire.get("/3m.bin");
    // The file is open with its final descriptor.
    assert_eq!(wire.head().status, 200);
    let worker = server.workers()[0];
    let numbers = || -> Vec<u32> {
        let entries = fs::read_dir(format!("/proc/{}/fd", worker.0)).expect("it runs");
        let paths = entries.flatten().map(|entry| entry.path());
        let of_the_site = paths.filter(|path| fs::read_link(path).is_ok_and(|to| to.ends_with("3m.bin")));
        let number = |path: &std::path::PathBuf| path.file_name()?.to_str()?.parse().ok();
        of_the_site.filter_map(|path| number(&path)).collect()
    };
    becomes_true(SOON, "the file is open", || !numbers().is_empty());
    assert!(numbers().iter().all(|number| *number >= 1024), "{:?}", numbers());
    wire.expect_body(&site::content("3m.bin"));
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn more_than_the_range_holds_is_refused_at_the_start() {
    let libevent = &["libevent", "--libevent-method", "select"][..];
    for (engine, name) in [(&["select"][..], "engine select"), (libevent, "libevent-method select")] {
        let words = ["serve", ".", "--workers", "1", "--max-connections", "1024", "--engine"];
        let output = tenfold(&[&words, engine].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("{name} watches descriptors below 1024: enough for 992")), "{said}");
    }
}

const RANGE: usize = 1024;
const TAKEN: usize = 100;
const CONNECTIONS: usize = 1300;

/// A server that waits in `select(2)`, and libevent with the same method. Debian's libevent aborts the process if it gets
/// a greater descriptor.
fn in_little_ranges() -> [Server; 2] {
    let libevent =
        Launch::new(&Config::of(Engine::Libevent), site::shared()).flag("--libevent-method", "select");
    [Launch::new(&Config::of(Engine::Select), site::shared()), libevent].map(in_little_range)
}

/// Inherited descriptors reduce the room for connections, so the effective limit is below the configured limit.
fn in_little_range(launch: Launch) -> Server {
    let begin = format!(
        "import os, sys\nfor _ in range({TAKEN}): os.set_inheritable(os.open('/dev/null', os.O_RDONLY), True)\n\
         os.execv(sys.argv[1], sys.argv[1:])"
    );
    launch.flag("--head-timeout", "300s").through("python3", &["-c", &begin]).start()
}

/// Checks that there is a connection for each descriptor in the range.
fn assert_room(wires: usize) {
    let room = RANGE - TAKEN;
    assert!((room - 32..room).contains(&wires), "{wires} connections in the range");
}

fn connections_past_the_range_are_refused_and_counted() {
    in_little_ranges().into_iter().for_each(refuses_and_counts);
}

fn refuses_and_counts(server: Server) {
    let mut wires: Vec<Wire> = (0..CONNECTIONS).filter_map(|_| server.busy()).collect();
    assert_room(wires.len());
    let refused = CONNECTIONS - wires.len();
    becomes_true(SOON, "refusals are counted", || {
        server.status()["refusals"]["too-many-connections"] == refused
    });
    for wire in &mut wires {
        assert_eq!(wire.response_between().status, 200, "a connection in the range");
    }
    drop(wires);
    becomes_true(SOON, "there is room again", || server.idle().is_some());
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn h84_a_connection_past_the_range_takes_the_descriptor_of_an_idle_one() {
    in_little_ranges().into_iter().for_each(gives_way);
}

fn gives_way(server: Server) {
    let mut wires: Vec<Wire> =
        (0..CONNECTIONS).map(|at| server.idle().unwrap_or_else(|| panic!("connection {at}"))).collect();
    becomes_true(SOON, "those that gave way are counted", || {
        let ended = wires.iter().filter(|wire| wire.has_ended()).count();
        server.status()["connections"]["evicted"] == ended
    });
    wires.retain(|wire| !wire.has_ended());
    assert_room(wires.len());
    for wire in &mut wires {
        wire.get("/1k.html");
        assert_eq!(wire.response().status, 200, "a connection in the range");
    }
    assert_eq!(server.status()["refusals"]["too-many-connections"], 0);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}
