//! A switch has its effect: processes, sockets, triggers and calls, observed from outside.

use std::collections::BTreeSet;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use tenfold_engine::{Dispatch, Driver, Engine, Sender, Topology, Trigger};
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::process::Process;
use tenfold_tests::server::Server;
use tenfold_tests::site;
use tenfold_tests::strace::{Calls, Tracer};
use tenfold_tests::time::{SOON, becomes_true};

pub(crate) const THEME: Theme = Theme {
    name: "mechanisms",
    cases: cases![
        Own on TOPOLOGIES: a_topology_has_its_processes_threads_and_sockets, an_engine_makes_its_own_calls,
            null_answers_every_request;
        Own on TRIGGERS: triggers_are_those_asked_for;
        Own on DISPATCHES: a_dispatch_divides_the_work_between_threads;
        Own on SENDERS: a_sender_makes_its_call;
    ],
};

/// Inodes of the listening sockets on the server's port (`man 5 proc`, /proc/net/tcp).
fn listening(server: &Server) -> BTreeSet<String> {
    let table = fs::read_to_string("/proc/net/tcp").expect("Linux has it");
    let port = format!(":{:04X}", server.address.port());
    let rows = table.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let rows = rows.filter(|row| row.len() > 9 && row[1].ends_with(&port) && row[3] == "0A");
    rows.map(|row| row[9].to_owned()).collect()
}

fn a_topology_has_its_processes_threads_and_sockets(config: &Config) {
    let server = Launch::new(config, site::shared()).start();
    let mut wire = server.connect();
    wire.get("/1k.html");
    assert_eq!(wire.response().status, 200);

    let workers = server.workers();
    let plan = config.plan().expect("only what is legal is tested");
    assert_eq!(workers.len(), plan.processes(), "processes that serve");
    assert_eq!(listening(&server).len(), plan.sockets_per_address(), "sockets that listen");
    let threads: usize = workers[0].status("Threads").and_then(|count| count.parse().ok()).unwrap_or(0);
    if plan.processes() < config.workers() {
        assert!(threads >= config.workers(), "{threads} threads");
    }
    assert_eq!(server.process.status("Threads").as_deref(), Some("1"), "a supervisor has one thread");

    let for_connections = workers[0].children().len();
    assert_eq!(for_connections, usize::from(config.process_per_connection()), "processes for one connection");
    drop(wire);
    becomes_true(SOON, "the process of a connection ends with it", || workers[0].children().is_empty());
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// Descriptors in the epoll instances of this process, with their events (/proc/PID/fdinfo).
fn watched(process: Process) -> Vec<(String, u64)> {
    let folder = format!("/proc/{}", process.0);
    let entries = fs::read_dir(format!("{folder}/fdinfo")).expect("the process is there");
    let mut all = Vec::new();
    for entry in entries.flatten() {
        let info = fs::read_to_string(entry.path()).unwrap_or_default();
        for line in info.lines().filter(|line| line.starts_with("tfd:")) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let link = fs::read_link(format!("{folder}/fd/{}", words[1])).unwrap_or_default();
            let events = u64::from_str_radix(words[3], 16).expect("events are shown in hexadecimal");
            all.push((link.to_string_lossy().into_owned(), events));
        }
    }
    all
}

fn triggers_are_those_asked_for(config: &Config) {
    const EDGE: u64 = 1 << 31;
    let server = Launch::new(config, site::shared()).start();
    let all_watched = || server.workers().into_iter().flat_map(watched).collect::<Vec<_>>();
    // Listeners, and the socket by which connections of former workers come.
    let sources: Vec<String> = all_watched().into_iter().map(|(what, _)| what).collect();
    let mut wire = server.connect();
    wire.get("/1k.html");
    assert_eq!(wire.response().status, 200);
    let triggers = config.triggers.unwrap_or_default();
    let listeners: Vec<String> = listening(&server).iter().map(|inode| format!("socket:[{inode}]")).collect();
    let is_connection = |what: &str, events: u64| {
        what.starts_with("socket:") && events & 1 != 0 && !sources.iter().any(|one| one == what)
    };
    becomes_true(SOON, "a connection is watched", || {
        all_watched().iter().any(|(what, events)| is_connection(what, *events))
    });
    let mut seen_listener = false;
    for (what, events) in all_watched() {
        let edge = if events & EDGE == 0 { Trigger::Level } else { Trigger::Edge };
        if listeners.contains(&what) {
            assert_eq!(edge, triggers.listener, "of the listener");
            seen_listener = true;
        } else if is_connection(&what, events) {
            assert_eq!(edge, triggers.connections, "of a connection");
        }
    }
    // With handoff, the accepting thread waits in accept.
    assert_eq!(seen_listener, config.topology != Topology::Handoff, "whether a listener is watched");
}

