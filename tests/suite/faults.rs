//! System calls with documented failures: the server does not crash, hang, leak or spin, and soon answers again.
//! `strace` injects the failures (`man 1 strace`, "Tampering").

mod points;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use points::{CORK, LOGGING, POLL, Point, SUPERVISING, of_engine, of_sender};
use rustix::process::Signal;
use tenfold_engine::{Driver, Engine, MODELS, Topology};
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::{Theme, each_at_once};
use tenfold_tests::launch::{ANY_PORT, Launch};
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::strace::{CallFailure, Calls, Tracer};
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::wire::{Wire, request};

pub(crate) const THEME: Theme = Theme {
    name: "faults",
    cases: cases![
        Own on ENGINES: h30_failing_calls_are_harmless;
        Once: h30_failing_sender_calls_are_harmless, h30_failing_corks_are_harmless,
            h30_failing_waits_for_listeners_are_harmless, h30_the_supervisor_survives_failing_calls,
            h30_queued_work_is_done_by_later_threads, h31_a_failed_log_write_is_retried_or_counted;
    ],
};

/// The least number of faults for every engine.
const LEAST: usize = 20;

/// Small files requested once each, so that they must be opened and read.
const FRESH: usize = 300;
const BIG: usize = 1_500_000;

fn folder() -> TempFolder {
    let folder = TempFolder::new("faults");
    folder.write("1k.html", site::content("1k.html"));
    folder.write("big.bin", site::bytes(BIG, 7));
    for number in 0..FRESH {
        folder.write(&format!("fresh/{number}.html"), format!("<p>{number}</p>\n"));
    }
    folder
}

