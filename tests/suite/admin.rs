//! The admin listener: exact numbers on every engine, health, hostile clients, and a process that is replaced.

mod page;
mod prometheus;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::thread;

use page::{the_page_draws_what_happens, the_page_has_the_numbers_of_metrics};
use prometheus::scrapes_and_the_dashboard_finds_its_metrics;
use rustix::process::Signal;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{ANY_PORT, Launch, tenfold};
use tenfold_tests::process::Process;
use tenfold_tests::response::WireResponse;
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::wire::{Wire, request};
use tenfold_tests::{binary, tools};

pub(crate) const THEME: Theme = Theme {
    name: "admin",
    cases: cases![
        Own on DRIVERS + ANOTHER: numbers_are_exact,
            h17_a_page_is_not_made_before_earlier_responses_have_left;
        Own on EPOLL: readiness_follows_the_life_of_the_server, h99_stalled_and_wrong_clients_hold_up_nobody,
            incomplete_heads_give_way, h99_the_process_is_replaced, a_scrape_beside_load_is_whole,
            reloads_and_upgrades_are_counted, status_asks_an_admin_listener, an_address_in_use_is_named,
            scrapes_and_the_dashboard_finds_its_metrics, the_page_has_the_numbers_of_metrics,
            the_page_draws_what_happens;
    ],
};

/// A server with an admin listener, and the listener's address.
fn start(launch: Launch) -> (Server, SocketAddr) {
    let server = launch.flag("--admin", ANY_PORT).start();
    let admin = server.admin();
    (server, admin)
}

#[track_caller]
fn ask(admin: SocketAddr, method: &str, target: &str) -> WireResponse {
    let mut wire = Wire::connect(admin);
    wire.send(request(method, target, &[]));
    if method == "HEAD" { wire.head() } else { wire.response() }
}