/// Traces requests on a new connection.
fn calls_for(server: &Server, target: &str, count: usize) -> Calls {
    assert_eq!(server.get(target).status, 200);
    let tracer = Tracer::attach(&server.workers());
    for _ in 0..count {
        assert_eq!(server.get(target).status, 200);
        // Time for the server to become idle.
        sleep(Duration::from_millis(5));
    }
    // A slow machine may take longer.
    becomes_true(SOON, "the server waits", || server.workers().iter().all(|worker| worker.is_sleeping()));
    tracer.detach()
}

fn an_engine_makes_its_own_calls(config: &Config) {
    let server = Launch::new(config, site::shared()).start();
    let calls = calls_for(&server, "/1k.html", 20);
    let counts = calls.counts();
    let forks = calls.lines.iter().filter(|line| is_fork(line)).count();
    // The sandbox answers `clone3` with ENOSYS, and the C library falls back to `clone`.
    let refused = calls.with(&["clone3(", "ENOSYS"]).len();
    let threads = calls.count(&["clone", "clone3"]) - forks - refused;
    let waits = match config.engine {
        Engine::Libevent | Engine::Asio | Engine::AsioProactor => "epoll".to_owned(),
        engine => engine.to_string(),
    };
    for (model, names) in WAYS_TO_WAIT {
        let found = calls.count(names);
        let own = model == waits;
        assert_eq!(found > 0, own, "{found} of {names:?}, the calls of {model}: {counts:?}");
    }
    assert_eq!(forks >= 20, config.process_per_connection(), "{forks} forks: {counts:?}");
    assert_eq!(threads >= 20, config.engine.to_string() == "thread", "{threads} threads: {counts:?}");
    if config.engine == Engine::AsioProactor && config.topology != Topology::Handoff {
        // Tenfold uses another call to accept.
        let accepted = (calls.count(&["accept"]) > 0, calls.count(&["accept4"]));
        assert_eq!(accepted, (true, 0), "Asio accepts, and nobody else: {counts:?}");
    }
    // With `handoff` another thread accepts, and signals through an eventfd.
    if config.engine == Engine::Uring && config.topology != Topology::Handoff {
        let classic = calls.count(&["accept4", "accept", "recvfrom", "read", "sendto", "send", "write"]);
        assert!(classic <= 10, "calls that belong in the ring: {counts:?}");
    }
}

/// The numbers of the threads that made one of these calls.
fn threads_of(calls: &Calls, names: &[&str]) -> BTreeSet<String> {
    let is_one = |line: &&String| names.iter().any(|name| line.contains(&format!(" {name}(")));
    let of = |line: &String| line.split_ascii_whitespace().next().unwrap_or_default().to_owned();
    calls.lines.iter().filter(is_one).map(of).collect()
}

/// The numbers of the threads that wrote the start of a response. Writes to an eventfd wake other threads.
fn threads_that_respond(calls: &Calls) -> BTreeSet<String> {
    let lines = calls.lines.iter().filter(|line| line.contains(" write(") && line.contains("\"HTTP/1.1 "));
    lines.filter_map(|line| line.split_ascii_whitespace().next().map(str::to_owned)).collect()
}

