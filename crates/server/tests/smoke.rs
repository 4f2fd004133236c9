//! The whole server with every engine of this build, without tools and without privileges. `tests/` has the rest.
//!
//! The last line of a failed test's output names the engine.

use std::net::SocketAddr;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;
use tenfold_engine::{Engine, MODELS, probe};
use tenfold_testkit::experiment::EXPERIMENT;
use tenfold_testkit::folder::TempFolder;
use tenfold_testkit::program::{Program, Running};
use tenfold_testkit::random::made_bytes;
use tenfold_testkit::response::WireResponse;
use tenfold_testkit::seal;
use tenfold_testkit::time::{SOON, becomes_true};
use tenfold_testkit::visitor::{Endpoint, Visitor};
use tenfold_testkit::wire::{Wire, request};

const HOME: &str = "<h1>home</h1>\n";
const PAGE: &str = "<h1>a page</h1>\n";
/// The SHA-256 of [`PAGE`].
const PAGE_HASH: &str = "4451ce76c9fe62ece6541107df1a1625ed206a93529f30e44b8b3ce6291f93e6";

/// The large file, and its SHA-256.
fn large() -> (&'static [u8], &'static str) {
    (made_bytes(8 << 20, 8), "259bdb224b65366d3706233effa66c571e0df6e3a3ce1b3312cb8906150da894")
}

/// A running server and its site.
struct Server {
    running: Running,
    address: SocketAddr,
    tls: bool,
    folder: TempFolder,
}

impl Server {
    /// Starts a server in a folder with a site. Paths in `words` are relative to the folder.
    fn start(engine: Engine, words: &[&str]) -> Server {
        let folder = TempFolder::new("smoke");
        folder.write("site/index.html", HOME);
        folder.write("site/page.html", PAGE);
        folder.write("site/members/index.html", PAGE);
        folder.write("other/index.html", PAGE);
        folder.write("tenfold.toml", "root = \"site\"\n");
        // Workers of a server that root starts are another user, and write the database.
        folder.allow(".", 0o777);
        let program = tenfold().args(["serve", "--engine", &engine.to_string(), "--listen", "127.0.0.1:0"]);
        let running = program.args(["--control", "control"]).args(words).folder(folder.path()).start();
        let address = running.address();
        Server { running, address, tls: words.contains(&"--tls-certificate"), folder }
    }

    fn connect(&self) -> Wire {
        Wire::connect_over(self.address, self.tls)
    }

    /// The response to a request on a new connection.
    fn ask(&self, method: &str, target: &str, fields: &[(&str, &str)]) -> WireResponse {
        let mut wire = self.connect();
        wire.send(request(method, target, fields));
        if method == "HEAD" { wire.head() } else { wire.response() }
    }

    /// Stops it, and asserts that it ends in order.
    fn stop(self) {
        self.running.signal(Signal::TERM);
        let (status, errors) = (self.running.ends_within(SOON), self.running.errors());
        assert!(status.success(), "{status}: {errors}");
        for trouble in ["panicked", "the sandbox refused", "ended by its sandbox"] {
            assert!(!errors.contains(trouble), "{errors}");
        }
    }
}

impl Endpoint for Server {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn is_encrypted(&self) -> bool {
        self.tls
    }
}

/// The program that cargo built for this test.
fn tenfold() -> Program {
    Program::new(env!("CARGO_BIN_EXE_tenfold"))
}

/// Calls `holds` with a server of each engine that runs here.
fn on_every_engine(words: &[&str], holds: impl Fn(&Server)) {
    for engine in MODELS.iter().map(|model| model.engine).filter(|engine| probe(*engine).is_ok()) {
        println!("engine {engine}");
        let server = Server::start(engine, words);
        holds(&server);
        server.stop();
    }
}

#[test]
fn pages_are_served() {
    on_every_engine(&["site"], |server| {
        let home = server.ask("GET", "/", &[]);
        assert_eq!((home.status, home.body.as_slice()), (200, HOME.as_bytes()));
        assert_eq!(home.need("content-type"), "text/html; charset=utf-8");
        let head = server.ask("HEAD", "/page.html", &[]);
        assert_eq!((head.status, head.promised()), (200, PAGE.len()));
        let tag = home.need("etag").to_owned();
        assert_eq!(server.ask("GET", "/", &[("If-None-Match", &tag)]).status, 304);
        assert_eq!(server.ask("GET", "/nothing.html", &[]).status, 404);
    });
}

#[test]
fn ranges_are_served() {
    on_every_engine(&["site"], |server| {
        let part = server.ask("GET", "/page.html", &[("Range", "bytes=4-9")]);
        assert_eq!((part.status, part.body.as_slice()), (206, &PAGE.as_bytes()[4..10]));
        assert_eq!(part.need("content-range"), format!("bytes 4-9/{}", PAGE.len()));
        let outside = server.ask("GET", "/page.html", &[("Range", "bytes=99-")]);
        assert_eq!(outside.status, 416);
    });
}

#[test]
fn a_large_file_arrives_unchanged() {
    on_every_engine(&["site"], |server| {
        server.folder.write("site/large.bin", large().0);
        let mut wire = server.connect();
        wire.get("/large.bin");
        assert_eq!(wire.head().promised(), large().0.len());
        wire.expect_body(large().0);
    });
}

