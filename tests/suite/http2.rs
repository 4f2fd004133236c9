//! HTTP/2 (RFC 9113): the same answers as HTTP/1.1, its counters, and conformance.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use rustix::process::Signal;
use tenfold_engine::Engine;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::http2::Http2Wire;
use tenfold_tests::launch::{ANY_PORT, Launch};
use tenfold_tests::response::WireResponse;
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, MODIFIED_DATE, TempFolder};
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::tools;
use tenfold_tests::wire::{Wire, request};
use tenfold_wire::frame::{ErrorCode, write};

pub(crate) const THEME: Theme = Theme {
    name: "http2",
    cases: cases![
        Shared on SENDERS + TLS + ANOTHER_TLS: answers_are_those_of_http_1, a_large_file_arrives_beside_small_files;
        Own on DRIVERS: versions_resets_and_goaways_are_counted, the_server_field_can_be_hidden;
        Own on DRIVERS + TLS: h2spec_finds_only_the_listed_differences;
    ],
};

/// A connection of HTTP/2 to a shared server.
fn connect(server: &Server) -> Http2Wire {
    let wire = Wire::connect(server.address);
    Http2Wire::new(if server.config.tls { wire.with_protocol("h2") } else { wire })
}

/// The status, the fields in lower case without those of the version and the date, and the body.
fn comparable(response: &WireResponse) -> (u16, Vec<String>, Vec<u8>) {
    let is_own = |line: &&str| !["date: ", "connection: "].iter().any(|name| line.starts_with(name));
    let lower = |line: &str| {
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        format!("{}: {value}", name.to_ascii_lowercase())
    };
    let lines: Vec<String> = response.head.lines().skip(1).map(lower).collect();
    let mut fields: Vec<String> =
        lines.iter().map(String::as_str).filter(is_own).map(str::to_owned).collect();
    // Constant fields come first in HTTP/2. The order of fields of different names has no meaning (RFC 9110 §5.3).
    fields.sort();
    (response.status, fields, response.body.clone())
}

fn answers_are_those_of_http_1(server: &Server) {
    let targets = [
        "/",
        "/1k.html",
        "/16k.bin",
        "/128k.bin",
        "/empty.txt",
        "/folder",
        "/folder/",
        "/folder/page.html?a=b",
        "/with%20space.txt",
        "/%C3%BCml%C3%A4ut.txt",
        "/missing",
        "/.hidden",
        "/../1k.html",
        "/%00",
        "/1k.html/",
        "/.well-known/hello.txt",
    ];
    let conditions: [&[(&str, &str)]; 9] = [
        &[],
        &[("if-modified-since", MODIFIED_DATE)],
        &[("if-none-match", "*")],
        &[("if-match", "\"another\"")],
        &[("range", "bytes=0-9")],
        &[("range", "bytes=-5, 2-3, 100-")],
        &[("range", "bytes=99999999-")],
        &[("accept-encoding", "gzip, br")],
        &[("cookie", "a=b"), ("cookie", "c=d")],
    ];
    let mut requests = Vec::new();
    for target in targets {
        for method in ["GET", "HEAD", "OPTIONS", "POST", "DELETE"] {
            let fields = if method == "GET" || method == "HEAD" { &conditions[..] } else { &conditions[..1] };
            requests.extend(fields.iter().map(|fields| (method, target, *fields)));
        }
    }
    // `naive` serves one connection at a time.
    let over_http1 = requests.iter().map(|(method, target, fields)| {
        let mut http1 = server.connect();
        http1.send(request(method, target, fields));
        if *method == "HEAD" { http1.head() } else { http1.response() }
    });
    let expected: Vec<WireResponse> = over_http1.collect();
    let mut http2 = connect(server);
    for ((method, target, fields), expected) in requests.into_iter().zip(&expected) {
        let found = http2.ask(method, target, fields, b"");
        assert_eq!(comparable(&found), comparable(expected), "{method} {target} {fields:?}");
    }
}

