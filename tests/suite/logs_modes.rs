//! Modes of the access log: formats, the time of writes, an unwritable log, and rotation.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use tenfold_engine::{Driver, Engine};
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::{Theme, each_at_once};
use tenfold_tests::launch::{ANY_PORT, Launch, tenfold};
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::strace::Tracer;
use tenfold_tests::time::{SOON, becomes_true, eventually};
use tenfold_tests::wire::request;

pub(crate) const THEME: Theme = Theme {
    name: "logs-modes",
    cases: cases![
        Own on DRIVERS: common_is_combined_without_the_client, json_contains_the_duration_of_a_response,
            a_line_has_its_bound_whatever_was_sent;
        Own on DRIVERS + ANOTHER: h31_a_full_log_is_counted_and_serving_continues,
            a_log_recovers_when_it_is_writable_again;
        Own on WORKERS + ANOTHER: every_mode_writes_every_line_once, rotation_by_lines_loses_nothing;
        Own on EPOLL, Measure: sync_is_a_call_for_each_line, buffered_is_a_call_for_many;
        Own on EPOLL: rotation_by_size_and_by_day, a_reload_does_not_rotate_unrenamable_files;
        Once: json_times_a_slow_reader_with_every_sender, an_async_log_does_not_combine_with_fork,
            unrenamable_files_are_not_rotated, no_worker_serves_without_the_thread_of_its_log;
    ],
};

const MODES: [&str; 3] = ["buffered", "sync", "async"];

/// The modes that an engine supports.
fn modes(config: &Config) -> impl Iterator<Item = &'static str> {
    let forks = config.engine == Engine::Fork;
    MODES.into_iter().filter(move |mode| !(forks && *mode == "async"))
}

fn number(server: &Server, name: &str) -> u64 {
    let status = server.status();
    status[name].as_u64().unwrap_or_else(|| panic!("no {name} in {status}"))
}

#[track_caller]
fn ask(server: &Server, count: usize) {
    let mut wire = server.connect();
    for _ in 0..count {
        wire.get("/1k.html");
        assert_eq!(wire.response().status, 200);
    }
}

