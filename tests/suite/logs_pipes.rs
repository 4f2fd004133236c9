//! Access logs to a pipe: an unread pipe blocks the server only if the configuration says so.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Signal;
use tenfold_engine::Engine;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{ANY_PORT, Launch};
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::tools::program;

pub(crate) const THEME: Theme = Theme {
    name: "logs-pipes",
    cases: cases![
        Own on EPOLL: h32_a_blocked_pipe_drops_lines_and_no_request_waits,
            a_blocked_pipe_makes_requests_wait_and_says_so, a_pipe_without_its_reader_delays_no_signal;
        Once: a_pipe_without_a_reader_is_reported_at_the_start;
    ],
};

fn number(server: &Server, name: &str) -> u64 {
    let status = server.status();
    status[name].as_u64().unwrap_or_else(|| panic!("no {name} in {status}"))
}

#[track_caller]
fn stop(server: Server) {
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// A pipe held open by the test, which reads on demand.
fn pipe(folder: &TempFolder) -> (PathBuf, File) {
    let path = folder.at("pipe");
    let made = std::process::Command::new(program("mkfifo")).arg(&path).status().expect("it can be run");
    assert!(made.success());
    let end = read_end(&path);
    (path, end)
}

/// Opening it for reading and writing does not wait for the other end.
fn read_end(path: &Path) -> File {
    File::options().read(true).write(true).open(path).expect("it was made")
}

/// Whether a process has the pipe open for reading (`man 7 fifo`).
fn is_read(path: &Path) -> bool {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).err() != Some(Errno::NXIO)
}

/// Long targets, so that a few hundred lines fill pipe and queue.
fn long_target(number: usize) -> String {
    format!("/1k.html?{number}&{}", "a".repeat(7000))
}

/// Reads lines from the pipe until it has `count`.
#[track_caller]
fn read_lines(mut end: File, count: usize) -> usize {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = end.read(&mut buffer) {
            if sender.send(buffer[..read].iter().filter(|byte| **byte == b'\n').count()).is_err() {
                return;
            }
        }
    });
    let mut lines = 0;
    while lines < count {
        lines += receiver.recv_timeout(SOON).unwrap_or_else(|_| panic!("{lines} lines of {count}"));
    }
    lines
}

fn through_pipe(config: &Config, path: &Path, full: &str) -> Server {
    let launch = Launch::new(config, site::shared()).flag("--access-log", path.display());
    launch.flag("--log-mode", "async").flag("--log-full", full).start()
}

fn h32_a_blocked_pipe_drops_lines_and_no_request_waits(config: &Config) {
    const REQUESTS: usize = 600;
    let folder = TempFolder::new("pipe");
    let (path, end) = pipe(&folder);
    let server = through_pipe(config, &path, "drop");
    let mut wire = server.connect();
    for number in 0..REQUESTS {
        let begin = Instant::now();
        wire.get(&long_target(number));
        assert_eq!(wire.response().status, 200);
        assert!(begin.elapsed() < SOON, "request {number} waited {:?}", begin.elapsed());
    }
    let dropped = number(&server, "log_lines_dropped");
    assert!(dropped > 0, "4 MiB of lines fit nowhere");
    let said = || server.errors().matches("lines are dropped and counted").count();
    becomes_true(SOON, "it is said", || said() > 0);
    assert_eq!(said(), 1, "{}", server.errors());
    assert_eq!(read_lines(end, REQUESTS - dropped as usize), REQUESTS - dropped as usize);
    stop(server);
}

fn a_blocked_pipe_makes_requests_wait_and_says_so(config: &Config) {
    const REQUESTS: usize = 600;
    let folder = TempFolder::new("pipe");
    let (path, end) = pipe(&folder);
    let server = through_pipe(config, &path, "block");
    let (sender, answered) = channel();
    thread::scope(|scope| {
        let mut wire = server.connect();
        scope.spawn(move || {
            for number in 0..REQUESTS {
                wire.get(&long_target(number));
                assert_eq!(wire.response().status, 200);
                sender.send(()).expect("the case lasts longer");
            }
        });
        server.expect_report("requests, which wait for it now");
        let count = answered.try_iter().count();
        assert!(count < REQUESTS, "every request was answered, and 4 MiB of lines fit nowhere");
        assert_eq!(number(&server, "log_lines_dropped"), 0);
        assert_eq!(read_lines(end, REQUESTS), REQUESTS, "no line is lost");
    });
    stop(server);
}

/// The pipe has lost its reader, and a signal reopens the log: the supervisor still answers and replaces workers.
fn a_pipe_without_its_reader_delays_no_signal(config: &Config) {
    let folder = TempFolder::new("pipe");
    let (path, end) = pipe(&folder);
    let launch = Launch::new(config, site::shared()).flag("--access-log", path.display());
    let server = launch.flag("--log-mode", "sync").start();
    drop(end);
    // A child that another test has forked has a copy until it executes its program.
    becomes_true(SOON, "no process reads the pipe", || !is_read(&path));
    let named = format!("the access log {}", path.display());
    for (signal, how) in [
        (Signal::USR1, "lines still go to the old file"),
        (Signal::HUP, "the old configuration stays in use"),
    ] {
        server.process.signal(signal);
        server.expect_report(how);
        let said = server.errors();
        let line = said.lines().find(|line| line.contains(how)).expect("it was just there");
        for part in [&named, "no process reads this pipe", "start its reader, then try again"] {
            assert!(line.contains(part), "{part:?} is not said in: {line}");
        }
    }
    let before = server.workers();
    before[0].signal(Signal::KILL);
    becomes_true(SOON, "the worker is replaced", || {
        let now = server.workers();
        now.len() == before.len() && now != before
    });
    assert_eq!(server.get("/1k.html").status, 200);
    becomes_true(SOON, "the line is counted as lost", || number(&server, "log_lines_lost") == 1);
    let end = read_end(&path);
    server.process.signal(Signal::USR1);
    assert_eq!(server.get("/1k.html").status, 200);
    assert_eq!(read_lines(end, 1), 1, "who reads again is written to again");
    stop(server);
}

fn a_pipe_without_a_reader_is_reported_at_the_start() {
    let folder = TempFolder::new("pipe");
    let (path, end) = pipe(&folder);
    drop(end);
    let launch = Launch::new(&Config::of(Engine::Epoll), site::shared()).flag("--listen", ANY_PORT);
    let output = launch.flag("--access-log", path.display()).refused();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let expected = format!("cannot open the access log {}: no process reads this pipe: ", path.display());
    assert!(said.contains(&expected) && said.contains("start its reader, then try again"), "{said}");
}