/// The samples by their names and labels.
#[track_caller]
fn metrics(admin: SocketAddr) -> BTreeMap<String, f64> {
    let response = ask(admin, "GET", "/metrics");
    assert_eq!(response.status, 200);
    assert_eq!(response.need("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
    samples(&String::from_utf8(response.body).expect("metrics are text"))
}

/// The metrics during an upgrade; `None` if the process ended during the scrape.
fn metrics_if_whole(admin: SocketAddr) -> Option<BTreeMap<String, f64>> {
    let mut stream = TcpStream::connect(admin).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    let (head, body) = response.split_once("\r\n\r\n")?;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
    (length == Some(body.len())).then(|| samples(body))
}

fn samples(text: &str) -> BTreeMap<String, f64> {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let read = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no sample: {line}"));
        (name.to_owned(), value.parse().unwrap_or_else(|_| panic!("no number: {line}")))
    };
    samples.map(read).collect()
}

fn numbers_are_exact(config: &Config) {
    let (server, admin) = start(Launch::new(config, site::shared()));
    let mut sent = 0;
    let mut count = |response: WireResponse, status: u16| {
        assert_eq!(response.status, status);
        sent += response.head.len() + "\r\n".len() + response.body.len();
        response
    };
    let mut wire = server.connect();
    let mut tag = String::new();
    for _ in 0..3 {
        wire.get("/1k.html");
        tag = count(wire.response(), 200).need("ETag").to_owned();
    }
    wire.send(request("HEAD", "/1k.html", &[]));
    count(wire.head(), 200);
    wire.send(request("GET", "/1k.html", &[("If-None-Match", &tag)]));
    count(wire.response(), 304);
    wire.get("/none");
    count(wire.response(), 404);
    wire.get("/3m.bin");
    count(wire.response(), 200);
    wire.send(request("DELETE", "/1k.html", &[]));
    count(wire.response(), 405);
    drop(wire);
    let mut wire = server.connect();
    wire.send("GET /\x1b[31m HTTP/1.1\r\nHost: a\r\n\r\n");
    count(wire.response(), 400);
    drop(wire);
    let expected = [
        ("tenfold_requests_total{method=\"GET\",status=\"2xx\"}", 4),
        ("tenfold_requests_total{method=\"GET\",status=\"3xx\"}", 1),
        ("tenfold_requests_total{method=\"GET\",status=\"4xx\"}", 1),
        ("tenfold_requests_total{method=\"HEAD\",status=\"2xx\"}", 1),
        ("tenfold_requests_total{method=\"DELETE\",status=\"4xx\"}", 1),
        ("tenfold_first_byte_seconds_count", 8),
        ("tenfold_response_seconds_count", 8),
        ("tenfold_response_seconds_bucket{le=\"+Inf\"}", 8),
        ("tenfold_responses_total{code=\"200\"}", 5),
        ("tenfold_responses_total{code=\"304\"}", 1),
        ("tenfold_responses_total{code=\"400\"}", 1),
        ("tenfold_responses_total{code=\"404\"}", 1),
        ("tenfold_responses_total{code=\"405\"}", 1),
        ("tenfold_refusals_total{reason=\"malformed\"}", 1),
        ("tenfold_sent_bytes_total", sent),
        ("tenfold_connections", 0),
        ("tenfold_connections_accepted_total", 2),
        ("tenfold_tls_handshakes_total{result=\"failed\"}", 0),
        ("tenfold_ready", 1),
    ];
    let mut found = BTreeMap::new();
    becomes_true(SOON, "the connections have ended", || {
        found = metrics(admin);
        found["tenfold_connections"] == 0.0 && found["tenfold_response_seconds_count"] == 8.0
    });
    for (name, value) in expected {
        assert_eq!(found.get(name), Some(&(value as f64)), "{name} of {found:#?}");
    }
    let classes = found.keys().filter(|name| name.starts_with("tenfold_requests_total")).count();
    assert_eq!(classes, 5, "{found:#?}");
    let (first, last) = (found["tenfold_first_byte_seconds_sum"], found["tenfold_response_seconds_sum"]);
    assert!(first > 0.0 && first <= last && last < 60.0, "{first} and {last} seconds");
}

/// A connection with unread responses would hold the page for hours.
fn h17_a_page_is_not_made_before_earlier_responses_have_left(config: &Config) {
    const EARLIER: usize = 8;
    let folder = TempFolder::new("listed-late");
    folder.write("4k.txt", "x".repeat(4000));
    folder.write("all/one.txt", "1");
    let launch = Launch::new(config, folder.path()).flag("--listing", "html").flag("--notsent-lowat", "16k");
    let (server, admin) = start(launch);
    let mut wire = Wire::connect_with_buffer(4096, server.address);
    let mut requests = request("GET", "/4k.txt", &[]).repeat(EARLIER);
    requests.extend(request("HEAD", "/all/", &[]));
    wire.send(requests);
    let jobs = || metrics(admin)["tenfold_offload_jobs_total"];
    // The first byte arrives when all heads are answered, or wait for work.
    let mut first = [0];
    assert_eq!(wire.socket().peek(&mut first).expect("a response begins"), 1);
    if !config.submits() {
        assert_eq!(jobs(), 0.0, "earlier responses are unread");
    }
    for _ in 0..EARLIER {
        assert_eq!(wire.response().body.len(), 4000);
    }
    assert_eq!(wire.head().status, 200);
    assert_eq!(jobs(), 1.0);
}

fn readiness_follows_the_life_of_the_server(config: &Config) {
    let (server, admin) = start(Launch::new(config, site::shared()));
    let said = |target: &str| {
        let response = ask(admin, "GET", target);
        (response.status, String::from_utf8(response.body).expect("text"))
    };
    becomes_true(SOON, "the server is ready", || said("/readyz") == (200, "ready\n".to_owned()));
    let mut wire = server.busy().expect("a connection within its second request");
    server.process.signal(Signal::QUIT);
    becomes_true(SOON, "the server is not ready", || said("/readyz") == (503, "draining\n".to_owned()));
    assert_eq!(said("/healthz"), (200, "ok\n".to_owned()));
    // A page in a browser on this machine, whose host name resolves to this machine.
    for (host, status) in
        [("evil.example:9145", 421), ("LocalHost:1", 200), ("[::1]:9145", 200), ("[::1]", 200)]
    {
        let mut wire = Wire::connect(admin);
        wire.send(format!("GET /status HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(wire.response().status, status, "{host}");
    }
    assert_eq!(metrics(admin)["tenfold_ready"], 0.0);
    assert_eq!(wire.response_between().status, 200);
    assert!(server.ends_within(SOON).success());
}

fn h99_stalled_and_wrong_clients_hold_up_nobody(config: &Config) {
    let (_server, admin) = start(Launch::new(config, site::shared()));
    // Most of the listener's connections.
    let stalled: Vec<_> = (0..40)
        .map(|number| {
            let mut wire = Wire::connect(admin);
            wire.send(if number % 2 == 0 { "GET /metrics HTTP/1.1\r\nHo" } else { "" });
            wire
        })
        .collect();
    // A client that never reads its responses.
    let mut greedy = Wire::connect(admin);
    greedy.send(request("GET", "/metrics", &[]).repeat(200));
    let posted = ask(admin, "POST", "/metrics");
    assert_eq!((posted.status, posted.need("Allow")), (405, "GET, HEAD"));
    let head = ask(admin, "HEAD", "/metrics");
    assert!(head.status == 200 && head.promised() > 1000 && head.body.is_empty(), "{}", head.head);
    assert_eq!(ask(admin, "GET", "/none").status, 404);
    let mut wire = Wire::connect(admin);
    wire.send("no HTTP\r\n\r\n");
    assert_eq!(wire.response().status, 400);
    let mut wire = Wire::connect(admin);
    wire.send(request("GET", "/metrics", &[("Accept", "application/openmetrics-text;version=1.0.0;q=0.5")]));
    let open = wire.response();
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(open.need("Content-Type"), content_type);
    assert!(open.body.ends_with(b"# EOF\n"));
    drop(stalled);
    assert!(
        !metrics(admin).keys().any(|name| name.starts_with("tenfold_requests_total")),
        "its own requests do not count"
    );
}

/// More connections than the listener allows, from the common address.
fn incomplete_heads_give_way(config: &Config) {
    let (_server, admin) = start(Launch::new(config, site::shared()));
    let stalled: Vec<_> = (0..128)
        .map(|_| {
            let mut wire = Wire::connect(admin);
            // The listener may have closed it.
            let _ = wire.try_send(b"G");
            wire
        })
        .collect();
    for target in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(ask(admin, "GET", target).status, 200, "{target}");
    }
    drop(stalled);
}

/// The process of the admin listener, which is not a worker.
fn process(server: &Server) -> Option<Process> {
    let status = server.status();
    let workers: Vec<_> = status["workers"].as_array().expect("there are workers").clone();
    let is_worker = |process: &Process| workers.iter().any(|worker| worker["process"] == process.0);
    server.process.children().into_iter().find(|process| !is_worker(process))
}

fn h99_the_process_is_replaced(config: &Config) {
    let (server, admin) = start(Launch::new(config, site::shared()));
    assert_eq!(server.get("/1k.html").status, 200);
    metrics(admin);
    let first = process(&server).expect("there is a process for the listener");
    assert_eq!(server.workers().len(), server.status()["workers"].as_array().map_or(0, Vec::len) + 1);
    first.signal(Signal::KILL);
    becomes_true(SOON, "another takes its place", || process(&server).is_some_and(|next| next != first));
    assert_eq!(metrics(admin)["tenfold_requests_total{method=\"GET\",status=\"2xx\"}"], 1.0);
    server.expect_report("the admin process was killed by signal 9");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn a_scrape_beside_load_is_whole(config: &Config) {
    const CLIENTS: usize = 4;
    const REQUESTS: usize = 100;
    let (server, admin) = start(Launch::new(config, site::shared()));
    let total = |found: &BTreeMap<String, f64>| found.get("tenfold_response_seconds_count").copied();
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    let mut wire = server.connect();
                    for _ in 0..REQUESTS {
                        wire.get("/1k.html");
                        assert_eq!(wire.response().status, 200);
                    }
                })
            })
            .collect();
        let mut before = 0.0;
        while !clients.iter().all(|client| client.is_finished()) {
            let now = total(&metrics(admin)).expect("every scrape has a count");
            assert!(now >= before, "{now} after {before}");
            before = now;
        }
    });
    let all = (CLIENTS * REQUESTS) as f64;
    becomes_true(SOON, "all are counted", || total(&metrics(admin)) == Some(all));
}