#[test]
fn a_connection_serves_several_requests() {
    on_every_engine(&["site"], |server| {
        let mut wire = server.connect();
        for (target, body) in [("/", HOME), ("/page.html", PAGE), ("/", HOME)] {
            wire.get(target);
            assert_eq!(wire.response().body, body.as_bytes());
        }
        wire.send(request("GET", "/", &[("Connection", "close")]));
        assert!(wire.response().closes());
        wire.expect_end();
    });
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    on_every_engine(&["site"], |server| {
        let mut wire = server.connect();
        wire.send(
            ["/", "/page.html", "/nothing.html", "/"].map(|target| request("GET", target, &[])).concat(),
        );
        assert_eq!(wire.response().body, HOME.as_bytes());
        assert_eq!(wire.response().body, PAGE.as_bytes());
        assert_eq!(wire.response().status, 404);
        assert_eq!(wire.response().body, HOME.as_bytes());
    });
}

#[test]
fn malformed_requests_are_refused() {
    on_every_engine(&["site"], |server| {
        for text in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        ] {
            let mut wire = server.connect();
            wire.send(text);
            let refusal = wire.response();
            assert!(refusal.status == 400 && refusal.closes(), "{text:?}: {}", refusal.head);
            wire.expect_end();
        }
        assert_eq!(server.ask("DELETE", "/page.html", &[]).status, 405);
    });
}

#[test]
fn a_member_registers_and_logs_in() {
    const PASSWORD: &str = "violet tractor 81";
    let hash = ["--password-memory", "64k", "--password-passes", "1"];
    let members = ["site", "--accounts", "sqlite:members.db", "--protect", "/members/"];
    on_every_engine(&[&members[..], &hash].concat(), |server| {
        let mut visitor = Visitor::new(server);
        assert_eq!(visitor.get("/members/").status, 303);
        assert_eq!(visitor.register("Ann", PASSWORD).status, 303);
        assert_eq!(visitor.log_in("Ann", "another password").status, 422);
        assert_eq!(visitor.log_in("Ann", PASSWORD).need("location"), "/members/");
        let page = visitor.get("/members/");
        assert_eq!((page.status, page.body.as_slice()), (200, PAGE.as_bytes()));
        assert_eq!(Visitor::new(server).get("/members/").status, 303);
    });
}

#[test]
fn connections_use_tls() {
    let [certificate, key] =
        ["cert.pem", "key.pem"].map(|name| seal::certificate_folder().join(name).display().to_string());
    on_every_engine(&["site", "--tls-certificate", &certificate, "--tls-key", &key], |server| {
        let mut wire = server.connect();
        for (target, body) in [("/", HOME), ("/page.html", PAGE)] {
            wire.get(target);
            assert_eq!(wire.response().body, body.as_bytes());
        }
        wire.send(request("GET", "/", &[("Connection", "close")]));
        assert_eq!(wire.response().status, 200);
        wire.expect_end();
    });
    seal::remove_certificate();
}

#[test]
fn a_reload_changes_the_site() {
    on_every_engine(&["--config", "tenfold.toml"], |server| {
        let home = || server.ask("GET", "/", &[]).body;
        assert_eq!(home(), HOME.as_bytes());
        server.folder.write("tenfold.toml", "root = \"other\"\n");
        server.running.signal(Signal::HUP);
        becomes_true(SOON, "the new site is served", || home() == PAGE.as_bytes());
    });
}

/// The exit code is not zero if other programs disturb the measurement.
#[test]
fn bench_checks_each_response() {
    on_every_engine(&["site"], |server| {
        server.folder.write("site/large.bin", large().0);
        for (target, count, hash) in [("page.html", 50, PAGE_HASH), ("large.bin", 2, large().1)] {
            let url = format!("http://{}/{target}", server.address);
            let count = count.to_string();
            let words =
                ["bench", "--json", "--warm-up", "off", "-c", "1", "-n", &count, "--expect-hash", hash, &url];
            let output = tenfold().args(words).run();
            let text = String::from_utf8_lossy(&output.stdout);
            let report: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            let run = &report["runs"][0];
            assert_eq!(
                (run["answers"].to_string(), &run["errors"]),
                (count, &serde_json::json!({})),
                "{run:#}"
            );
        }
    });
}

#[test]
fn the_laboratory_runs_two_trials() {
    let folder = TempFolder::new("smoke-lab");
    folder.write("own.toml", EXPERIMENT);
    let words =
        ["lab", "run", "--profile", "smoke", "--only", "own.toml", "--blocks", "1", "--output", "run"];
    let output = Command::new(env!("CARGO_BIN_EXE_tenfold")).args(words).current_dir(folder.path()).output();
    let output = output.expect("the program runs");
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && text.contains("2 HOLDS"), "{}: {text}", output.status);
    let trials = std::fs::read_to_string(folder.at("run/trials.jsonl")).expect("it was written");
    assert_eq!(trials.lines().count(), 2, "{trials}");
    assert!(folder.at("run/report.html").is_file());
}
