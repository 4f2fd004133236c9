//! Each transport switch makes its system call and changes nothing else.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenfold_engine::Engine;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{ANY_PORT, Launch, tenfold};
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::strace::{Calls, Tracer, has_succeeded};
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::wire::{Wire, request};

pub(crate) const THEME: Theme = Theme {
    name: "switches",
    cases: cases![
        Own on ENGINES: a_response_is_corked_and_uncorked, a_response_leaves_in_the_configured_calls,
            connections_are_accepted_one_at_a_time, every_kind_of_address_is_served;
        Own on EPOLL: options_are_set_on_listening_sockets, options_that_are_off_are_not_set,
            nagle_delays_a_split_response_until_an_acknowledgement;
        Once: fastopen_is_rejected_if_the_kernel_would_ignore_it, nonsensical_arguments_are_rejected;
        OnceAsRoot: fastopen_is_set_if_the_kernel_permits_it;
    ],
};

/// Starts the server under `strace`, requests one page, stops it, and returns its network calls.
fn from_start(config: &Config, flags: &[(&str, &str)]) -> Calls {
    let folder = TempFolder::new("strace");
    let into = folder.at("calls").display().to_string();
    let launch =
        Launch::new(config, site::shared()).through("strace", &Tracer::from_start("trace=%network", &into));
    let server = flags.iter().fold(launch, |launch, (name, value)| launch.flag(name, value)).start();
    assert_eq!(server.get("/1k.html").status, 200);
    let process = server.process;
    server.stop().unwrap_or_else(|why| panic!("{why}"));
    Calls::from_start(process, &folder.at("calls"))
}

#[track_caller]
fn expect_call(calls: &Calls, words: &[&str]) {
    assert!(!calls.with(words).is_empty(), "no call with {words:?}: {:#?}", calls.with(&["setsockopt"]));
}

fn options_are_set_on_listening_sockets(config: &Config) {
    let folder = TempFolder::new("addresses");
    let unix = format!("unix:{}", folder.at("socket").display());
    let flags = [
        ("--linger", "3"),
        ("--notsent-lowat", "16k"),
        ("--backlog", "64"),
        ("--tcp-nodelay", "on"),
        ("--listen", "[::1]:0"),
        ("--listen", &unix),
    ];
    let calls = from_start(config, &flags);
    expect_call(&calls, &["setsockopt(", "SO_LINGER, {l_onoff=1, l_linger=3}"]);
    expect_call(&calls, &["setsockopt(", "TCP_NOTSENT_LOWAT, [16384]"]);
    expect_call(&calls, &["setsockopt(", "TCP_NODELAY, [1]"]);
    expect_call(&calls, &["setsockopt(", "TCP_DEFER_ACCEPT, [1]"]);
    assert_eq!(calls.with(&[" listen(", ", 64)"]).len(), 3, "{:#?}", calls.with(&[" listen("]));
    expect_call(&calls, &["socket(AF_INET6, SOCK_STREAM"]);
    expect_call(&calls, &["setsockopt(", "IPV6_V6ONLY, [1]"]);
    expect_call(&calls, &["bind(", "sa_family=AF_INET6"]);
    expect_call(&calls, &["bind(", "sa_family=AF_UNIX, sun_path="]);
}

fn options_that_are_off_are_not_set(config: &Config) {
    let calls = from_start(config, &[("--tcp-nodelay", "off"), ("--defer-accept", "off")]);
    for option in
        ["TCP_NODELAY, [1]", "TCP_DEFER_ACCEPT", "SO_LINGER", "TCP_NOTSENT_LOWAT", "TCP_FASTOPEN", "TCP_CORK"]
    {
        assert!(
            calls.with(&["setsockopt(", option]).is_empty(),
            "{option}: {:#?}",
            calls.with(&["setsockopt("])
        );
    }
    expect_call(&calls, &["listen(", ", 511)"]);
}

