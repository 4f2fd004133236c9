//! System calls that fail as the manual says they may: nothing crashes, hangs, leaks or spins, and who asks soon
//! after is answered. `strace` makes them fail (`man 1 strace`, "Tampering").

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use tenfold_engine::{Driver, Engine};
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, Folder};
use tenfold_tests::strace::{Fault, Tracer};
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::wire::{Wire, request};

pub(crate) const THEME: Theme = Theme {
    name: "faults",
    cases: cases![Engines Own: h30_calls_that_fail_harm_nobody; Every Once: h30_the_supervisor_goes_on;],
};

/// Faults that are met together.
type Point = &'static [Fault];

const fn fault(calls: &'static str, error: &'static str, when: &'static str) -> Fault {
    Fault { calls, error, when }
}

/// Of engines that accept by a call; `1+` lasts as long as the point does.
const ACCEPTING: &[Point] = &[
    &[fault("accept4", "EMFILE", "1+")],
    &[fault("accept4", "ENFILE", "1..2")],
    &[fault("accept4", "ENOBUFS", "1..2")],
    &[fault("accept4", "ENOMEM", "1..2")],
    &[fault("accept4", "EPERM", "1")],
    &[fault("accept4", "ENOSPC", "1")],
    &[fault("accept4", "EIO", "1")],
    &[fault("accept4", "ECONNABORTED", "1..3")],
    &[fault("accept4", "EINTR", "1..5")],
    &[fault("accept4", "EPIPE", "1")],
];

/// Of engines that receive and send by calls.
const SPEAKING: &[Point] = &[
    &[fault("recvfrom", "EINTR", "1..3")],
    &[fault("recvfrom", "EAGAIN", "1")],
    &[fault("recvfrom", "ECONNRESET", "1")],
    &[fault("recvfrom", "ENOMEM", "1")],
    &[fault("recvfrom", "EIO", "1")],
    &[fault("sendto,sendmsg", "EINTR", "1..3")],
    &[fault("sendto,sendmsg", "EAGAIN", "1")],
    &[fault("sendto,sendmsg", "EPIPE", "1")],
    &[fault("sendto,sendmsg", "ECONNRESET", "1")],
    &[fault("sendto,sendmsg", "ENOBUFS", "1")],
    &[fault("sendto,sendmsg", "ENOMEM", "1")],
];

/// Of every engine: files, and what surrounds a connection.
const FILES: &[Point] = &[
    &[fault("sendfile", "EINTR", "1..3")],
    &[fault("sendfile", "EAGAIN", "1")],
    &[fault("sendfile", "EIO", "1")],
    &[fault("sendfile", "ENOMEM", "1")],
    &[fault("sendfile", "EPIPE", "1")],
    &[fault("openat2", "EMFILE", "1..2")],
    &[fault("openat2", "ENFILE", "1..2")],
    &[fault("openat2", "EINTR", "1")],
    &[fault("openat2", "ENOMEM", "1..2")],
    &[fault("openat2", "EIO", "1")],
    &[fault("pread64", "EINTR", "1")],
    &[fault("pread64", "EIO", "1")],
    &[fault("shutdown", "ENOTCONN", "1")],
    &[fault("shutdown", "ENOBUFS", "1")],
];

/// Of one engine: how it waits, and what it needs for a connection.
fn own(engine: Engine) -> &'static [Point] {
    match engine {
        Engine::Fork => FORK,
        Engine::Thread => THREAD,
        Engine::Busy => BUSY,
        Engine::Select => SELECT,
        Engine::Poll => POLL,
        Engine::Epoll => EPOLL,
        Engine::Uring => URING,
        _ => &[],
    }
}

const FORK: &[Point] = &[
    &[fault("clone,?clone3,?fork,?vfork", "EAGAIN", "1")],
    &[fault("clone,?clone3,?fork,?vfork", "ENOMEM", "1")],
    &[fault("wait4", "EINTR", "1")],
];
const THREAD: &[Point] =
    &[&[fault("clone,?clone3", "EAGAIN", "1")], &[fault("clone,?clone3", "ENOMEM", "1")]];
const BUSY: &[Point] = &[&[fault("?nanosleep,clock_nanosleep", "EINTR", "1..3")]];
const SELECT: &[Point] =
    &[&[fault("?select,pselect6", "EINTR", "1..5")], &[fault("?select,pselect6", "ENOMEM", "1+")]];
const POLL: &[Point] = &[
    &[fault("?poll,ppoll", "EINTR", "1..5")],
    &[fault("?poll,ppoll", "ENOMEM", "1+")],
    &[fault("?poll,ppoll", "EAGAIN", "1")],
];
const EPOLL: &[Point] = &[
    &[fault("?epoll_wait,epoll_pwait", "EINTR", "1..5")],
    &[fault("epoll_ctl", "ENOMEM", "1")],
    &[fault("epoll_ctl", "ENOSPC", "1")],
    // The listener is let go, and can not be watched again at once.
    &[fault("accept4", "ENFILE", "1"), fault("epoll_ctl", "ENOSPC", "2..3")],
];
const URING: &[Point] = &[
    &[fault("io_uring_enter", "EINTR", "1..5")],
    &[fault("io_uring_enter", "EAGAIN", "1..2")],
    &[fault("io_uring_enter", "EAGAIN", "1+")],
    &[fault("io_uring_enter", "ENOMEM", "1..2")],
    &[fault("io_uring_enter", "EBUSY", "1..3")],
    &[fault("getpeername", "ENOTCONN", "1")],
    &[fault("getpeername", "ENOBUFS", "1")],
    &[fault("getpeername", "ENOMEM", "1")],
];

