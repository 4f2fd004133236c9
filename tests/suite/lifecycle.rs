//! Workers that die, and servers that stop.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use rustix::process::Signal;
use tenfold_tests::address::ReservedAddress;
use tenfold_tests::binary;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{Launch, tenfold};
use tenfold_tests::process::Process;
use tenfold_tests::program::Program;
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::strace::{Calls, Tracer};
use tenfold_tests::time::{SOON, becomes_true, eventually, not_before};
use tenfold_tests::tools;
use tenfold_tests::wire::request;

pub(crate) const THEME: Theme = Theme {
    name: "lifecycle",
    cases: cases![
        Own on WORKERS + ANOTHER: h73_a_worker_that_is_killed_is_replaced,
            queued_connections_outlive_their_worker, a_second_term_does_not_wait, int_ends_it;
        Own on DRIVERS: a_closed_terminal_ends_it;
        Own on TOPOLOGIES: a_download_outlives_quit, an_idle_connection_does_not_delay_a_drain,
            a_drain_has_a_bound;
        Own on PROCESSES: h73_other_workers_do_not_notice, a_socket_that_listened_stays_open_at_the_start;
        Own on EPOLL: signals_wait_until_the_server_has_started, the_command_stops_a_server;
    ],
};

/// Waits until `count` processes serve, and no killed process is left.
fn replaced(server: &Server, killed: &[Process], count: usize) {
    eventually(SOON, "killed workers are replaced", || {
        let now = server.workers();
        (now.len() == count && now.iter().all(|worker| !killed.contains(worker))).then_some(())
    });
}

fn workers(server: &Server) -> Vec<Process> {
    assert_eq!(server.get("/1k.html").status, 200);
    let workers = server.workers();
    assert!(!workers.is_empty(), "no process below the supervisor serves");
    workers
}

fn h73_a_worker_that_is_killed_is_replaced(config: &Config) {
    let server = Launch::new(config, site::shared()).start();
    for round in 0..2 {
        let before = workers(&server);
        before[0].signal(Signal::KILL);
        replaced(&server, &before[..1], before.len());
        for _ in 0..8 {
            assert_eq!(server.get("/1k.html").status, 200, "round {round}");
        }
    }
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// A second `stop` does not cut off the download, and `stop --now` does.
fn the_command_stops_a_server(config: &Config) {
    let stop = |server: &Server, more: &[&str]| {
        let control = server.at("control").display().to_string();
        let output = tenfold(&[&["stop", "--control", &control], more].concat());
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.code(), said)
    };
    for now in [false, true] {
        let server = Launch::new(config, site::shared()).start();
        let mut wire = server.connect();
        wire.get("/large.bin");
        assert_eq!(wire.head().status, 200);
        let stopped = (Some(0), format!("process {} has stopped\n", server.process.0));
        if now {
            assert_eq!(stop(&server, &["--now"]), stopped, "{}", server.errors());
            assert!(server.errors().contains("stopping at once"), "{}", server.errors());
        } else {
            thread::scope(|scope| {
                let stopping = scope.spawn(|| stop(&server, &[]));
                becomes_true(SOON, "it drains", || server.status()["draining"] == true);
                let mut again = Command::new(tools::program("timeout"));
                let program = binary::server().unwrap_or_else(|why| panic!("{why}"));
                again.arg("1").arg(&program.path).args(["stop", "--control"]).arg(server.at("control"));
                assert_eq!(again.status().expect("it runs").code(), Some(124), "it waits for the end");
                wire.expect_body(&site::content("large.bin"));
                assert!(!server.errors().contains("stopping at once"), "{}", server.errors());
                assert_eq!(stopping.join().expect("it ends"), stopped, "{}", server.errors());
            });
        }
        assert!(server.ends_within(SOON).success(), "{}", server.errors());
        let (code, said) = stop(&server, &[]);
        assert!(code == Some(1) && said.contains("no server answers at"), "{said}");
    }
}