/// Sequential requests on one connection, with a tracer of the serving processes.
fn traced_requests(server: &Server, target: &str, count: usize) -> Tracer {
    let mut wire = server.connect();
    let mut ask = |times: usize| {
        for _ in 0..times {
            wire.get(target);
            assert_eq!(wire.response().status, 200);
        }
    };
    ask(1);
    let tracer = Tracer::attach(&server.process.with_descendants()[1..]);
    ask(count);
    tracer
}

fn a_response_is_corked_and_uncorked(config: &Config) {
    const REQUESTS: usize = 5;
    let server = Launch::new(config, site::shared()).flag("--tcp-cork", "on").start();
    // From memory, and from a file.
    for target in ["/1k.html", "/128k.bin"] {
        // The cork is released after the response, and before the read of the next request. The first release may
        // belong to an earlier request.
        let calls = traced_requests(&server, target, REQUESTS + 1).detach();
        let corks = calls.with(&["setsockopt(", "TCP_CORK"]);
        let corks = corks.into_iter().skip_while(|cork| cork.contains("[0]")).take(2 * REQUESTS);
        let corks: Vec<_> = corks.collect();
        assert_eq!(corks.len(), 2 * REQUESTS, "{target}: {:#?}", calls.lines);
        for (place, cork) in corks.iter().enumerate() {
            let put = if place % 2 == 0 { "[1]" } else { "[0]" };
            assert!(cork.contains(put), "{target}: call {place}: {cork}");
        }
        if config.engine != Engine::Uring {
            let first = calls.lines.iter().position(|line| line.contains("TCP_CORK, [1]"));
            let sent = calls.lines.iter().position(|line| line.contains("HTTP/1.1 200"));
            let last = calls.lines.iter().rposition(|line| line.contains("TCP_CORK, [0]"));
            assert!(first < sent && sent < last, "{target}: {:#?}", calls.lines);
        }
    }
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The number of pieces of each response according to the log.
fn sends_by_the_log(server: &Server) -> Vec<u64> {
    let log = server.log();
    let lines = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("it is JSON"));
    lines.map(|line| line["sends"].as_u64().expect("it says how many calls")).collect()
}

fn a_response_leaves_in_the_configured_calls(config: &Config) {
    const REQUESTS: usize = 3;
    for (write, by_head) in [("joined", 0), ("split", 1), ("per-header", 0)] {
        let launch = Launch::new(config, site::shared()).flag("--write", write).flag("--log-format", "json");
        let server = launch.start();
        // The empty line counts too.
        let lines = server.get("/1k.html").head.lines().count() + 1;
        let head = if write == "per-header" { lines } else { by_head };
        let calls = traced_requests(&server, "/1k.html", REQUESTS).detach();
        if config.engine != Engine::Uring {
            // Lines of the log, and the values of eventfds, are no sends.
            let is_send = |line: &&String| {
                let mut calls = [" sendto(", " sendmsg(", " write(", " writev("].iter();
                calls.any(|call| line.contains(call)) && !line.contains("{\\\"") && !line.contains(", 8)")
            };
            let sends = calls.lines.iter().filter(is_send).count();
            assert_eq!(sends, REQUESTS * (head + 1), "{write}: {:#?}", calls.lines);
            assert!(write == "joined" || calls.with(&["MSG_MORE"]).is_empty(), "{:#?}", calls.lines);
        }
        becomes_true(SOON, "every answer is in the log", || server.log().lines().count() == REQUESTS + 2);
        let told = sends_by_the_log(&server);
        assert!(told.iter().all(|&sends| sends == head as u64 + 1), "{write}: {told:?}");
        server.stop().unwrap_or_else(|why| panic!("{why}"));
    }
}