#[track_caller]
fn stop(server: Server) {
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn common_is_combined_without_the_client(config: &Config) {
    let server = Launch::new(config, site::shared()).flag("--log-format", "common").start();
    assert_eq!(server.ask("GET", "/1k.html", &[("User-Agent", "unseen")]).status, 200);
    let line = eventually(SOON, "a line", || server.log().lines().next().map(str::to_owned));
    assert!(
        line.starts_with("127.0.0.1 - - [") && line.ends_with("] \"GET /1k.html HTTP/1.1\" 200 1024"),
        "{line}"
    );
    stop(server);
}

fn json_contains_the_duration_of_a_response(config: &Config) {
    let server = Launch::new(config, site::shared()).flag("--log-format", "json").start();
    let mut wire = server.connect();
    wire.send(request("GET", "/1k.html", &[("User-Agent", "a \"b\" \u{e9}")]));
    assert_eq!(wire.response().status, 200);
    wire.send(request("GET", "/3m.bin", &[]));
    assert_eq!(wire.response().body.len(), site::content("3m.bin").len());
    wire.send("NONSENSE\r\n\r\n");
    assert_eq!(wire.response().status, 400);
    drop(wire);
    let text = eventually(SOON, "three lines", || Some(server.log()).filter(|log| log.lines().count() == 3));
    let mut lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    // Lines of several threads have no order.
    lines.sort_by_key(|line| line["status"].as_u64().zip(line["bytes"].as_u64()));
    let [small, large, refused] = lines.as_slice() else { unreachable!("there are three") };
    assert_eq!(
        (&small["request"], &small["status"], &small["bytes"]),
        (&Value::from("GET /1k.html HTTP/1.1"), &Value::from(200), &Value::from(1024))
    );
    assert_eq!(small["agent"], "a \"b\" \u{c3}\u{a9}", "each byte is a letter");
    assert!(small["time"].as_str().is_some_and(|time| time.len() == 20 && time.ends_with('Z')), "{small}");
    assert_eq!(small["sends"], 1, "{small}");
    assert!(large["sends"].as_u64().is_some_and(|sends| sends > 1), "{large}");
    for line in [small, large] {
        for key in ["process_us", "send_us"] {
            assert!(line[key].as_u64().is_some_and(|time| time < 10_000_000), "{key}: {line}");
        }
    }
    for key in ["process_us", "send_us", "sends", "agent", "referer"] {
        assert!(refused.get(key).is_none(), "{key} of what was no request: {refused}");
    }
    stop(server);
}

/// Each byte beyond ASCII takes several bytes of a line, and a request may have 16 KiB of them.
fn a_line_has_its_bound_whatever_was_sent(config: &Config) {
    const FIELD: usize = 8 * 1024;
    let agent = [0xff; 12_000];
    for format in ["json", "combined"] {
        let server = Launch::new(config, site::shared()).flag("--log-format", format).start();
        let mut wire = server.connect();
        let mut sent = b"GET /1k.html HTTP/1.1\r\nHost: a\r\nReferer: whole\r\nUser-Agent: ".to_vec();
        sent.extend_from_slice(&agent);
        sent.extend_from_slice(b"\r\n\r\n");
        wire.send(sent);
        assert_eq!(wire.response().status, 200);
        drop(wire);
        let line = eventually(SOON, "a line", || server.log().lines().next().map(str::to_owned));
        assert!((FIELD..FIELD + 500).contains(&line.len()), "{format}: {} bytes", line.len());
        if format == "combined" {
            assert!(line.contains("\"whole\"") && line.ends_with("\\xFF...\""), "{line}");
        } else {
            let line: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert_eq!(line["agent_truncated"], true, "{line}");
            assert!(line["agent"].as_str().is_some_and(|agent| agent.ends_with('\u{ff}')), "{line}");
            assert_eq!((&line["referer"], line.get("referer_truncated")), (&Value::from("whole"), None));
        }
        stop(server);
    }
}

/// On a ring the completion defines the time; elsewhere the sender's calls do not matter.
fn json_times_a_slow_reader_with_every_sender() {
    const BYTES: usize = 16 << 20;
    const PAUSE: Duration = Duration::from_millis(200);
    let folder = TempFolder::new("slow-reader");
    // More than the kernel buffers for a client that does not read.
    folder.write("large.bin", site::bytes(BYTES, 5));
    let configs = Config::all().iter().filter(|&config| {
        let driver = config.engine.model().driver;
        let plain = Config { sender: config.sender, ..Config::of(config.engine) } == *config;
        plain && (driver == Driver::Completion || *config == Config::of(Engine::Epoll))
    });
    each_at_once(configs, |config| {
        let server = Launch::new(config, folder.path()).flag("--log-format", "json").start();
        let mut wire = server.connect();
        wire.get("/large.bin");
        // From now on the server is sending.
        assert_eq!(wire.head().promised(), BYTES);
        // The time of the response contains this time.
        thread::sleep(PAUSE);
        wire.take(BYTES);
        let line = eventually(SOON, "a line", || server.log().lines().next().map(str::to_owned));
        let line: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(line["bytes"], BYTES, "{config}: {line}");
        let time = line["send_us"].as_u64().map(Duration::from_micros);
        assert!(time.is_some_and(|time| time > PAUSE * 9 / 10 && time < SOON), "{config}: {line}");
        stop(server);
    });
}

/// The file changes during requests on several connections. Each request is in exactly one of the files.
fn every_mode_writes_every_line_once(config: &Config) {
    for mode in modes(config) {
        let server = Launch::new(config, site::shared()).flag("--log-mode", mode).start();
        let mut asked = 0;
        let mut ask = || {
            let response = server.get(&format!("/1k.html?{asked}"));
            assert_eq!(response.status, 200);
            asked += 1;
        };
        (0..60).for_each(|_| ask());
        let old = server.at("access.log.old");
        fs::rename(server.log_path(), &old).expect("the log is there");
        (0..20).for_each(|_| ask());
        server.process.signal(Signal::USR1);
        becomes_true(SOON, "lines go to the new file", || {
            ask();
            !server.log().is_empty()
        });
        (0..20).for_each(|_| ask());
        server.process.signal(Signal::TERM);
        assert!(server.ends_within(SOON).success(), "{mode}: {}", server.errors());
        let all = fs::read_to_string(&old).expect("it was renamed") + &server.log();
        let numbers: BTreeSet<usize> = all.lines().map(number_of).collect();
        assert_eq!(all.lines().count(), asked, "{mode}");
        assert_eq!(numbers, (0..asked).collect(), "{mode}: each line once");
    }
}

/// The number in the target of a line.
#[track_caller]
fn number_of(line: &str) -> usize {
    let number = line.split_once('?').and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    number.unwrap_or_else(|| panic!("a line is torn: {line}"))
}

/// The number of writes while `count` requests are made on one connection.
fn writes_of(config: &Config, mode: &str, count: usize) -> usize {
    let server = Launch::new(config, site::shared()).flag("--log-mode", mode).start();
    ask(&server, 1);
    let tracer = Tracer::attach(&server.workers());
    ask(&server, count);
    becomes_true(SOON, "every line is written", || server.log().lines().count() == count + 1);
    let calls = tracer.detach();
    stop(server);
    calls.lines.iter().filter(|line| line.contains(" write(") && line.contains("127.0.0.1 - - [")).count()
}

fn sync_is_a_call_for_each_line(config: &Config) {
    assert_eq!(writes_of(config, "sync", 50), 50);
}

fn buffered_is_a_call_for_many(config: &Config) {
    // One write a second, and the machine may be slow.
    assert!(writes_of(config, "buffered", 50) < 10);
}

/// A device that is always full.
fn h31_a_full_log_is_counted_and_serving_continues(config: &Config) {
    for mode in modes(config) {
        let launch = Launch::new(config, site::shared()).flag("--log-mode", mode);
        let server = launch.flag("--access-log", "/dev/full").start();
        ask(&server, 30);
        becomes_true(SOON, "what is lost is counted", || number(&server, "log_lines_lost") == 30);
        assert_eq!(number(&server, "log_lines"), 0, "{mode}");
        ask(&server, 1);
        server.expect_report("cannot write the access log");
        let reports = server.errors().matches("cannot write the access log").count();
        assert_eq!(reports, 1, "{mode}: {}", server.errors());
        stop(server);
    }
}

/// A limit on the size of files simulates a full disk; a new file simulates free space.
fn a_log_recovers_when_it_is_writable_again(config: &Config) {
    const LIMIT: u64 = 4096;
    for mode in modes(config) {
        let launch = Launch::new(config, site::shared()).flag("--log-mode", mode);
        let server = launch.through("prlimit", &[&format!("--fsize={LIMIT}")]).start();
        let mut asked = 0;
        becomes_true(SOON, "the file is full", || {
            ask(&server, 20);
            asked += 20;
            number(&server, "log_lines_lost") > 0
        });
        let full = server.at("access.log.full");
        fs::rename(server.log_path(), &full).expect("the log is there");
        server.process.signal(Signal::USR1);
        becomes_true(SOON, "the new file is written", || {
            ask(&server, 1);
            asked += 1;
            !server.log().is_empty()
        });
        let text = || fs::read_to_string(&full).expect("it was renamed") + &server.log();
        becomes_true(SOON, "every line is counted as written or as lost", || {
            let (written, lost) = (number(&server, "log_lines"), number(&server, "log_lines_lost"));
            written + lost == asked && whole_lines(&text()) as u64 == written
        });
        stop(server);
    }
}

/// The number of complete lines.
fn whole_lines(text: &str) -> usize {
    text.lines().filter(|line| line.starts_with("127.0.0.1 - - [") && line.ends_with("\"-\" \"-\"")).count()
}

/// All files of a log, whose names begin with its name.
fn files(server: &Server) -> Vec<PathBuf> {
    let entries = fs::read_dir(server.at("")).expect("its own folder");
    let paths = entries.map(|entry| entry.expect("its own folder").path());
    let name = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("access.log"))
    };
    paths.filter(name).collect()
}

