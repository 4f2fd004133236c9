//! Rules that follow from TLS: requests on the wrong connection, redirects to https, Strict-Transport-Security, and
//! bounds of handshakes.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::ClientConfig;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::seal::{exchange_once, get_once, new_client};
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::wire::Wire;

use crate::tls::{VALID, trusting, write_pair};

pub(crate) const THEME: Theme = Theme {
    name: "tls_rules",
    cases: cases![
        Own on DRIVERS + ANOTHER: plaintext_is_redirected_to_https;
        Own on EPOLL: h98_a_request_on_the_connection_of_another_host_gets_421,
            h98_redirects_lead_to_no_other_server, strict_transport_security_is_sent_with_tls_alone,
            h97_one_address_begins_few_handshakes_a_second;
    ],
};

/// A server for a.test and *.b.test, with a second address without TLS.
fn start(config: &Config, flags: &[(&str, &str)]) -> (Server, Vec<Vec<u8>>, SocketAddr) {
    let folder = TempFolder::new("rules");
    let pairs = [("a", "a.test"), ("b", "*.b.test")];
    let certificates = pairs.map(|(file, name)| write_pair(&folder, file, name, VALID)).to_vec();
    let mut launch = Launch::new(config, site::shared());
    for (file, _) in pairs {
        launch = launch.flag("--tls-certificate", folder.at(&format!("{file}.pem")).display());
        launch = launch.flag("--tls-key", folder.at(&format!("{file}-key.pem")).display());
    }
    launch = flags.iter().fold(launch, |launch, (name, value)| launch.flag(name, value));
    // A listening server has read its certificates.
    let server = launch.flag("--listen", "http:127.0.0.1:0").start();
    let plain = server.listening()[0];
    (server, certificates, plain)
}

/// The responses to `request` on a new connection with the server name `name`.
#[track_caller]
fn exchange(address: SocketAddr, client: &Arc<ClientConfig>, name: &str, request: &str) -> String {
    let stream = TcpStream::connect(address).expect("it listens");
    exchange_once(stream, client, name, request).expect("a response").response
}

