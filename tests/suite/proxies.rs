//! Clients behind a proxy: their addresses, and forged fields and headers.

mod fronts;

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::http2::Http2Wire;
use tenfold_tests::launch::Launch;
use tenfold_tests::seal::{exchange_once, new_client};
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::wire::{Wire, request};

use fronts::*;

pub(crate) const THEME: Theme = Theme {
    name: "proxies",
    cases: cases![
        Own on DRIVERS + FORK: fields_of_a_trusted_proxy_name_the_client_in_the_log;
        Own on DRIVERS: h100_forged_fields_are_ignored,
            haproxy_names_the_client, nginx_names_the_client, caddy_names_the_client_the_host_and_the_scheme;
        Own on DRIVERS + ANOTHER: a_proxy_header_names_the_client_in_the_log, a_proxy_header_precedes_tls;
        Own on ENGINES: h100_wrong_proxy_headers_close_the_connection;
        Many: caddy_sends_proxy_headers;
        Own on DRIVERS + ANOTHER_CONCURRENT: connections_behind_a_proxy_header_count_for_the_client;
        Own on EPOLL: the_host_of_a_proxy_chooses_the_site_only_if_asked_for,
            the_request_rate_is_the_clients, a_line_of_json_has_the_parts_of_the_request;
    ],
};

fn stop(server: Server) {
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// Expects these addresses in the log.
#[track_caller]
fn assert_clients(server: &Server, expected: &[&str]) {
    let count = || server.log().lines().count() >= expected.len();
    becomes_true(SOON, &format!("{} lines", expected.len()), count);
    let log = server.log();
    let mut clients: Vec<_> = log.lines().map(|line| line.split(' ').next().unwrap_or_default()).collect();
    let mut expected = expected.to_vec();
    // Each thread, or process, has a buffer of its own.
    clients.sort_unstable();
    expected.sort_unstable();
    assert_eq!(clients, expected, "{log}");
}

/// Sends a request with each of these fields on one connection.
#[track_caller]
fn ask_with(wire: &mut Wire, fields: &[(&str, &str)]) {
    for field in fields {
        wire.send(request("GET", "/1k.html", &[*field]));
        assert_eq!(wire.response().status, 200, "{field:?}");
    }
}

fn fields_of_a_trusted_proxy_name_the_client_in_the_log(config: &Config) {
    let server = Launch::new(config, site::shared()).flag("--trusted-proxy", "127.0.0.0/8").start();
    let mut wire = server.connect();
    ask_with(
        &mut wire,
        &[
            ("X-Forwarded-For", "203.0.113.9, 192.0.2.1"),
            ("X-Forwarded-For", "203.0.113.9, 192.0.2.2, 127.0.0.9"),
            ("X-Forwarded-For", "2001:db8::1"),
            ("Forwarded", "for=192.0.2.3;proto=https, for=127.0.0.9"),
            ("Forwarded", "for=\"[2001:db8::2]:4711\""),
            ("X-Real-IP", "192.0.2.9"),
            ("X-Forwarded-For", "unknown"),
        ],
    );
    wire.send(request(
        "GET",
        "/1k.html",
        &[("X-Forwarded-For", "192.0.2.1"), ("Forwarded", "for=192.0.2.2")],
    ));
    assert_eq!(wire.response().status, 200);
    drop(wire);
    assert_clients(
        &server,
        &[
            "192.0.2.1",
            "192.0.2.2",
            "2001:db8::1",
            "192.0.2.3",
            "2001:db8::2",
            "127.0.0.1",
            "127.0.0.1",
            // One of them is forged.
            "127.0.0.1",
        ],
    );
    // Each connection of `fork` has a process of its own.
    let ambiguous = [("X-Forwarded-For", "192.0.2.1"), ("Forwarded", "for=192.0.2.2")];
    assert_eq!(server.ask("GET", "/1k.html", &ambiguous).status, 200);
    server.expect_report("name different clients: neither is used");
    assert_eq!(server.errors().matches("name different clients").count(), 1, "{}", server.errors());
    stop(server);
}

fn h100_forged_fields_are_ignored(config: &Config) {
    let server = Launch::new(config, site::shared()).flag("--trusted-proxy", "127.0.0.2").start();
    let mut wire = server.connect();
    ask_with(&mut wire, &[("X-Forwarded-For", "192.0.2.1"), ("Forwarded", "for=192.0.2.1")]);
    drop(wire);
    let mut trusted = Wire::connect_from("127.0.0.2", server.address);
    ask_with(&mut trusted, &[("X-Forwarded-For", "192.0.2.1")]);
    drop(trusted);
    assert_clients(&server, &["127.0.0.1", "127.0.0.1", "192.0.2.1"]);
    stop(server);
}

/// A server whose listener requires PROXY headers.
fn behind(launch: Launch) -> Server {
    launch.flag("--listen", "proxy:127.0.0.1:0").start_configured()
}

/// A header of version 2.
fn second(version_and_command: u8, kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).expect("it is short").to_be_bytes();
    [&b"\r\n\r\n\0\r\nQUIT\n"[..], &[version_and_command, kind], &length, body].concat()
}

