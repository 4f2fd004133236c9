//! The fields of the access log: user-defined formats, and the user of a request.

use rustix::process::Signal;
use serde_json::Value;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true};

use tenfold_tests::wire::request;

use crate::rules::{MEMBERS, RIGHT, WRONG};

pub(crate) const THEME: Theme = Theme {
    name: "log-fields",
    cases: cases![
        Own on DRIVERS: a_format_of_its_own_has_texts_and_fields, every_error_has_its_reason, requests_have_identifiers,
            responses_name_their_engine_on_request;
        Own on EPOLL: the_user_of_a_request_is_logged_unless_rejected, messages_have_their_time;
    ],
};

fn a_format_of_its_own_has_texts_and_fields(config: &Config) {
    let format = "{client}|{user}|{method}|{path}|{query}|{protocol}|{status}|{bytes}|{agent}|{sends}|{milliseconds}|{{}}";
    let launch = Launch::new(config, site::shared()).flag("--log-format", format).flag("--log-mode", "sync");
    let server = launch.start();
    let agent = ("User-Agent", "a \"b\"");
    assert_eq!(server.ask("GET", "/1k.html?x=1", &[agent]).status, 200);
    // Lines of several threads have no order.
    becomes_true(SOON, "the first line is written", || server.log().ends_with('\n'));
    assert_eq!(server.ask("HEAD", "/none", &[]).status, 404);
    becomes_true(SOON, "both lines are written", || server.log().lines().count() == 2);
    let log = server.log();
    let lines: Vec<Vec<&str>> = log.lines().map(|line| line.split('|').collect()).collect();
    assert_eq!(
        lines[0][..9],
        ["127.0.0.1", "-", "GET", "/1k.html", "x=1", "HTTP/1.1", "200", "1024", "a \\x22b\\x22"],
        "{log}"
    );
    assert!(lines[0][9].parse::<u32>().is_ok_and(|sends| sends > 0), "{log}");
    assert!(lines[0][10].parse::<f64>().is_ok_and(|time| time > 0.0), "{log}");
    assert_eq!(lines[0][11], "{}", "{log}");
    assert_eq!(lines[1][2..9], ["HEAD", "/none", "-", "HTTP/1.1", "404", "0", "-"], "{log}");
}

/// Fails if a cause of an error gets the reason of another, or none, or if a success has one.
fn every_error_has_its_reason(config: &Config) {
    const NO_FILE: &str = "no such file";
    const IMPOSSIBLE: &str = "a name that no file can have";
    let launch = Launch::new(config, site::shared()).flag("--log-format", "json").flag("--log-mode", "sync");
    let server = launch.flag("--listing", "off").start();
    let head = |method: &str, target: &str, fields: &str| {
        format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{fields}Connection: close\r\n\r\n")
    };
    let get = |target: &str| head("GET", target, "");
    let both = "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n";
    for (bytes, status, reason) in [
        (get("/1k.html"), 200, None),
        (get("/none"), 404, Some(NO_FILE)),
        // The second time, the absence is cached.
        (get("/none"), 404, Some(NO_FILE)),
        (get("/1K.html"), 404, Some(NO_FILE)),
        (get("/none/"), 404, Some(NO_FILE)),
        (get("/bare/"), 404, Some("a folder without an index; listings are off")),
        (get("/.secret"), 404, Some("a hidden name")),
        (get("/out.txt"), 404, Some("a link leaves the root, or is not followed")),
        (get("/..%2fetc/passwd"), 404, Some(IMPOSSIBLE)),
        (get("/../etc/passwd"), 404, Some(IMPOSSIBLE)),
        (get("/pipe"), 403, Some("a device, a FIFO or a socket")),
        (get("/locked.txt"), 403, Some("permission denied")),
        (get("/%zz"), 400, Some("the path has a bad %, a control character or a backslash, or is not UTF-8")),
        (head("POST", "/1k.html", ""), 405, Some("the method is not allowed")),
        (head("GET", "/1k.html", "Range: bytes=9999-\r\n"), 416, Some("no part of the range is in the file")),
        (head("GET", "/1k.html", "Host: b\r\n"), 400, Some("Host is given twice")),
        ("GET / HTTP/1.1\r\n\r\n".into(), 400, Some("Host is missing")),
        (head("POST", "/", both), 400, Some("both Content-Length and Transfer-Encoding are given")),
    ] {
        let before = server.log().lines().count();
        server.exchange(bytes.as_bytes());
        becomes_true(SOON, "the line is written", || server.log().lines().count() == before + 1);
        let log = server.log();
        let line: Value = serde_json::from_str(log.lines().last().expect("it was written")).expect("JSON");
        assert_eq!((line["status"].as_u64(), line["reason"].as_str()), (Some(status), reason), "{line}");
    }
}