/// `script` makes a terminal, which is closed when `script` dies. A parent such as `nohup` ignores HUP, also above this
/// test.
fn a_closed_terminal_ends_it(config: &Config) {
    for (ignored, ends) in [("", true), ("trap '' HUP; ", false)] {
        let folder = TempFolder::new("terminal");
        let (errors, control) = (folder.at("errors"), folder.at("control"));
        let script = format!(
            "exec env --default-signal=HUP script -qefc \"{ignored}exec $0 $* 2>{}\" /dev/null",
            errors.display()
        );
        let binary = binary::server().unwrap_or_else(|why| panic!("{why}"));
        let words = [binary.path.display().to_string(), "serve".into(), site::shared().display().to_string()];
        let more =
            ["--listen", "127.0.0.1:0", "--control", &control.display().to_string()].map(str::to_owned);
        let terminal = Program::new(tools::program("sh"))
            .args(["-c", &script])
            .args(words.into_iter().chain(more).chain(config.flags()))
            .start();
        let said = || fs::read_to_string(&errors).unwrap_or_default();
        becomes_true(SOON, "it serves", || said().contains("  serves "));
        let server = terminal.process().children()[0];
        terminal.signal(Signal::KILL);
        if ends {
            becomes_true(SOON, "it ends", || !server.is_running());
            assert!(said().contains("the terminal was closed"), "{}", said());
        } else {
            assert!(terminal.ends_within(SOON).code().is_none());
            // The HUP of a process reloads. It is lost if the HUP of the terminal is pending.
            becomes_true(SOON, "it reloads", || {
                server.signal(Signal::HUP);
                said().contains("configuration was read again")
            });
            server.signal(Signal::INT);
            becomes_true(SOON, "it ends", || !server.is_running());
            assert!(!said().contains("the terminal was closed"), "{}", said());
        }
    }
}