const FIRST: &[u8] = b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 80\r\n";
/// 192.0.2.2, followed by a TLV.
const SECOND: &[u8] = &[192, 0, 2, 2, 198, 51, 100, 1, 0xdc, 4, 0, 80, 4, 0, 1, b'x'];

fn a_proxy_header_names_the_client_in_the_log(config: &Config) {
    let server = behind(Launch::new(config, site::shared()).flag("--trusted-proxy", "127.0.0.1"));
    let forged = request("GET", "/1k.html", &[("X-Forwarded-For", "203.0.113.9")]);
    let six = [&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1][..], &[0; 20]].concat();
    for header in [FIRST.to_vec(), second(0x21, 0x11, SECOND), second(0x21, 0x21, &six), second(0x20, 0, b"")]
    {
        let mut wire = server.connect();
        wire.send([&header[..], &request("GET", "/1k.html", &[])].concat());
        assert_eq!(wire.response().status, 200);
        // The connection has been idle in between, and the client is no trusted proxy.
        if header != second(0x20, 0, b"") {
            wire.send(&forged);
            assert_eq!(wire.response().status, 200);
        }
    }
    let mut wire = server.connect();
    wire.send(FIRST);
    assert_eq!(Http2Wire::new(wire).ask("GET", "/1k.html", &[], b"").status, 200);
    let mut wire = server.connect();
    let (begin, end) = FIRST.split_at(17);
    for part in [begin, end, &request("GET", "/1k.html", &[])] {
        wire.send(part);
        // The server receives the parts one by one.
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(wire.response().status, 200);
    drop(wire);
    let both = |client| [client, client];
    let clients = [both("192.0.2.1"), both("192.0.2.1"), both("192.0.2.2"), both("2001:db8::1")].concat();
    assert_clients(&server, &[&clients[..], &["127.0.0.1"]].concat());
    stop(server);
}

fn h100_wrong_proxy_headers_close_the_connection(config: &Config) {
    let launch = Launch::new(config, site::shared()).flag("--trusted-proxy", "127.0.0.1");
    let server = behind(launch.flag("--head-timeout", "300ms"));
    let get = request("GET", "/1k.html", &[]);
    let long = [b"PROXY UNKNOWN ", &[b'x'; 200][..], b"\r\n"].concat();
    for header in [
        b"".to_vec(),
        long,
        b"PROXY TCP4 192.0.2.1 198.51.100.1 56324\r\n".to_vec(),
        second(0x11, 0x11, SECOND),
        second(0x21, 0x11, &SECOND[..8]),
        second(0x20, 0, &[0; 5000]),
    ] {
        let mut wire = server.connect();
        // The server may have closed before the last byte was sent.
        let _ = wire.try_send(&[&header[..], &get].concat());
        wire.expect_dropped();
    }
    let mut cut = server.connect();
    cut.send(&FIRST[..20]);
    cut.end_output();
    cut.expect_dropped();
    let mut late = server.connect();
    late.send(&FIRST[..20]);
    late.expect_dropped();
    let mut stranger = Wire::connect_from("127.0.0.2", server.address);
    let _ = stranger.try_send(&[FIRST, &get].concat());
    stranger.expect_dropped();
    becomes_true(SOON, "they are counted", || server.status()["refusals"]["proxy-header"] == 9);
    server.expect_report("closed a connection from 127.0.0.1: ");
    assert_eq!(server.log(), "", "none of them made a request");
    stop(server);
}

fn a_proxy_header_precedes_tls(config: &Config) {
    let encrypted = config.over_tls();
    let server = behind(Launch::new(&encrypted, site::shared()).flag("--trusted-proxy", "127.0.0.1"));
    for header in [FIRST, &second(0x21, 0x11, SECOND)] {
        let mut stream = TcpStream::connect(server.address).expect("it listens");
        stream.write_all(header).expect("it is connected");
        let request = "GET /1k.html HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let exchange = exchange_once(stream, &new_client(), "localhost", request);
        let response = exchange.unwrap_or_else(|error| panic!("{error}; {}", server.errors())).response;
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    }
    assert_clients(&server, &["192.0.2.1", "192.0.2.2"]);
    stop(server);
}