fn reloads_and_upgrades_are_counted(config: &Config) {
    let folder = TempFolder::new("admin");
    folder.write("site/index.html", "a\n");
    let file = folder.write("tenfold.toml", "root = \"site\"\n");
    let (server, admin) = start(Launch::bare(config).flag("--config", file.display()));
    let reload = |text: &str, name: &str| {
        fs::write(folder.at("tenfold.toml"), text).expect("our own file");
        server.process.signal(Signal::HUP);
        becomes_true(SOON, name, || metrics(admin)[name] == 1.0);
        metrics(admin)["tenfold_config_last_reload_successful"]
    };
    assert_eq!(server.get("/").status, 200);
    assert_eq!(reload("root = 1\n", "tenfold_config_reloads_total{result=\"failure\"}"), 0.0);
    assert_eq!(reload("root = \"site\"\n", "tenfold_config_reloads_total{result=\"success\"}"), 1.0);
    assert_eq!(server.get("/").status, 200);
    let requests = "tenfold_requests_total{method=\"GET\",status=\"2xx\"}";
    becomes_true(SOON, "both generations count", || metrics(admin)[requests] == 2.0);
    server.process.signal(Signal::USR2);
    let upgrades = |result: &str| format!("tenfold_upgrades_total{{result=\"{result}\"}}");
    // The process of the admin listener is replaced with the program.
    let succeeded = |metrics: BTreeMap<_, _>| metrics.get(&upgrades("success")) == Some(&1.0);
    becomes_true(SOON, "the upgrade", || metrics_if_whole(admin).is_some_and(succeeded));
    assert_eq!(metrics(admin)[&upgrades("failure")], 0.0);
}