/// Of the supervisor, which waits, answers who asks for the status, and replaces workers.
const SUPERVISING: &[Point] = &[
    &[fault("?poll,ppoll", "EINTR", "1..3")],
    &[fault("?poll,ppoll", "ENOMEM", "1+")],
    &[fault("accept4", "EMFILE", "1+")],
    &[fault("accept4", "ECONNABORTED", "1")],
    &[fault("read", "EINTR", "1")],
    &[fault("wait4", "EINTR", "1")],
    &[fault("clone,?clone3,?fork,?vfork", "EAGAIN", "1")],
];

/// Faults of every engine, and at least so many.
const LEAST: usize = 20;

fn points(config: &Config) -> Vec<Point> {
    let by_calls = config.engine.model().driver != Driver::Completion;
    let calls = if by_calls { [ACCEPTING, SPEAKING].concat() } else { Vec::new() };
    [calls.as_slice(), FILES, own(config.engine)].concat()
}

/// Small files that are asked for once each, so that they have to be opened and read.
const FRESH: usize = 300;
const BIG: usize = 1_500_000;

fn folder() -> Folder {
    let folder = Folder::new("faults");
    folder.write("1k.html", site::content("1k.html"));
    folder.write("big.bin", site::bytes(BIG, 7));
    for number in 0..FRESH {
        folder.write(&format!("fresh/{number}.html"), format!("<p>{number}</p>\n"));
    }
    folder
}

/// Asks for everything on one connection, and takes whatever comes: with what fails just now, that may be
/// nothing.
fn meet(server: &Server, number: usize) {
    let Ok(mut stream) = TcpStream::connect_timeout(&server.address, SOON) else { return };
    let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
    let mut all = request("GET", "/1k.html", &[]);
    all.extend(request("GET", &format!("/fresh/{}.html", number % FRESH), &[]));
    all.extend(request("GET", "/big.bin", &[]));
    // It is refused, so that the connection is shut down and drained.
    all.extend(b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n");
    if stream.write_all(&all).is_err() {
        return;
    }
    let mut scratch = vec![0; 256 * 1024];
    while matches!(stream.read(&mut scratch), Ok(1..)) {}
}

/// Whether a normal request is answered.
fn answers(server: &Server) -> bool {
    let Ok(mut wire) = Wire::try_connect(server.address, false) else { return false };
    if wire.try_send(&request("GET", "/1k.html", &[("Connection", "close")])).is_err() {
        return false;
    }
    wire.try_head().is_some_and(|response| response.status == 200)
}

/// Sockets, and other descriptors that are no files of the site.
fn open(server: &Server, folder: &Folder) -> usize {
    let all = server.process.with_descendants().into_iter().flat_map(|process| process.descriptors());
    let root = folder.path().display().to_string();
    all.filter(|what| !what.starts_with(&root)).count()
}

fn h30_calls_that_fail_harm_nobody(config: &Config) {
    let points = points(config);
    assert!(points.len() >= LEAST, "{} points of {}", points.len(), config.engine);
    let folder = folder();
    let server = Launch::new(config, folder.path()).start();
    assert!(answers(&server), "before anything fails");
    (0..4).for_each(|number| meet(&server, number));
    becomes_true(SOON, "connections are gone", || server.process.with_descendants().len() == 2);
    let (workers, before) = (server.workers(), open(&server, &folder));
    let mut number = 0;
    for &point in &points {
        let tracer = Tracer::inject(&workers, point);
        becomes_true(SOON, &format!("{point:?} is met"), || {
            number += 1;
            meet(&server, number);
            point.iter().all(|fault| tracer.failed(fault) > 0)
        });
        does_not_spin(&tracer, point);
        drop(tracer.detach());
        becomes_true(SOON, &format!("behind {point:?} a request is answered"), || answers(&server));
        assert_eq!(server.workers(), workers, "{point:?}: a worker ended; it said:\n{}", server.errors());
    }
    becomes_true(SOON, "every descriptor is given back", || open(&server, &folder) <= before);
    let used = server.processor_time();
    sleep(Duration::from_millis(1000));
    let used = server.processor_time() - used;
    assert!(used < Duration::from_millis(400), "{used:?} of processor time in a second without work");
    let counted = points.iter().filter(|point| is_counted(point)).count() as u64;
    assert!(!server.log().contains("unix:"), "nobody came over a Unix socket");
    assert!(refusals(&server) >= counted, "{} are counted, and {counted} were met", refusals(&server));
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// A call that goes on failing is not made again and again.
fn does_not_spin(tracer: &Tracer, point: Point) {
    let Some(lasting) = point.iter().find(|fault| fault.when.ends_with('+')) else { return };
    let met = tracer.failed(lasting);
    sleep(Duration::from_millis(500));
    let again = tracer.failed(lasting) - met;
    assert!(again <= 50, "{lasting:?} is met {again} times in half a second: it spins");
}

fn h30_the_supervisor_goes_on() {
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

/// Whether the system does not give what a connection needs, or a wait.
fn is_counted(point: Point) -> bool {
    let Fault { calls, error, .. } = point[0];
    let gives = ["accept4", "clone", "epoll_ctl", "select", "poll,", "io_uring_enter", "getpeername"];
    let passing = ["EINTR", "EBUSY", "ECONNABORTED", "ENOTCONN"];
    gives.iter().any(|name| calls.contains(name)) && !passing.contains(&error)
}

fn refusals(server: &Server) -> u64 {
    server.status()["refusals"]["exhausted"].as_u64().expect("a number")
}