fn a_large_file_arrives_beside_small_files(server: &Server) {
    let mut http2 = connect(server);
    let large = http2.begin("GET", "/large.bin", &[], b"");
    for _ in 0..50 {
        let small = http2.ask("GET", "/1k.html", &[("priority", "u=0")], b"");
        assert!(small.body == site::content("1k.html"), "a small file differs");
    }
    let response = http2.response(large);
    assert!(
        response.body == site::content("large.bin"),
        "the large file differs: {} bytes",
        response.body.len()
    );
}

/// In prepared and other responses of both versions. A reload shows it again.
fn the_server_field_can_be_hidden(config: &Config) {
    let folder = TempFolder::new("hidden");
    let text = |value| format!("root = \"{}\"\nserver-field = {value}\n", site::shared().display());
    let file = folder.write("tenfold.toml", text(false));
    let server = Launch::bare(config).flag("--config", file.display()).start();
    let shown = || {
        let targets = ["/1k.html", "/1k.html", "/folder", "/missing", "/%00"];
        let http1 = targets.map(|target| server.get(target));
        let http2 = targets.map(|target| connect(&server).ask("GET", target, &[], b""));
        http1.iter().chain(&http2).filter(|response| response.field("server").is_some()).count()
    };
    assert_eq!(shown(), 0);
    fs::write(&file, text(true)).expect("our own file");
    server.process.signal(Signal::HUP);
    becomes_true(SOON, "the field is shown", || shown() == 10);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn versions_resets_and_goaways_are_counted(config: &Config) {
    let server = Launch::new(config, site::shared()).flag("--admin", ANY_PORT).start();
    let mut http2 = connect(&server);
    assert_eq!(http2.ask("GET", "/1k.html", &[], b"").status, 200);
    assert_eq!(http2.ask("GET", "/none", &[], b"").status, 404);
    let malformed = http2.begin("GET", "/1k.html", &[("connection", "close")], b"");
    assert_eq!(http2.reset(malformed), ErrorCode::PROTOCOL_ERROR);
    let mut bytes = Vec::new();
    write::reset_stream(1, ErrorCode::CANCEL, &mut bytes);
    write::window_update(0, 1 << 30, &mut bytes);
    write::window_update(0, 1 << 30, &mut bytes);
    http2.send(bytes);
    assert_eq!(http2.goaway().1, ErrorCode::FLOW_CONTROL_ERROR);
    drop(http2);
    let mut leaving = connect(&server);
    let mut bytes = Vec::new();
    write::goaway(0, ErrorCode::NO_ERROR, b"", &mut bytes);
    leaving.send(bytes);
    assert_eq!(leaving.goaway().1, ErrorCode::NO_ERROR);
    drop(leaving);
    assert_eq!(server.get("/1k.html").status, 200);
    assert!(server.exchange(b"GET /1k.html HTTP/1.0\r\n\r\n").starts_with(b"HTTP/1.1 200 "));
    becomes_true(SOON, "every line is there", || server.log().lines().count() == 4);
    let log = server.log();
    assert!(log.contains("\"GET /1k.html HTTP/2.0\" 200 1024 ") && log.contains(" HTTP/2.0\" 404 "), "{log}");
    let expected = [
        "tenfold_requests_by_version_total{version=\"1.0\"} 1",
        "tenfold_requests_by_version_total{version=\"1.1\"} 1",
        "tenfold_requests_by_version_total{version=\"2\"} 2",
        "tenfold_http2_resets_total{side=\"client\"} 1",
        "tenfold_http2_resets_total{side=\"server\"} 1",
        "tenfold_http2_goaways_total{code=\"enhance-your-calm\"} 0",
        "tenfold_http2_goaways_total{code=\"error\"} 1",
        "tenfold_http2_goaways_total{code=\"no-error\"} 1",
    ];
    let mut metrics = Wire::connect(server.admin());
    let text = String::from_utf8(metrics.fetch("/metrics").body).expect("metrics are text");
    let found: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(expected.iter().all(|line| found.contains(line)), "{text}");
    let status = server.status();
    assert_eq!((&status["requests"], &status["versions"]["http_2"]), (&4.into(), &2.into()), "{status}");
    assert_eq!(
        (&status["http2"]["client_resets"], &status["http2"]["goaways"]["error"]),
        (&1.into(), &1.into())
    );
}

/// The cases of h2spec whose client sends wrong frames after a request with open content. A file is no reason to wait for
/// content: the response may be complete before these frames, followed by RST_STREAM NO_ERROR (RFC 9113 §8.1). These
/// cases pass with a path that reads content.
const WITH_CONTENT: [&str; 5] =
    ["http2/6.9.1/3", "http2/8.1/1", "http2/8.1.2.1/3", "http2/8.1.2.6/1", "http2/8.1.2.6/2"];

/// The case of h2spec that differs without TLS. Bytes other than the preface are a request of HTTP/1, which gets 505
/// (RFC 9113 §3.3: prior knowledge). `wrong_frames_end_the_connection_with_their_code` in
/// `crates/http/tests/http2/frames.rs` has a wrong preface of HTTP/2.
const WITHOUT_TLS: &str = "http2/3.5/2";

/// The cases of h2spec that open a second connection while the first is idle. `naive` serves one client, so the first
/// connection gives way once its handshake is complete (RFC 9113 §9.1 lets a server close idle connections).
/// `bodies_respect_windows_of_the_stream_and_of_the_connection` in `crates/http/tests/http2/bodies.rs` has such windows.
const WITH_TWO_CONNECTIONS: [&str; 4] = ["http2/6.5.3/1", "http2/6.9.1/1", "http2/6.9.2/1", "http2/6.9.2/2"];

fn h2spec_finds_only_the_listed_differences(config: &Config) {
    let server = Launch::new(config, site::shared()).flag("--echo", "/echo").start();
    let run = |path: &str, cases: &[&str], seconds: &str| {
        let report = server.at("h2spec.xml");
        let mut command = Command::new(tools::program("h2spec"));
        command.args(["--strict", "--timeout", seconds, "--host", "localhost", "--path", path]);
        command.arg(format!("--port={}", server.address.port())).arg("--junit-report").arg(&report);
        if config.tls {
            command.args(["--tls", "--insecure"]);
        }
        // It fails if a case fails.
        let output = command.args(cases).output().expect("it is installed");
        let text = fs::read_to_string(&report).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let _ = fs::remove_file(report);
        (failures(&text), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let ((all, mut failed), text) = run("/large.bin", &[], "2");
    failed.retain(|case| !WITH_CONTENT.contains(&&**case) && (config.tls || case != WITHOUT_TLS));
    if config.tls && config.engine == Engine::Naive {
        failed.retain(|case| !WITH_TWO_CONNECTIONS.contains(&&**case));
    }
    assert!(all >= 146, "{text}");
    if !failed.is_empty() {
        // On a busy machine, a case may only have been late.
        let cases: Vec<&str> = failed.iter().map(String::as_str).collect();
        let ((_, still), text) = run("/large.bin", &cases, "20");
        assert!(still.is_empty(), "{failed:?}\n{text}");
    }
    let ((all, failed), text) = run("/echo", &WITH_CONTENT, "20");
    assert!(all == WITH_CONTENT.len() && failed.is_empty(), "{failed:?} of {all} cases with content\n{text}");
}

/// The number of cases in a report of h2spec, and the cases that did not pass: package and number.
fn failures(report: &str) -> (usize, Vec<String>) {
    let (mut numbers, mut failed) = (BTreeMap::<&str, u32>::new(), Vec::new());
    let begin = "<testcase package=\"";
    for case in report.lines().filter_map(|line| line.trim_start().strip_prefix(begin)) {
        let package = case.split('"').next().unwrap_or_default();
        let number = numbers.entry(package).or_default();
        *number += 1;
        // Otherwise, an error, or the reason to skip the case, is inside.
        if !case.ends_with("></testcase>") {
            failed.push(format!("{package}/{number}"));
        }
    }
    (numbers.values().sum::<u32>() as usize, failed)
}