fn the_user_of_a_request_is_logged_unless_rejected(config: &Config) {
    let folder = TempFolder::new("log-user");
    folder.write("site/index.html", "x");
    folder.write("site/private/index.html", "y");
    folder.write("members.htpasswd", MEMBERS);
    let text =
        "root = \"site\"\n[[site.path]]\nmatch = \"/private/**\"\nauth = { users = \"members.htpasswd\" }\n";
    let file = folder.write("tenfold.toml", text);
    let launch = Launch::bare(config).flag("--config", file.display());
    let server = launch.flag("--log-format", "json").flag("--log-mode", "sync").start();
    let mut logged = Vec::new();
    for (fields, status) in [(&[RIGHT][..], 200), (&[WRONG], 401), (&[], 401)] {
        assert_eq!(server.ask("GET", "/private/", fields).status, status);
        let lines = logged.len() + 1;
        becomes_true(SOON, "the line is written", || server.log().lines().count() == lines);
        let log = server.log();
        let line: Value = serde_json::from_str(log.lines().last().expect("it was written")).expect("JSON");
        logged.push(line["user"].as_str().map(str::to_owned));
    }
    assert_eq!(logged, [Some("alice".to_owned()), None, None]);
}

fn messages_have_their_time(config: &Config) {
    let server = Launch::new(config, site::shared()).start();
    server.process.signal(Signal::USR1);
    server.expect_report("the access log was opened again");
    let errors = server.errors();
    let line = errors.lines().find(|line| line.contains("opened again")).expect("it was found");
    let (time, message) = line.split_at(21);
    assert!(message.starts_with("tenfold: "), "{line}");
    let plain: String =
        time.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect();
    assert_eq!(plain, "0000-00-00T00:00:00Z ", "{line}");
    assert!(errors.starts_with("  serves   http://"), "the start block has none: {errors}");
}

fn requests_have_identifiers(config: &Config) {
    let launch = |flags: &[(&str, &str)]| {
        let launch = Launch::new(config, site::shared()).flag("--log-format", "{request_id} {status}");
        flags
            .iter()
            .fold(launch.flag("--log-mode", "sync"), |launch, (name, value)| launch.flag(name, value))
            .start()
    };
    let sent = ("X-Request-Id", "7f000001-0001");
    let server = launch(&[("--request-id", "on")]);
    let mut wire = server.connect();
    let mut ids = Vec::new();
    for target in ["/1k.html", "/none", "/bare/"] {
        wire.send(request("GET", target, &[sent]));
        let response = wire.response();
        let id = response.need("X-Request-Id").to_owned();
        assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{target}: {id}");
        becomes_true(SOON, "it is logged", || server.log().contains(&format!("{id} {}\n", response.status)));
        assert!(!ids.contains(&id), "{id} is the identifier of two requests");
        ids.push(id);
    }
    drop(wire);
    let server = launch(&[("--request-id", "on"), ("--trusted-proxy", "127.0.0.1")]);
    assert_eq!(server.ask("GET", "/1k.html", &[sent]).need("X-Request-Id"), sent.1);
    becomes_true(SOON, "it is logged", || server.log() == format!("{} 200\n", sent.1));
    let forged = ("X-Request-Id", "not an identifier");
    assert_ne!(server.ask("GET", "/1k.html", &[forged]).need("X-Request-Id"), forged.1);
    let server = launch(&[]);
    assert!(server.ask("GET", "/1k.html", &[sent]).field("X-Request-Id").is_none());
    becomes_true(SOON, "there is none in the log", || server.log() == "- 200\n");
}

fn responses_name_their_engine_on_request(config: &Config) {
    let server = Launch::new(config, site::shared()).flag("--server-timing", "on").start();
    let mut wire = server.connect();
    wire.send(request("GET", "/1k.html", &[]));
    let page = wire.response();
    let tag = ("If-None-Match", page.need("ETag"));
    let mut fields = vec![(page.status, page.need("Server-Timing").to_owned())];
    for (target, given) in [("/1k.html", &[tag][..]), ("/none", &[]), ("/../x y", &[])] {
        let mut wire = server.connect();
        wire.send(request("GET", target, given));
        let response = wire.response();
        fields.push((response.status, response.need("Server-Timing").to_owned()));
    }
    assert_eq!(fields.iter().map(|(status, _)| *status).collect::<Vec<_>>(), [200, 304, 404, 400]);
    for (status, field) in fields {
        let engine = format!("engine;desc=\"{}\", calls;desc=\"", config.engine.name());
        let rest = field.strip_prefix(&engine).unwrap_or_else(|| panic!("{status}: {field}"));
        let (calls, worker) = rest.split_once("\", worker;desc=\"").unwrap_or_else(|| panic!("{field}"));
        assert!(calls.contains("close"), "{field}");
        assert!(["1\"", "2\""].contains(&worker), "{field}");
    }
    let server = Launch::new(config, site::shared()).start();
    assert!(server.ask("GET", "/1k.html", &[]).field("Server-Timing").is_none());
}