/// Response times on a connection whose peer delays acknowledgements, shortest first. After a pause of 200 ms
/// (`RTO_MIN`) the kernel stops the delays, so a request after a long pause does not count.
fn answer_times(config: &Config, nodelay: &str, write: &str) -> Vec<Duration> {
    let launch = Launch::new(config, site::shared());
    let server = launch.flag("--tcp-nodelay", nodelay).flag("--write", write).start();
    let mut wire = server.connect();
    let mut before = Instant::now();
    let in_time = (0..1000).filter_map(|_| {
        let begin = Instant::now();
        wire.get("/1k.html");
        let is_late = before.elapsed() > Duration::from_millis(150);
        assert_eq!(wire.response().status, 200);
        before = begin;
        (!is_late).then(|| begin.elapsed())
    });
    let mut times: Vec<_> = in_time.skip(20).take(20).collect();
    times.sort_unstable();
    times
}

/// Nagle's algorithm holds the body until the head is acknowledged (RFC 896), and the peer delays the acknowledgement
/// by 40 ms (RFC 1122 §4.2.3.2).
fn nagle_delays_a_split_response_until_an_acknowledgement(config: &Config) {
    const STALL: Duration = Duration::from_millis(30);
    let times = answer_times(config, "off", "split");
    assert!(times[0] >= STALL, "nothing waits: {times:?}");
    for (nodelay, write) in [("on", "split"), ("off", "joined"), ("on", "per-header")] {
        // A busy machine may delay all responses of one connection.
        becomes_true(SOON, &format!("without a delay: tcp-nodelay {nodelay}, write {write}"), || {
            answer_times(config, nodelay, write).first().is_some_and(|shortest| *shortest < STALL)
        });
    }
}

/// Other events take turns with accepts. A readiness model waits between accepts. `busy` tries every socket in every
/// iteration, here an idle connection. The accepts of a ring are invisible, but each accepted socket has a getpeername,
/// and the next call submits the next accept.
fn connections_are_accepted_one_at_a_time(config: &Config) {
    const CONNECTIONS: usize = 6;
    if !config.plan().is_ok_and(|plan| plan.accepts_in_batches()) {
        return;
    }
    let server = Launch::new(config, site::shared()).flag("--accept", "one").start();
    let mut resting = server.connect();
    resting.get("/1k.html");
    assert_eq!(resting.response().status, 200);
    let [worker] = server.workers()[..] else { panic!("one worker serves") };
    let tracer = Tracer::attach(&[worker]);
    worker.signal(Signal::STOP);
    becomes_true(SOON, "the worker stops", || {
        worker.is_stopped() || worker.status("State").is_some_and(|state| state.starts_with('t'))
    });
    let mut wires: Vec<Wire> = (0..CONNECTIONS).map(|_| server.connect()).collect();
    wires.iter_mut().for_each(|wire| wire.get("/1k.html"));
    worker.signal(Signal::CONT);
    wires.iter_mut().for_each(|wire| assert_eq!(wire.response().status, 200));
    let calls = tracer.detach();
    let (accept, turns) = match config.engine {
        Engine::Uring => ("getpeername", vec!["io_uring_enter("]),
        // `busy` tries the earlier connection first.
        Engine::Busy => ("accept4", vec![call_with_descriptor(calls.with(&[" recvfrom("])[0])]),
        _ => ("accept4", WAITS.to_vec()),
    };
    let mut since_turn = 0;
    for line in &calls.lines {
        if turns.iter().any(|turn| line.contains(&format!(" {turn}"))) {
            since_turn = 0;
        }
        if line.contains(&format!(" {accept}(")) {
            let brought = has_succeeded(line);
            assert!(brought || config.engine == Engine::Busy, "nobody asked for it: {:#?}", calls.lines);
            since_turn += usize::from(brought);
            assert!(since_turn <= 1, "accepts without a turn between them: {:#?}", calls.lines);
        }
    }
    assert_eq!(calls.successes(accept).len(), CONNECTIONS, "{:#?}", calls.lines);
}

const WAITS: &[&str] =
    &["select(", "pselect6(", "poll(", "ppoll(", "epoll_wait(", "epoll_pwait(", "epoll_pwait2("];

