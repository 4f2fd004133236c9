//! The exact lines of the access log.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use tenfold_engine::Dispatch;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::server::Server;
use tenfold_tests::site;
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::wire::request;

pub(crate) const THEME: Theme = Theme {
    name: "log",
    cases: cases![
        Own on WORKERS + ANOTHER: h55_every_response_is_a_log_line, no_line_is_lost_when_the_file_is_moved,
            a_drain_writes_what_is_left;
        Own on DRIVERS: no_log_if_it_is_off;
    ],
};

/// The lines without their times, which must be present and valid.
fn lines(server: &Server, count: usize) -> Vec<String> {
    becomes_true(SOON, &format!("{count} lines"), || server.log().lines().count() >= count);
    let undated = |line: &str| {
        let (before, rest) = line.split_once('[').expect("a line has a time");
        let (time, behind) = rest.split_once(']').expect("a line has a time");
        assert!(time.len() == 26 && time.ends_with(" +0000"), "not a time: {time}");
        format!("{before}[]{behind}")
    };
    server.log().lines().map(undated).collect()
}

fn h55_every_response_is_a_log_line(config: &Config) {
    let server = Launch::new(config, site::shared()).start();
    let mut wire = server.connect();
    let fields = [("User-Agent", "suite/1.0 (a \"test\")"), ("Referer", "http://localhost/")];
    wire.send(request("GET", "/1k.html?a=b", &fields));
    let tag = wire.response().need("ETag").to_owned();
    wire.send(request("HEAD", "/1k.html", &[]));
    wire.head();
    wire.send(request("GET", "/1k.html", &[("If-None-Match", &tag)]));
    wire.response();
    wire.send(request("GET", "/3m.bin", &[("Range", "bytes=0-99999")]));
    wire.response();
    wire.get("/none%0a.html");
    let missing = wire.response();
    wire.send(request("GET", "/none", &[]));
    let none = wire.response();
    wire.send("GET /\x1b[31m HTTP/1.1\r\nHost: a\r\n\r\n");
    let malformed = wire.response();
    let mut expected = [
        "127.0.0.1 - - [] \"GET /1k.html?a=b HTTP/1.1\" 200 1024 \"http://localhost/\" \
         \"suite/1.0 (a \\x22test\\x22)\""
            .to_owned(),
        "127.0.0.1 - - [] \"HEAD /1k.html HTTP/1.1\" 200 - \"-\" \"-\"".to_owned(),
        "127.0.0.1 - - [] \"GET /1k.html HTTP/1.1\" 304 - \"-\" \"-\"".to_owned(),
        "127.0.0.1 - - [] \"GET /3m.bin HTTP/1.1\" 206 100000 \"-\" \"-\"".to_owned(),
        format!("127.0.0.1 - - [] \"GET /none%0a.html HTTP/1.1\" 400 {} \"-\" \"-\"", missing.body.len()),
        format!("127.0.0.1 - - [] \"GET /none HTTP/1.1\" 404 {} \"-\" \"-\"", none.body.len()),
        format!("127.0.0.1 - - [] \"GET /\\x1B[31m HTTP/1.1\" 400 {} \"-\" \"-\"", malformed.body.len()),
    ];
    drop(wire);
    let mut found = lines(&server, expected.len());
    if config.dispatch != Dispatch::Inline {
        // Each thread of a pool has its own buffer.
        found.sort_unstable();
        expected.sort_unstable();
    }
    assert_eq!(found, expected);
}

/// The file is moved and reopened during requests: every line is in one of the files.
fn no_line_is_lost_when_the_file_is_moved(config: &Config) {
    let server = Launch::new(config, site::shared()).start();
    let mut wire = server.connect();
    let mut ask = |count: usize| {
        for _ in 0..count {
            wire.get("/1k.html");
            assert_eq!(wire.response().status, 200);
        }
    };
    let old = server.at("access.log.1");
    let count_in = |path: &Path| fs::read_to_string(path).unwrap_or_default().lines().count();
    ask(500);
    fs::rename(server.log_path(), &old).expect("the log is there");
    ask(200);
    server.process.signal(Signal::USR1);
    becomes_true(SOON, "the log is opened again", || server.log_path().exists());
    let mut asked = 700;
    becomes_true(SOON, "lines go to the new file", || {
        ask(50);
        asked += 50;
        count_in(&server.log_path()) > 0
    });
    becomes_true(SOON, "every line is there", || count_in(&old) + count_in(&server.log_path()) == asked);
    assert!(count_in(&old) >= 500, "lines of the old file went elsewhere");
}

fn a_drain_writes_what_is_left(config: &Config) {
    let server = Launch::new(config, site::shared()).start();
    for _ in 0..20 {
        assert_eq!(server.get("/1k.html").status, 200);
    }
    server.process.signal(Signal::TERM);
    let status = server.ends_within(SOON);
    assert!(status.success(), "{status}; it said:\n{}", server.errors());
    assert_eq!(server.log().lines().count(), 20);
}

fn no_log_if_it_is_off(config: &Config) {
    let server = Launch::new(config, site::shared()).flag("--access-log", "off").start();
    assert_eq!(server.get("/1k.html").status, 200);
    let process = server.workers().first().copied().unwrap_or(server.process);
    let open = process.descriptors();
    assert!(!open.iter().any(|file| file.ends_with(".log")), "{open:?}");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}