fn connections_behind_a_proxy_header_count_for_the_client(config: &Config) {
    let launch = Launch::new(config, site::shared()).flag("--trusted-proxy", "127.0.0.1");
    let server = behind(launch.flag("--max-connections-per-address", 2));
    let open = |header: &[u8]| {
        let mut wire = server.connect();
        let _ = wire.try_send(&[header, &request("GET", "/1k.html", &[])].concat());
        wire.try_head().filter(|response| response.status == 200).map(|_| wire)
    };
    let kept = [open(FIRST), open(FIRST)];
    assert!(kept.iter().all(Option::is_some) && open(FIRST).is_none(), "a third connection of a client");
    assert!(open(&second(0x21, 0x11, SECOND)).is_some(), "another client");
    drop(kept);
    becomes_true(SOON, "there is room again", || open(FIRST).is_some());
    stop(server);
}

fn the_host_of_a_proxy_chooses_the_site_only_if_asked_for(config: &Config) {
    let folder = TempFolder::new("forwarded-host");
    folder.write("a/index.html", "site a");
    folder.write("b/index.html", "site b");
    let text = "root = \"a\"\n[[host]]\nname = \"b.example\"\nroot = \"b\"\n";
    let file = folder.write("tenfold.toml", text);
    let body = |flags: &[(&str, &str)], field: (&str, &str)| {
        let launch = Launch::bare(config).flag("--config", file.display());
        let server = flags.iter().fold(launch, |launch, (name, value)| launch.flag(name, value)).start();
        let response = server.ask("GET", "/", &[field]);
        stop(server);
        String::from_utf8_lossy(&response.body).into_owned()
    };
    let (host, trusted) = (("X-Forwarded-Host", "c.example, b.example"), ("--trusted-proxy", "127.0.0.1"));
    assert_eq!(body(&[trusted], host), "site a", "most proxies pass the field on");
    assert_eq!(body(&[trusted, ("--forwarded-fields", "x-forwarded-host")], host), "site b");
    assert_eq!(body(&[("--trusted-proxy", "127.0.0.2")], host), "site a", "from another peer");
    let element = ("Forwarded", "for=192.0.2.1;host=b.example");
    assert_eq!(body(&[trusted, ("--forwarded-fields", "forwarded")], element), "site b");
}

fn a_line_of_json_has_the_parts_of_the_request(config: &Config) {
    let launch = Launch::new(config, site::shared()).flag("--trusted-proxy", "127.0.0.1");
    let launch = launch.flag("--forwarded-fields", "x-forwarded-for x-forwarded-host");
    let server = launch.flag("--log-format", "json").start();
    let fields = [("X-Forwarded-For", "192.0.2.1"), ("X-Forwarded-Host", "b.example")];
    assert_eq!(server.ask("GET", "/1k.html?a=b", &fields).status, 200);
    becomes_true(SOON, "a line", || server.log().lines().count() == 1);
    let line: Value = serde_json::from_str(&server.log()).expect("it is JSON");
    for (key, expected) in [
        ("client", "192.0.2.1"),
        ("method", "GET"),
        ("host", "b.example"),
        ("path", "/1k.html"),
        ("query", "a=b"),
        ("protocol", "HTTP/1.1"),
    ] {
        assert_eq!(line[key], expected, "{line}");
    }
    let [process, send] = ["process_us", "send_us"].map(|key| line[key].as_f64().expect("a number"));
    let all = line["milliseconds"].as_f64().expect("a number");
    assert!((all * 1000.0 - process - send).abs() < 2.0, "{line}");
    stop(server);
}

fn the_request_rate_is_the_clients(config: &Config) {
    let launch = Launch::new(config, site::shared()).flag("--trusted-proxy", "127.0.0.1");
    let launch = launch.flag("--max-requests-per-address", 1).flag("--request-burst", 2);
    let server = launch.start();
    let mut wire = server.connect();
    let mut ask = |client: &str| {
        wire.send(request("GET", "/1k.html", &[("X-Forwarded-For", client)]));
        wire.response().status
    };
    let statuses: Vec<_> = (0..6).map(|_| ask("192.0.2.1")).collect();
    assert!(statuses.starts_with(&[200, 200]) && statuses.contains(&429), "{statuses:?}");
    assert_eq!(ask("192.0.2.2"), 200, "another client of the same proxy");
    // A request without a valid client address does not count for the rate of the proxy.
    let fields = [("X-Forwarded-For", "192.0.2.3"), ("Forwarded", "for=192.0.2.4")];
    let statuses: Vec<_> = (0..6)
        .map(|_| {
            wire.send(request("GET", "/1k.html", &fields));
            wire.response().status
        })
        .collect();
    assert!(statuses.starts_with(&[200, 200]) && statuses.contains(&429), "{statuses:?}");
    wire.send(request("GET", "/1k.html", &[]));
    assert_eq!(wire.response().status, 200, "a check of the proxy's own");
    stop(server);
}