fn status_asks_an_admin_listener(config: &Config) {
    let (server, admin) = start(Launch::new(config, site::shared()));
    assert_eq!(server.get("/1k.html").status, 200);
    becomes_true(SOON, "the request is counted", || server.status()["requests"] == 1);
    let output = tenfold(&["status", "--json", &admin.to_string()]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&report["process"], &report["requests"]), (&server.process.0.into(), &1.into()), "{report}");
    assert!(report["workers"][0]["memory"].as_u64().is_some_and(|bytes| bytes > 1 << 20), "{report}");
    let output = tenfold(&["status", &admin.port().to_string()]);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("tenfold "), "{output:?}");
    let output = tenfold(&["status", &format!("http://{admin}/")]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("\nresponses  200 1\n"), "{output:?}");
    let output = tenfold(&["status", &server.address.to_string()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(" is no admin listener: it answered /status with 404"), "{said}");
    assert_eq!(output.status.code(), Some(1));
    // The command ends after the server.
    let mut watch = Command::new(tools::program("timeout"));
    watch.arg("60").arg(&binary::server().expect("the server").path).args(["status", "--watch"]);
    let mut watching = watch.arg(admin.to_string()).stdout(Stdio::piped()).spawn().expect("it starts");
    let (mut output, mut shown) = (BufReader::new(watching.stdout.take().expect("a pipe")), String::new());
    while !shown.contains("\nlatency  p50 ") {
        assert!(output.read_line(&mut shown).expect("text") > 0, "it has ended: {shown}");
    }
    server.stop().unwrap_or_else(|why| panic!("{why}"));
    output.read_to_string(&mut shown).expect("text");
    assert!(shown.contains(" requests/s ") && !shown.contains('\x1b'), "no terminal: {shown}");
    assert_eq!(watching.wait().expect("it ends").code(), Some(1));
}

fn an_address_in_use_is_named(config: &Config) {
    let (server, admin) = start(Launch::new(config, site::shared()));
    let launch = Launch::new(config, site::shared()).flag("--listen", ANY_PORT);
    let output = launch.flag("--admin", admin).flag("--control", "off").refused();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let why = format!("cannot open the admin listener on {admin}: the address is in use: stop the process");
    assert!(said.contains(&why), "{said}");
    assert_eq!(output.status.code(), Some(1));
    let path = server.at("admin.sock");
    let other =
        Launch::new(config, site::shared()).flag("--admin", format!("unix:{}", path.display())).start();
    let mut wire = Wire::connect_unix(&path);
    wire.send(request("GET", "/healthz", &[]));
    assert_eq!(wire.response().body, b"ok\n");
    other.stop().unwrap_or_else(|why| panic!("{why}"));
    assert!(!path.exists(), "the file of the socket is removed");
}