/// Connections that the kernel completed and no process accepted stay with the socket, which the next worker inherits.
fn queued_connections_outlive_their_worker(config: &Config) {
    let server = Launch::new(config, site::shared()).start();
    let before = workers(&server);
    before.iter().for_each(|worker| worker.signal(Signal::STOP));
    becomes_true(SOON, "workers stop", || before.iter().all(|worker| worker.is_stopped()));
    let mut queued: Vec<_> = (0..20).map(|_| server.connect()).collect();
    for wire in &mut queued {
        wire.send(request("GET", "/16k.bin", &[("Connection", "close")]));
    }
    before.iter().for_each(|worker| worker.signal(Signal::KILL));
    for wire in &mut queued {
        let response = wire.response();
        assert_eq!((response.status, response.body.len()), (200, 16 * 1024));
    }
    replaced(&server, &before, before.len());
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn h73_other_workers_do_not_notice(config: &Config) {
    let server = Launch::new(config, site::shared()).start();
    let before = workers(&server);
    assert_eq!(before.len(), config.processes(), "processes that serve");
    let mut wires: Vec<_> = (0..40).map(|_| server.connect()).collect();
    for wire in &mut wires {
        wire.get("/1k.html");
        assert_eq!(wire.response().status, 200);
    }
    before[0].signal(Signal::KILL);
    replaced(&server, &before[..1], before.len());
    let mut alive = 0;
    for wire in &mut wires {
        if wire.try_send(&request("GET", "/1k.html", &[("Connection", "close")])).is_ok() {
            alive += usize::from(!wire.rest().0.is_empty());
        }
    }
    assert!((1..40).contains(&alive), "{alive} of 40 connections outlived one of {} workers", before.len());
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn refuses_connections(server: &Server) -> bool {
    TcpStream::connect_timeout(&server.address, Duration::from_secs(1)).is_err()
}

fn a_download_outlives_quit(config: &Config) {
    let address = ReservedAddress::new();
    let server = Launch::new(config, site::shared()).flag("--listen", &address).start_at(*address);
    let mut wire = server.connect();
    wire.get("/large.bin");
    assert_eq!(wire.head().promised(), site::LARGE);
    wire.expect_body(&site::large()[..1000]);
    server.process.signal(Signal::QUIT);
    becomes_true(SOON, "new connections are refused", || refuses_connections(&server));
    assert!(server.ended().is_none(), "it did not wait; it said:\n{}", server.errors());
    wire.expect_body(&site::large()[1000..]);
    wire.expect_dropped();
    let status = server.ends_within(SOON);
    assert!(status.success(), "{status}; it said:\n{}", server.errors());
}

fn an_idle_connection_does_not_delay_a_drain(config: &Config) {
    let server = Launch::new(config, site::shared()).start();
    let mut resting: Vec<_> = (0..if config.serial() { 1 } else { 10 }).map(|_| server.connect()).collect();
    for wire in &mut resting {
        wire.get("/1k.html");
        assert_eq!(wire.response().status, 200);
    }
    // This connection has sent nothing yet.
    let silent = server.connect();
    server.process.signal(Signal::QUIT);
    for wire in &mut resting {
        wire.expect_dropped();
    }
    let status = server.ends_within(SOON);
    assert!(status.success(), "{status}; it said:\n{}", server.errors());
    drop(silent);
}

fn a_second_term_does_not_wait(config: &Config) {
    let address = ReservedAddress::new();
    let server = Launch::new(config, site::shared()).flag("--listen", &address).start_at(*address);
    let mut stalled = server.connect();
    stalled.get("/large.bin");
    assert_eq!(stalled.head().status, 200);
    let all = server.process.with_descendants();
    server.process.signal(Signal::TERM);
    becomes_true(SOON, "new connections are refused", || refuses_connections(&server));
    // More than the kernel has.
    stalled.expect_body(&site::large()[..site::LARGE / 2]);
    assert!(server.ended().is_none(), "the first TERM did not wait; it said:\n{}", server.errors());
    server.process.signal(Signal::TERM);
    server.ends_within(SOON);
    becomes_true(SOON, "no process is left", || all.iter().all(|process| !process.is_running()));
    assert!(stalled.rest().0.len() < site::LARGE / 2, "the second TERM waited");
}

fn a_drain_has_a_bound(config: &Config) {
    let server = Launch::new(config, site::shared()).flag("--drain-timeout", "300ms").start();
    let mut stalled = server.connect();
    stalled.get("/large.bin");
    assert_eq!(stalled.head().status, 200);
    let all = server.process.with_descendants();
    let begin = Instant::now();
    server.process.signal(Signal::TERM);
    server.ends_within(SOON);
    not_before(Duration::from_millis(300), begin);
    becomes_true(SOON, "no process is left", || all.iter().all(|process| !process.is_running()));
    assert!(stalled.rest().0.len() < site::LARGE, "it was sent whole to somebody who did not read");
}

fn int_ends_it(config: &Config) {
    let server = Launch::new(config, site::shared()).start();
    let all = server.process.with_descendants();
    server.process.signal(Signal::INT);
    let status = server.ends_within(SOON);
    assert!(status.success(), "{status}; it said:\n{}", server.errors());
    becomes_true(SOON, "no process is left", || all.iter().all(|process| !process.is_running()));
}

/// The close of a listening socket would reset its waiting connections.
fn a_socket_that_listened_stays_open_at_the_start(config: &Config) {
    let folder = TempFolder::new("start");
    let into = folder.at("calls").display().to_string();
    let words = Tracer::from_start("trace=listen,close,clone", &into);
    let server = Launch::new(config, site::shared()).through("strace", &words).start();
    let process = server.process;
    server.stop().unwrap_or_else(|why| panic!("{why}"));
    let calls = Calls::from_start(process, &folder.at("calls"));
    let own = calls.lines.iter().map_while(|line| line.strip_prefix(&process.0.to_string()));
    let own: Vec<_> = own.map(str::trim_start).take_while(|call| !call.starts_with("clone")).collect();
    let number = |call: &str, name: &str| {
        let arguments = call.strip_prefix(name)?.strip_prefix('(')?;
        Some(arguments.split([',', ')']).next().unwrap_or_default().to_owned())
    };
    let mut listening = BTreeSet::new();
    for call in &own {
        listening.extend(number(call, "listen"));
        let closed = number(call, "close");
        assert!(closed.is_none_or(|closed| !listening.contains(&closed)), "{call}: {own:#?}");
    }
    assert!(!listening.is_empty(), "{own:#?}");
}

/// HUP, USR1 and USR2 while the start reads the configuration.
fn signals_wait_until_the_server_has_started(config: &Config) {
    let folder = TempFolder::new("early");
    folder.write("site/index.html", "the page\n");
    let (path, text) = (folder.at("tenfold.toml"), "root = \"site\"\n");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("our own folder");
    let word = path.display().to_string();
    let server = thread::scope(|scope| {
        scope.spawn(|| {
            // It opens when the server does.
            let mut pipe = File::options().write(true).open(&path).expect("it was made");
            fs::rename(folder.write("later", text), &path).expect("our own folder");
            let all = Process::all().into_iter().filter(|process| process.words().contains(&word));
            for server in all {
                [Signal::HUP, Signal::USR1, Signal::USR2]
                    .into_iter()
                    .for_each(|signal| server.signal(signal));
            }
            pipe.write_all(text.as_bytes()).expect("it is read");
        });
        Launch::bare(config).flag("--config", &word).start()
    });
    becomes_true(SOON, "the signals are obeyed", || {
        let status = server.status();
        (&status["reloads"]["succeeded"], &status["upgrades"]["succeeded"]) == (&1.into(), &1.into())
    });
    assert_eq!(server.get("/").body, b"the page\n");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}