fn h98_a_request_on_the_connection_of_another_host_gets_421(config: &Config) {
    let (server, certificates, _) = start(config, &[]);
    let client = trusting(&certificates.iter().collect::<Vec<_>>());
    let mut nameless = (*client).clone();
    nameless.enable_sni = false;
    let nameless = Arc::new(nameless);
    let expect = |client, name: &str, request: &str, status: u16| {
        let all = format!("{request}GET /1k.html HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
        let response = exchange(server.address, client, name, &all);
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{request} on {name}: {response}");
        assert_eq!(response.matches("HTTP/1.1 ").count(), 2, "the connection goes on: {response}");
    };
    let get = |host: &str| format!("GET /1k.html HTTP/1.1\r\nHost: {host}\r\n\r\n");
    for (host, status) in [
        ("a.test", 200),
        ("A.TEST:8443", 200),
        ("www.b.test", 421),
        ("other.test", 421),
        ("127.0.0.1", 200),
        ("[::1]:443", 200),
    ] {
        expect(&client, "a.test", &get(host), status);
        // A client without SNI may request any host.
        expect(&nameless, "a.test", &get(host), 200);
    }
    // One certificate covers both names. The body is skipped.
    expect(&client, "x.b.test", &get("y.b.test"), 200);
    expect(&client, "x.b.test", &get("b.test"), 421);
    let post = "POST /1k.html HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\n12345";
    expect(&client, "x.b.test", post, 421);
    // The target determines the host, not the field Host (RFC 9112 §3.2.2).
    expect(&client, "a.test", "GET https://other.test/1k.html HTTP/1.1\r\nHost: a.test\r\n\r\n", 421);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn plaintext_is_redirected_to_https(config: &Config) {
    let launch = Launch::new(&config.over_tls(), site::shared()).flag("--https-redirect", "on");
    let server = launch.flag("--listen", "http:127.0.0.1:0").start();
    let plain = server.listening()[0];
    // Engine naive serves one connection at a time.
    let mut wire = Wire::connect(plain);
    wire.send("GET /a%20b?c=d HTTP/1.1\r\nHost: localhost:80\r\nConnection: close\r\n\r\n");
    let response = wire.response();
    assert_eq!(response.status, 308);
    let to = format!("https://localhost:{}/a%20b?c=d", server.address.port());
    assert_eq!(response.need("location"), to);
    assert_eq!(response.field("strict-transport-security"), None);
    drop(wire);
    assert_eq!(server.get("/1k.html").status, 200);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn h98_redirects_lead_to_no_other_server(config: &Config) {
    let (server, _, plain) = start(config, &[("--https-redirect", "443")]);
    let ask = |head: &str| {
        let mut wire = Wire::connect(plain);
        wire.send(format!("{head}\r\n\r\n"));
        let response = wire.head();
        (response.status, response.field("location").map(str::to_owned))
    };
    for (head, location) in [
        ("GET / HTTP/1.1\r\nHost: A.test", "https://A.test/"),
        ("POST /form HTTP/1.1\r\nContent-Length: 0\r\nHost: a.test.:8080", "https://a.test/form"),
        ("GET //evil.test HTTP/1.0\r\nHost: www.b.test", "https://www.b.test//evil.test"),
        ("GET http://a.test?q HTTP/1.1\r\nHost: evil.test", "https://a.test/?q"),
        (
            "GET /.well-known/acme-challenge/../x HTTP/1.1\r\nHost: a.test",
            "https://a.test/.well-known/acme-challenge/../x",
        ),
    ] {
        assert_eq!(ask(head), (308, Some(location.to_owned())), "{head}");
    }
    for (head, status) in [
        ("GET / HTTP/1.1\r\nHost: evil.test", 421),
        ("GET / HTTP/1.1\r\nHost: a.test.evil.test", 421),
        ("GET / HTTP/1.1\r\nHost: x%2fa.b.test", 421),
        ("GET / HTTP/1.1\r\nHost: 127.0.0.1", 421),
        ("GET / HTTP/1.1\r\nHost:", 400),
        ("GET / HTTP/1.0", 421),
        ("GET / HTTP/1.1", 400),
        ("GET / HTTP/1.1\r\nHost: a.test@evil.test", 400),
        // Authorities request tokens without TLS.
        ("GET /.well-known/acme-challenge/abc_-9 HTTP/1.1\r\nHost: a.test", 404),
        ("OPTIONS * HTTP/1.1\r\nHost: a.test", 204),
    ] {
        assert_eq!(ask(head), (status, None), "{head}");
    }
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn strict_transport_security_is_sent_with_tls_alone(config: &Config) {
    for (hsts, expected) in [
        ("on", "max-age=31536000"),
        ("preload", "max-age=63072000; includeSubDomains; preload"),
        ("24h", "max-age=86400"),
    ] {
        let folder = TempFolder::new("hsts");
        let text = "[site.headers.set]\nStrict-Transport-Security = \"max-age=1\"\n";
        let file = folder.write("tenfold.toml", text);
        let launch = Launch::new(&config.over_tls(), site::shared()).flag("--hsts", hsts);
        let launch = launch.flag("--config", file.display());
        let server = launch.flag("--listen", "http:127.0.0.1:0").start();
        let plain = server.listening()[0];
        for request in [
            "GET /1k.html HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            "GET /absent HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            "DELETE / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n",
            "wrong\r\n\r\n",
        ] {
            let response = exchange(server.address, &new_client(), "localhost", request);
            let field = format!("\r\nStrict-Transport-Security: {expected}\r\n");
            assert!(response.contains(&field), "{request}: {response}");
            assert_eq!(response.matches("Strict-Transport-Security").count(), 1, "{response}");
        }
        let mut wire = Wire::connect(plain);
        wire.get("/absent");
        let response = wire.response();
        assert_ne!(response.field("strict-transport-security"), Some(expected));
        server.stop().unwrap_or_else(|why| panic!("{why}"));
    }
}

fn h97_one_address_begins_few_handshakes_a_second(config: &Config) {
    let launch = Launch::new(&config.over_tls(), site::shared());
    let server = launch.flag("--max-handshakes-per-address", 1).start();
    let get = || get_once(server.address, &new_client(), "localhost", "/1k.html").is_ok();
    let mut open = server.connect();
    open.get("/1k.html");
    assert_eq!(open.response().status, 200);
    let accepted = (0..100).take_while(|_| get()).count();
    assert!(accepted >= 9, "ten at once, after a pause: {accepted}");
    becomes_true(SOON, "it is counted", || server.status()["refusals"]["handshakes-of-address"] == 1);
    open.get("/1k.html");
    assert_eq!(open.response().status, 200, "an established connection goes on");
    becomes_true(SOON, "a second later there is another one", get);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}