fn a_dispatch_divides_the_work_between_threads(config: &Config) {
    let server = Launch::new(config, site::shared()).flag("--pool-threads", 3).start();
    let calls = calls_for(&server, "/1k.html", 20);
    let loops = threads_of(&calls, &["accept4"]);
    let receiving = threads_of(&calls, &["recvfrom"]);
    let sending = threads_that_respond(&calls);
    let all = &calls.lines;
    assert_eq!(loops.len(), 1, "one thread accepts: {all:#?}");
    match config.dispatch {
        Dispatch::Reactor => {
            assert!(receiving.is_disjoint(&loops) && sending.is_disjoint(&loops), "{all:#?}")
        }
        Dispatch::Proactor => assert!(receiving == loops && sending == loops, "{all:#?}"),
        Dispatch::Inline => panic!("nothing is divided"),
    }
    let at_work = threads_of(&calls, &["futex"]);
    assert!(at_work.difference(&loops).count() > 0, "nobody of the pool was woken: {all:#?}");
}

/// The waits of engines for several connections; other engines have none.
const WAYS_TO_WAIT: [(&str, &[&str]); 5] = [
    ("busy", &["nanosleep", "clock_nanosleep"]),
    ("select", &["select", "pselect6"]),
    ("poll", &["poll", "ppoll"]),
    ("epoll", &["epoll_wait", "epoll_pwait", "epoll_pwait2"]),
    ("uring", &["io_uring_enter"]),
];

/// Whether a call creates a process, and not a thread (`man 2 clone`).
fn is_fork(line: &str) -> bool {
    line.contains("fork(") || (line.contains("clone") && !line.contains("CLONE_VM"))
}