fn rotation_by_lines_loses_nothing(config: &Config) {
    let launch = Launch::new(config, site::shared()).flag("--log-mode", "sync");
    let server = launch.flag("--log-rotate", "40 lines").start();
    let begin = Instant::now();
    let mut asked = 0;
    while files(&server).len() < 3 {
        assert!(begin.elapsed() < 3 * SOON, "no new file: {}", server.errors());
        assert_eq!(server.get(&format!("/1k.html?{asked}")).status, 200);
        asked += 1;
        // The supervisor renames a file a few times a second at most.
        thread::sleep(Duration::from_millis(5));
    }
    server.process.signal(Signal::TERM);
    assert!(server.ends_within(SOON).success());
    let text: String =
        files(&server).iter().map(|path| fs::read_to_string(path).expect("its own file")).collect();
    assert!(!files(&server).iter().any(|path| path.extension().is_some_and(|suffix| suffix == "tmp")));
    assert_eq!(text.lines().count(), asked, "nothing is lost, and nothing is there twice");
    assert_eq!(text.lines().map(number_of).collect::<BTreeSet<_>>(), (0..asked).collect());
}

fn rotation_by_size_and_by_day(config: &Config) {
    let folder = TempFolder::new("rotate");
    let path = folder.write("access.log", "of yesterday\n");
    site::set_modified(&path, site::now() - 24 * 60 * 60);
    let launch = Launch::new(config, site::shared()).flag("--access-log", path.display());
    let server = launch.flag("--log-rotate", "daily").start();
    let old = eventually(SOON, "the file of yesterday is moved", || {
        let entries = fs::read_dir(folder.path()).expect("our own folder");
        let mut paths = entries.map(|entry| entry.expect("our own folder").path());
        paths.find(|entry| *entry != path)
    });
    assert_eq!(fs::read_to_string(&old).expect("it is there"), "of yesterday\n");
    let day = old.extension().expect("a day").to_string_lossy().into_owned();
    assert!(day.len() == 10 && day.as_bytes()[4] == b'-' && day.as_bytes()[7] == b'-', "not a day: {day}");
    becomes_true(SOON, "lines go to the new file", || {
        ask(&server, 1);
        fs::metadata(&path).is_ok_and(|facts| facts.len() > 0)
    });
    stop(server);

    let server = Launch::new(config, site::shared()).flag("--log-rotate", "1 KiB").start();
    becomes_true(SOON, "a new file", || {
        ask(&server, 5);
        files(&server).len() > 1
    });
    let large = files(&server).into_iter().find(|path| *path != server.log_path()).expect("it was renamed");
    assert!(fs::metadata(large).expect("it is there").len() >= 1024);
    stop(server);
}