/// The beginning of a call without its task, up to its first argument: `recvfrom(7,`.
fn call_with_descriptor(line: &str) -> &str {
    let call = line.trim_start_matches(|letter: char| letter.is_ascii_digit()).trim_start();
    call.split_inclusive(',').next().unwrap_or(call)
}

fn every_kind_of_address_is_served(config: &Config) {
    let folder = TempFolder::new("addresses");
    let launch = Launch::new(config, site::shared()).flag("--listen", ANY_PORT).flag("--listen", "[::1]:0");
    let server = launch.flag("--listen", format!("unix:{}", folder.at("socket").display())).start();
    let asked = request("GET", "/1k.html", &[("Connection", "close")]);
    let expected = server.get("/1k.html").body;
    for address in &server.listening()[..2] {
        let mut wire = Wire::connect(*address);
        wire.send(&asked);
        assert_eq!(wire.response().body, expected, "{address}");
    }
    let mut stream = UnixStream::connect(folder.at("socket")).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("an option");
    stream.write_all(&asked).expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers and closes");
    assert!(answer.ends_with(&expected), "{}", String::from_utf8_lossy(&answer));
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

const SERVERS: u32 = 2;

fn fastopen_is_rejected_if_the_kernel_would_ignore_it() {
    let said = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_fastopen").expect("Linux has it");
    if said.trim().parse::<u32>().is_ok_and(|bits| bits & SERVERS != 0) {
        return;
    }
    let output = tenfold(&["serve", ".", "--fastopen", "16", "--control", "off"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("net.ipv4.tcp_fastopen"), "{said}");
}

/// In a network namespace, whose setting can be changed freely.
fn fastopen_is_set_if_the_kernel_permits_it() {
    let folder = TempFolder::new("fastopen");
    let config = Config::of(Engine::Epoll);
    let into = folder.at("calls").display().to_string();
    let begin = "ip link set lo up && echo 3 > /proc/sys/net/ipv4/tcp_fastopen && exec \"$@\"";
    let strace = tenfold_tests::tools::program("strace").display().to_string();
    let mut words = vec!["--net", "sh", "-c", begin, "sh", &strace];
    words.extend(Tracer::from_start("trace=%network", &into));
    let launch = Launch::new(&config, site::shared()).through("unshare", &words).flag("--fastopen", "16");
    let server = launch.start();
    let process = server.process;
    server.stop().unwrap_or_else(|why| panic!("{why}"));
    expect_call(&Calls::from_start(process, &folder.at("calls")), &["setsockopt(", "TCP_FASTOPEN, [16]"]);
}

/// An illegal combination, and a word of its error.
const NONSENSE: &[(&[&str], &str)] = &[
    (&["--null", "--write", "split"], "write"),
    (&["--listen", "unix:x", "--tcp-cork", "on"], "127.0.0.1:8080"),
    (&["--listen", "unix:x", "--tcp-nodelay", "off"], "127.0.0.1:8080"),
    (&["--engine", "pool", "--accept", "one"], "epoll"),
    (&["--engine", "epoll", "--workers", "2", "--topology", "handoff", "--accept", "all"], "threads"),
    (&["--engine", "epoll", "--trigger", "et+et", "--accept", "one"], "lt+et"),
    (&["--access-log", "off", "--log-format", "json"], "access-log"),
    (&["--access-log", "off", "--log-mode", "sync"], "access-log"),
    (&["--access-log", "off", "--log-rotate", "daily"], "access-log"),
    (&["--linger", "0"], "1 to 600"),
];

fn nonsensical_arguments_are_rejected() {
    for (words, legal) in NONSENSE {
        let folder = if words.contains(&"--null") { &[][..] } else { &["."][..] };
        let output = tenfold(&[&["serve"], folder, words, &["--control", "off"]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(legal), "{words:?}: {said}");
    }
}