/// Sends all kinds of requests on one connection, and accepts any result, because calls fail.
fn meet(server: &Server, number: usize) {
    let Ok(mut stream) = TcpStream::connect_timeout(&server.address, SOON) else { return };
    let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
    let mut all = request("GET", "/1k.html", &[]);
    all.extend(request("GET", &format!("/fresh/{}.html", number % FRESH), &[]));
    all.extend(request("GET", "/big.bin", &[]));
    // This request is rejected, so that the connection is shut down and drained.
    all.extend(b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n");
    if stream.write_all(&all).is_err() {
        return;
    }
    let mut scratch = vec![0; 256 * 1024];
    while matches!(stream.read(&mut scratch), Ok(1..)) {}
}

/// Whether a normal request succeeds.
fn answers(server: &Server) -> bool {
    let Ok(mut wire) = Wire::try_connect(server.address) else { return false };
    if wire.try_send(&request("GET", "/1k.html", &[("Connection", "close")])).is_err() {
        return false;
    }
    wire.try_head().is_some_and(|response| response.status == 200)
}

/// The open descriptors, except files of the site and the log.
fn open(server: &Server, folder: &TempFolder) -> Vec<String> {
    let all = server.process.with_descendants().into_iter().flat_map(|process| process.descriptors());
    let root = folder.path().display().to_string();
    // Each thread reopens the log when it has something to write.
    all.filter(|what| !what.starts_with(&root) && !what.ends_with("access.log")).collect()
}

fn h30_failing_calls_are_harmless(config: &Config) {
    if *config != (Config { dispatch: config.dispatch, ..Config::of(config.engine) }) {
        // The remaining behaviour is the driver's code.
        return;
    }
    let points = of_engine(config.engine);
    assert!(points.len() >= LEAST, "{} points of {}", points.len(), config.engine);
    meet_all(Launch::new, config, &points);
}

/// With one listener the server waits in `accept4`, with several in `poll`.
fn h30_failing_waits_for_listeners_are_harmless() {
    let on_two = |config: &Config, root: &Path| Launch::new(config, root).flag("--listen", ANY_PORT);
    let blocking = MODELS.iter().filter(|model| model.driver == Driver::Blocking);
    let handing_over = Config { topology: Topology::Handoff, ..Config::of(Engine::Epoll) };
    let all = blocking.map(|model| Config::of(model.engine)).chain([handing_over]);
    each_at_once(all, |config| meet_all(on_two, &config, POLL));
}

/// One engine of each driver. A ring also sets the cork with calls.
fn h30_failing_corks_are_harmless() {
    let corked = |config: &Config, root: &Path| Launch::new(config, root).flag("--tcp-cork", "on");
    let all = [Engine::Naive, Engine::Epoll, Engine::AsioProactor, Engine::Uring].map(Config::of);
    each_at_once(all, |config| meet_all(corked, &config, CORK));
}

/// One engine of each driver, because the rest is the driver's code.
fn h30_failing_sender_calls_are_harmless() {
    let all = [Engine::Naive, Engine::Epoll, Engine::Uring].into_iter().flat_map(|engine| {
        engine.model().senders.iter().map(move |&sender| Config { sender, ..Config::of(engine) })
    });
    let of_config = |config: &Config| of_sender(config.engine, config.sender);
    each_at_once(all.filter(|config| !of_config(config).is_empty()), |config| {
        meet_all(Launch::new, &config, &of_config(&config));
    });
}

fn meet_all(launch: impl FnOnce(&Config, &Path) -> Launch, config: &Config, points: &[Point]) {
    let folder = folder();
    let server = launch(config, folder.path()).start();
    assert!(answers(&server), "before anything fails");
    (0..4).for_each(|number| meet(&server, number));
    becomes_true(SOON, "connections are gone", || server.process.with_descendants().len() == 2);
    let (workers, before) = (server.workers(), open(&server, &folder));
    let (mut number, mut lost) = (0, 0);
    for &point in points {
        let tracer = Tracer::inject(&workers, point);
        becomes_true(SOON, &format!("{point:?} is met"), || {
            number += 1;
            if point[0].calls == "read" {
                server.process.signal(Signal::USR1);
            }
            meet(&server, number);
            point.iter().all(|fault| tracer.failed(fault) > 0)
        });
        if point[0].calls == "close" {
            // A connection is closed shortly after its client has left.
            sleep(Duration::from_millis(100));
        }
        does_not_spin(&tracer, point);
        lost += not_closed(&tracer.detach());
        becomes_true(SOON, &format!("behind {point:?} a request is answered"), || answers(&server));
        assert_eq!(server.workers(), workers, "{point:?}: a worker ended; it said:\n{}", server.errors());
    }
    let (begun, mut now) = (Instant::now(), open(&server, &folder));
    while now.len() > before.len() + lost {
        assert!(
            begun.elapsed() < SOON,
            "{config}: descriptors are not given back: {now:?}, and were {before:?}"
        );
        // Each look reads the descriptors of every process.
        sleep(Duration::from_millis(50));
        now = open(&server, &folder);
    }
    let used = server.processor_time();
    // Processor time is counted in ticks, so a shorter time shows little.
    sleep(Duration::from_millis(500));
    let used = server.processor_time() - used;
    assert!(used < Duration::from_millis(200), "{used:?} of processor time in half a second without work");
    let counted = points.iter().filter(|point| is_counted(point)).count() as u64;
    assert!(!server.log().contains("unix:"), "nobody came over a Unix socket");
    assert!(refusals(&server) >= counted, "{} are counted, and {counted} were met", refusals(&server));
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The number of descriptors that were not closed, because `strace` suppresses a failing call. The kernel itself would
/// have closed the descriptor (`man 2 close`), and its number may be reused, so no program retries.
fn not_closed(calls: &Calls) -> usize {
    let failed = calls.with(&[" close(", "(INJECTED)"]);
    for line in &failed {
        let call = line.split(')').next().unwrap_or(line).trim_end();
        let same =
            |line: &&String| line.strip_prefix(call).is_some_and(|rest| rest.trim_start().starts_with(')'));
        let times = calls.lines.iter().filter(same).count();
        assert_eq!(times, 1, "{call}) is called again: {:#?}", calls.with(&[" close("]));
    }
    failed.len()
}

/// A call that keeps failing is not retried in a loop.
fn does_not_spin(tracer: &Tracer, point: Point) {
    let Some(lasting) = point.iter().find(|fault| fault.when.ends_with('+')) else { return };
    let met = tracer.failed(lasting);
    // The server pauses for 50 ms, or waits for a slice of 20 ms.
    sleep(Duration::from_millis(200));
    let again = tracer.failed(lasting) - met;
    assert!(again <= 40, "{lasting:?} is met {again} times in 200 ms: it spins");
}

fn h30_the_supervisor_survives_failing_calls() {
    let server = Launch::new(&Config::of(Engine::Epoll), site::shared()).start();
    for &point in SUPERVISING {
        let tracer = Tracer::inject(&[server.process], point);
        if ["read", "wait4", "clone"].iter().any(|name| point[0].calls.starts_with(name)) {
            server.workers().iter().for_each(|worker| worker.signal(Signal::KILL));
        }
        becomes_true(SOON, &format!("{point:?} is met"), || {
            let _asks = UnixStream::connect(server.at("control"));
            tracer.failed(&point[0]) > 0
        });
        does_not_spin(&tracer, point);
        drop(tracer.detach());
        becomes_true(SOON, &format!("behind {point:?} a worker serves"), || {
            server.workers().len() == 1 && answers(&server)
        });
        assert!(server.status()["connections"]["open"].is_number(), "{point:?}: the status is told");
    }
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// If threads cannot be started, later threads do the queued work.
fn h30_queued_work_is_done_by_later_threads() {
    let folder = TempFolder::new("threads");
    folder.write("text.txt", "a line that is nearly the same\n".repeat(10_000));
    let server = Launch::new(&Config::of(Engine::Epoll), folder.path()).flag("--compress", "gzip").start();
    let compressed = || {
        let response = server.ask("GET", "/text.txt", &[("Accept-Encoding", "gzip")]);
        assert!([200, 503].contains(&response.status), "{}", response.head);
        response.field("Content-Encoding") == Some("gzip")
    };
    const NO_THREADS: Point = &[CallFailure { calls: "clone,?clone3", error: "EAGAIN", when: "1+" }];
    let tracer = Tracer::inject(&server.workers(), NO_THREADS);
    becomes_true(SOON, "a thread is asked for", || {
        assert!(!compressed(), "there is no thread to do it");
        tracer.failed(&NO_THREADS[0]) > 0
    });
    drop(tracer.detach());
    becomes_true(SOON, "threads do it", compressed);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// All engines share the code that writes lines, so one engine per process model suffices.
fn h31_a_failed_log_write_is_retried_or_counted() {
    let engines = [Engine::Fork, Engine::Thread, Engine::Epoll, Engine::Uring].into_iter();
    let all = engines.flat_map(|engine| ["buffered", "sync", "async"].map(|mode| (engine, mode)));
    let goes = |(engine, mode): &(Engine, &str)| !(*engine == Engine::Fork && *mode == "async");
    each_at_once(all.filter(goes), |(engine, mode)| {
        let server = Launch::new(&Config::of(engine), site::shared()).flag("--log-mode", mode).start();
        let number = |name: &str| server.status()[name].as_u64().expect("a number");
        let mut asked = 0;
        let mut ask = |point: Point| {
            assert!(answers(&server), "{engine}, {mode}: {point:?} is no reason not to answer");
            asked += 1;
            asked
        };
        for &point in LOGGING {
            let before = number("log_lines_lost");
            let tracer = Tracer::inject_at(&server.workers(), &server.log_path(), point);
            becomes_true(SOON, &format!("{engine}, {mode}: {point:?} is met"), || {
                ask(point);
                tracer.failed(&point[0]) > 0
            });
            drop(tracer.detach());
            let asked = ask(point);
            becomes_true(SOON, &format!("{engine}, {mode}: behind {point:?} every line is counted"), || {
                number("log_lines") + number("log_lines_lost") == asked
            });
            let lost = number("log_lines_lost") - before;
            assert_eq!(lost > 0, point[0].error != "EINTR", "{engine}, {mode}: {point:?} has lost {lost}");
            let whole = server.log().lines().filter(|line| line.ends_with("\"-\" \"-\"")).count() as u64;
            assert_eq!(whole, number("log_lines"), "{engine}, {mode}: {point:?}");
        }
        server.expect_report("cannot write the access log: No space left on device");
        server.stop().unwrap_or_else(|why| panic!("{engine}, {mode}: {why}"));
    });
}

/// Whether the fault counts as a shortage of resources.
fn is_counted(point: Point) -> bool {
    let CallFailure { calls, error, .. } = point[0];
    let gives = ["accept4", "clone", "epoll_ctl", "select", "poll,", "io_uring_enter", "getpeername"];
    let passing = ["EINTR", "EBUSY", "ECONNABORTED", "ENOTCONN"];
    gives.iter().any(|name| calls.contains(name)) && !passing.contains(&error)
}

fn refusals(server: &Server) -> u64 {
    server.status()["refusals"]["exhausted"].as_u64().expect("a number")
}