fn an_async_log_does_not_combine_with_fork() {
    let output = tenfold(&["serve", ".", "--engine", "fork", "--log-mode", "async"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("log-mode async does not go with engine fork: a child that ends"), "{said}");
}

/// A device, a link to one, and a link to a file, which a rename would replace.
fn unrenamable_files_are_not_rotated() {
    let folder = TempFolder::new("rotate");
    std::os::unix::fs::symlink(folder.write("access.log", ""), folder.at("link")).expect("our own folder");
    let link = folder.at("link").display().to_string();
    for (log, when) in [("/dev/null", "100 lines"), ("/dev/stderr", "daily"), (link.as_str(), "1 MiB")] {
        let flags = ["--listen", ANY_PORT, "--access-log", log, "--log-rotate", when];
        let output = tenfold(&[&["serve", "."], flags.as_slice()].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        for part in ["log-rotate", log, "name a file with access-log"] {
            assert!(said.contains(part), "{part:?} is not said in: {said}");
        }
        let text = format!("root = \".\"\naccess-log = \"{log}\"\nlog-rotate = \"{when}\"\n");
        let output = tenfold(&["check", &folder.write("tenfold.toml", text).display().to_string()]);
        assert_eq!(output.status.code(), Some(2), "{log} is right for check");
    }
    assert!(folder.at("link").is_symlink(), "the link was renamed");
}

fn a_reload_does_not_rotate_unrenamable_files(config: &Config) {
    let folder = TempFolder::new("rotate");
    let file = folder.write("tenfold.toml", "root = \".\"\n");
    let launch = Launch::bare(config).flag("--config", file.display());
    let server = launch.flag("--access-log", "/dev/null").start();
    folder.write("tenfold.toml", "root = \".\"\nlog-rotate = \"daily\"\n");
    server.process.signal(Signal::HUP);
    server.expect_report(
        "/dev/null is not a regular file; name a file with access-log, or leave log-rotate out; the old",
    );
    stop(server);
}

/// The C library starts threads by clone3, and forks by clone.
fn no_worker_serves_without_the_thread_of_its_log() {
    let folder = TempFolder::new("log-thread");
    folder.allow(".", 0o777);
    let launch = Launch::new(&Config::of(Engine::Epoll), site::shared()).flag("--listen", ANY_PORT);
    let launch = launch.flag("--log-mode", "async").flag("--access-log", folder.at("log").display());
    let inject = ["-f", "-e", "trace=clone3", "-e", "inject=clone3:error=EAGAIN", "-o", "/dev/null"];
    let output = launch.through("strace", &inject).refused();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("worker 1: cannot start the thread of the access log: Resource temp"), "{said}");
}