fn a_sender_makes_its_call(config: &Config) {
    let server = Launch::new(config, site::shared()).start();
    // The memory of pending sends is bounded per user (RLIMIT_MEMLOCK), and other servers may hold all of it.
    let mut held = false;
    for (target, large) in [("/1k.html", false), ("/3m.bin", true)] {
        let calls = calls_for(&server, target, 3);
        let counts = calls.counts();
        held |= calls.lines.iter().any(|line| line.contains("MSG_ZEROCOPY") && !line.contains("ENOBUFS"));
        // A thread that reads for a loop sends nothing.
        let mut serving =
            threads_of(&calls, &["sendto", "sendmsg", "sendfile", "writev", "splice", "io_uring_enter"]);
        serving.append(&mut threads_that_respond(&calls));
        let is_serving =
            |line: &str| line.split_ascii_whitespace().next().is_some_and(|number| serving.contains(number));
        let with = |text: &str| calls.lines.iter().filter(|line| line.contains(text)).count();
        let seen = SenderCalls {
            sendfile: calls.count(&["sendfile", "sendfile64"]),
            reads: calls.lines.iter().filter(|line| line.contains(" pread64(") && is_serving(line)).count(),
            memory: calls.count(&["sendto", "sendmsg", "writev", "write"]),
            // Threads and the allocator also map memory, but no files.
            mapped: with("MAP_SHARED"),
            written: calls.count(&["writev"]),
            spliced: calls.count(&["splice"]),
            uncopied: with("MSG_ZEROCOPY"),
            released: with("MSG_ERRQUEUE"),
        };
        asks_once_for_a_piece(config, &calls, large.then_some(seen.sendfile));
        let ring = config.engine == Engine::Uring;
        let right = match config.sender {
            Sender::Auto if large => seen.sendfile >= 3 && seen.is_only(&[seen.sendfile]),
            // A new thread or process reads a file again that another has cached.
            Sender::Auto => seen.is_only(&[seen.reads]),
            Sender::Copy if ring => seen.is_only(&[]),
            Sender::Copy => seen.reads >= 3 && seen.memory >= 3 && seen.is_only(&[seen.reads]),
            Sender::Mmap if config.engine.model().driver == Driver::Completion => {
                seen.mapped >= 3 && seen.is_only(&[seen.mapped])
            }
            Sender::Mmap => {
                seen.mapped >= 3 && seen.written >= 3 && seen.is_only(&[seen.mapped, seen.written])
            }
            Sender::Sendfile => seen.sendfile >= 3 && seen.is_only(&[seen.sendfile]),
            // Into a pipe, and out of it.
            Sender::Splice => seen.spliced >= 6 && seen.is_only(&[seen.spliced]),
            Sender::Zerocopy if ring => seen.mapped >= 3 && seen.uncopied + seen.sendfile + seen.spliced == 0,
            // The kernel may refuse some sends, which are then copied. The last notification may come after the trace.
            Sender::Zerocopy => {
                seen.mapped.min(seen.uncopied) >= 3 && seen.sendfile + seen.written + seen.spliced == 0
            }
        };
        assert!(right, "{target}: {seen:?} of {counts:?}");
    }
    let zerocopy = config.sender == Sender::Zerocopy;
    becomes_true(SOON, "sends without copying are counted when they are released, or when refused", || {
        let status = server.status();
        let sends = status["zerocopy"]["sends"].as_u64().unwrap_or(0);
        let refused = status["substituted"].as_u64().unwrap_or(0);
        sends >= u64::from(held) && (!zerocopy || sends + refused > 0)
    });
    let status = server.status();
    assert!(zerocopy || status["zerocopy"]["sends"] == 0, "{status}");
    // The loopback interface always copies.
    assert_eq!(status["zerocopy"]["copied"], status["zerocopy"]["sends"]);
    let exhausted = status["substituted"] != 0;
    assert!(!exhausted || config.sender == Sender::Zerocopy, "copied for want of something else: {status}");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// Checks the calls that test whether a piece of a file is in memory: one for each piece of a large file, and one at
/// the start of each of three responses.
fn asks_once_for_a_piece(config: &Config, calls: &Calls, pieces: Option<usize>) {
    let asked = calls.count(&["preadv2"]);
    let loops = config.engine.model().driver != Driver::Blocking;
    match (config.sender, pieces) {
        (Sender::Auto | Sender::Sendfile, Some(pieces)) if loops => {
            assert!(asked <= pieces + 3, "{asked} questions: {:?}", calls.counts());
            // After a slow send, a thread reads the next piece without a test.
            assert!(asked + calls.count(&["pread64"]) > 0, "{:?}", calls.counts());
        }
        (Sender::Auto, _) => assert_eq!(asked, 0, "{:?}", calls.counts()),
        _ => assert!(loops || asked == 0, "{:?}", calls.counts()),
    }
}

/// Calls of senders that access files or send them.
#[derive(Debug)]
struct SenderCalls {
    sendfile: usize,
    reads: usize,
    memory: usize,
    mapped: usize,
    written: usize,
    spliced: usize,
    uncopied: usize,
    released: usize,
}

impl SenderCalls {
    /// Whether no other calls were made.
    fn is_only(&self, counts: &[usize]) -> bool {
        let SenderCalls { sendfile, reads, mapped, written, spliced, uncopied, released, .. } = *self;
        sendfile + reads + mapped + written + spliced + uncopied + released == counts.iter().sum::<usize>()
    }
}

fn null_answers_every_request(config: &Config) {
    // Nothing is offloaded, so it reports that.
    if config.dispatch == Dispatch::Proactor {
        let refused = Launch::bare(config).word("--null").refused();
        assert!(String::from_utf8_lossy(&refused.stderr).contains("dispatch proactor"), "{refused:?}");
        return;
    }
    let launch = Launch::bare(config).word("--null").flag("--null-body", 100);
    let server = launch.flag("--access-log", "off").start();
    let mut wire = server.connect();
    for target in ["/1k.html", "/none.html", "/.secret"] {
        wire.get(target);
        let response = wire.response();
        assert_eq!((response.status, response.body.len()), (200, 100), "{target}");
    }
    wire.send(tenfold_tests::wire::request("GET", "/", &[]).repeat(16));
    for at in 0..16 {
        assert_eq!(wire.response().body.len(), 100, "pipelined answer {at}");
    }
    drop(wire);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
    let server = Launch::bare(config).word("--null").word("--null-close").flag("--access-log", "off").start();
    let mut wire = server.connect();
    wire.get("/");
    let response = wire.response();
    assert_eq!((response.status, response.body.len()), (200, 0));
    wire.expect_end();
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}
