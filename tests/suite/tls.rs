//! TLS beyond the layer: the log, sessions, and certificates.

use std::cmp::Reverse;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustix::process::Signal;
use rustls::crypto::aws_lc_rs;
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, ClientConfig, ClientConnection, RootCertStore};
use serde_json::Value;
use tenfold_engine::{Engine, Topology};
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{Launch, tenfold};
use tenfold_tests::seal::{SecureExchange, client_of, get_once, new_client, trusted_roots};
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::strace::Tracer;
use tenfold_tests::time::{SOON, becomes_true};

pub(crate) const THEME: Theme = Theme {
    name: "tls",
    cases: cases![
        Own on DRIVERS: a_line_of_json_has_the_result_of_the_handshake, the_server_chooses_the_cipher;
        Own on DRIVERS + ANOTHER: a_session_is_resumed_also_after_a_reload,
            a_hello_that_is_too_long_gets_an_alert;
        Own on ENGINES: hellos_that_come_at_once_are_all_answered,
            a_client_that_closes_before_a_request_is_answered;
        Own on EPOLL, Measure: a_connection_for_one_request_sends_twice;
        Own on EPOLL + URING: certificates_are_chosen_by_name_and_a_reload_replaces_them;
        Own on EPOLL: wrong_certificates_are_told, the_modern_preset_refuses_tls_1_2;
        Own on WORKERS + ANOTHER: a_session_of_one_worker_is_resumed_in_another;
    ],
};

#[track_caller]
fn get(server: &Server, client: &Arc<ClientConfig>) -> SecureExchange {
    let exchange = get_once(server.address, client, "localhost", "/1k.html")
        .unwrap_or_else(|error| panic!("{error}; the server said:\n{}", server.errors()));
    assert!(exchange.response.starts_with("HTTP/1.1 200 "), "{}", exchange.response);
    exchange
}

fn a_line_of_json_has_the_result_of_the_handshake(config: &Config) {
    let encrypted = config.over_tls();
    let server = Launch::new(&encrypted, site::shared()).flag("--log-format", "json").start();
    get(&server, &new_client());
    becomes_true(SOON, "a line", || server.log().lines().count() == 1);
    let line: Value = serde_json::from_str(&server.log()).expect("it is JSON");
    assert_eq!(line["tls_version"], "TLSv1.3");
    assert_eq!(line["tls_cipher"], "TLS_AES_128_GCM_SHA256");
    assert_eq!((&line["tls_server_name"], &line["tls_alpn"]), (&"localhost".into(), &"http/1.1".into()));
    assert_eq!(line["tls_resumed"], false);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
    let plain = Launch::new(config, site::shared()).flag("--log-format", "json").start();
    plain.get("/1k.html");
    becomes_true(SOON, "a line", || plain.log().lines().count() == 1);
    assert!(!plain.log().contains("tls"), "{}", plain.log());
}

/// The client prefers the suites of each version in the opposite order.
fn the_server_chooses_the_cipher(config: &Config) {
    use CipherSuite as C;
    let server = Launch::new(&config.over_tls(), site::shared()).start();
    let by_version = [
        [C::TLS13_AES_128_GCM_SHA256, C::TLS13_AES_256_GCM_SHA384, C::TLS13_CHACHA20_POLY1305_SHA256],
        [
            C::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            C::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
            C::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        ],
    ];
    // Offers the last of these first.
    let chosen = |suites: &[CipherSuite]| {
        let mut provider = aws_lc_rs::default_provider();
        provider.cipher_suites.retain(|suite| suites.contains(&suite.suite()));
        provider
            .cipher_suites
            .sort_by_key(|suite| Reverse(suites.iter().position(|own| *own == suite.suite())));
        let builder =
            ClientConfig::builder_with_provider(provider.into()).with_safe_default_protocol_versions();
        let roots = trusted_roots();
        let config =
            builder.expect("they have a version").with_root_certificates(roots).with_no_client_auth();
        let name = "localhost".try_into().expect("a name");
        let mut client = ClientConnection::new(config.into(), name).expect("the configuration is legal");
        let mut stream = TcpStream::connect(server.address).expect("it listens");
        stream.set_read_timeout(Some(SOON)).expect("a timeout");
        client.complete_io(&mut stream).expect("a handshake");
        client.negotiated_cipher_suite().expect("the handshake is over").suite()
    };
    for suites in &by_version {
        assert_eq!(chosen(suites), suites[0]);
        assert_eq!(chosen(&suites[1..]), suites[1]);
        assert_eq!(chosen(&suites[2..]), suites[2]);
    }
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn a_client_that_closes_before_a_request_is_answered(config: &Config) {
    let server = Launch::new(&config.over_tls(), site::shared()).flag("--head-timeout", "1h").start();
    for version in [&TLS12, &TLS13] {
        let builder = ClientConfig::builder_with_protocol_versions(&[version]);
        let client = builder.with_root_certificates(trusted_roots()).with_no_client_auth();
        let name = "localhost".try_into().expect("a name");
        let mut client = ClientConnection::new(client.into(), name).expect("the configuration is legal");
        let mut stream = TcpStream::connect(server.address).expect("it listens");
        stream.set_read_timeout(Some(SOON)).expect("a timeout");
        client.complete_io(&mut stream).expect("a handshake");
        client.send_close_notify();
        let mut tls = rustls::Stream::new(&mut client, &mut stream);
        tls.flush().expect("there is room");
        // The end of the connection without a closing record would be an error.
        assert_eq!(tls.read(&mut [0]).unwrap_or_else(|error| panic!("{version:?}: {error}")), 0);
        assert_eq!(stream.read(&mut [0]).expect("an end"), 0, "{version:?}");
    }
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn handshakes(server: &Server, kind: &str) -> u64 {
    server.status()["tls"][kind].as_u64().expect("a count")
}

fn a_session_is_resumed_also_after_a_reload(config: &Config) {
    let server = Launch::new(&config.over_tls(), site::shared()).start();
    let client = new_client();
    assert!(!get(&server, &client).resumed, "there is no session yet");
    assert!(get(&server, &client).resumed, "a second connection");
    server.process.signal(Signal::HUP);
    becomes_true(SOON, "the new workers serve and the old ones are gone", || {
        let status = server.status();
        let workers = status["workers"].as_array().expect("a list").clone();
        status["generation"] == 2 && workers.iter().all(|worker| worker["generation"] == 2)
    });
    assert!(get(&server, &client).resumed, "after a reload");
    becomes_true(SOON, "handshakes are counted", || {
        (handshakes(&server, "full"), handshakes(&server, "resumed")) == (1, 2)
    });
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// A continued worker finds all hellos in one tick, which allows fewer handshake steps.
fn hellos_that_come_at_once_are_all_answered(config: &Config) {
    const COUNT: usize = 30;
    let server = Launch::new(&config.over_tls(), site::shared()).start();
    let workers = server.workers();
    workers.iter().for_each(|worker| worker.signal(Signal::STOP));
    becomes_true(SOON, "the workers have stopped", || workers.iter().all(|worker| worker.is_stopped()));
    let begun: Vec<_> = (0..COUNT)
        .map(|_| {
            let name = "localhost".try_into().expect("a name");
            let mut client = ClientConnection::new(new_client(), name).expect("the configuration is legal");
            let mut stream = TcpStream::connect(server.address).expect("it listens");
            stream.set_read_timeout(Some(SOON)).expect("a timeout");
            client.write_tls(&mut stream).expect("there is room");
            (client, stream)
        })
        .collect();
    workers.iter().for_each(|worker| worker.signal(Signal::CONT));
    for (number, (mut client, mut stream)) in begun.into_iter().enumerate() {
        let mut tls = rustls::Stream::new(&mut client, &mut stream);
        let request = b"GET /1k.html HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        tls.write_all(request).unwrap_or_else(|error| panic!("connection {number}: {error}"));
        let mut response = Vec::new();
        tls.read_to_end(&mut response).unwrap_or_else(|error| panic!("connection {number}: {error}"));
        assert!(response.starts_with(b"HTTP/1.1 200 "), "connection {number}");
    }
    becomes_true(SOON, "handshakes are counted", || handshakes(&server, "full") == COUNT as u64);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The first send has the server's part of the handshake, the second has tickets, response and closing record. The
/// request arrives with the client's last message.
fn a_connection_for_one_request_sends_twice(config: &Config) {
    let server = Launch::new(&config.over_tls(), site::shared()).start();
    get(&server, &new_client());
    let tracer = Tracer::attach(&server.workers());
    let name = "localhost".try_into().expect("a name");
    let mut client = ClientConnection::new(new_client(), name).expect("a client");
    let mut stream = TcpStream::connect(server.address).expect("it listens");
    stream.set_read_timeout(Some(SOON)).expect("a timeout");
    client.write_tls(&mut stream).expect("there is room");
    while client.is_handshaking() {
        assert!(client.read_tls(&mut stream).expect("an answer") > 0, "a whole one");
        client.process_new_packets().expect("the answer is right");
    }
    let request = b"GET /1k.html HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    client.writer().write_all(request).expect("there is room");
    let mut bytes = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut bytes).expect("a vector grows");
    }
    stream.write_all(&bytes).expect("the server reads");
    let mut response = Vec::new();
    rustls::Stream::new(&mut client, &mut stream).read_to_end(&mut response).expect("an orderly end");
    assert!(response.starts_with(b"HTTP/1.1 200 "));
    let calls = tracer.detach();
    // The records of the handshake and of data; the request to the signing process is a write too.
    let is_send = |line: &&String| {
        line.contains(" write(") && ["\"\\26\\3", "\"\\27\\3"].iter().any(|start| line.contains(start))
    };
    assert_eq!(calls.lines.iter().filter(is_send).count(), 2, "{:?}", calls.lines);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn a_hello_that_is_too_long_gets_an_alert(config: &Config) {
    const DECODE_ERROR: [u8; 7] = [21, 3, 3, 0, 2, 2, 50];
    let server = Launch::new(&config.over_tls(), site::shared()).start();
    // A message of 60,000 bytes, in records of 16 KiB: more than a connection holds.
    let message = [&[1, 0, 0xea, 0x60, 3, 3][..], &[7; 3 * 16_384 - 6]].concat();
    let mut stream = TcpStream::connect(server.address).expect("it listens");
    stream.set_read_timeout(Some(SOON)).expect("a timeout");
    for content in message.chunks(16_384) {
        stream.write_all(&[&[22, 3, 1, 64, 0][..], content].concat()).expect("the server reads on");
    }
    let mut answer = Vec::new();
    stream.shutdown(Shutdown::Write).expect("it is connected");
    stream.read_to_end(&mut answer).expect("an orderly end");
    assert_eq!(answer, DECODE_ERROR);
    becomes_true(SOON, "it is counted", || handshakes(&server, "failed") == 1);
    get(&server, &new_client());
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The kernel, or a queue, chooses the worker of a connection: clients connect at the same time until all workers
/// have served some of them. With a queue, the accepting thread is listed too, and serves none.
fn a_session_of_one_worker_is_resumed_in_another(config: &Config) {
    const CLIENTS: usize = 4;
    let launch = Launch::new(&config.over_tls(), site::shared());
    // The kernel gives each connection of a shared socket to the ring that has waited longest. A ring with a multishot
    // accept stays the first.
    let in_turn = config.engine == Engine::Uring && config.topology == Topology::Threads;
    let server = if in_turn { launch.flag("--accept", "one") } else { launch }.start();
    let clients: Vec<_> = (0..CLIENTS).map(|_| new_client()).collect();
    clients.iter().for_each(|client| assert!(!get(&server, client).resumed, "there is no session yet"));
    let mut count = 0;
    becomes_true(SOON, "every worker serves", || {
        count += CLIENTS * 6;
        std::thread::scope(|scope| {
            for client in &clients {
                let server = &server;
                scope.spawn(move || (0..6).for_each(|_| assert!(get(server, client).resumed)));
            }
        });
        let status = server.status();
        let workers = status["workers"].as_array().expect("a list");
        let serving = |worker: &&Value| worker["requests"].as_u64() > Some(CLIENTS as u64);
        workers.iter().filter(serving).count() == config.workers()
    });
    becomes_true(SOON, "handshakes are counted", || handshakes(&server, "resumed") == count as u64);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// Writes a pair for `name`, valid from one year to another, to `FILE.pem` and `FILE-key.pem`. Returns the certificate.
pub(crate) fn write_pair(folder: &TempFolder, file: &str, name: &str, years: (i32, i32)) -> Vec<u8> {
    let key = KeyPair::generate().expect("a key can be made");
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    params.not_before = rcgen::date_time_ymd(years.0, 1, 1);
    params.not_after = rcgen::date_time_ymd(years.1, 1, 1);
    let certificate = params.self_signed(&key).expect("a certificate can be made");
    folder.write(&format!("{file}.pem"), certificate.pem());
    folder.write(&format!("{file}-key.pem"), key.serialize_pem());
    certificate.der().to_vec()
}

/// A client that trusts these certificates.
pub(crate) fn trusting(certificates: &[&Vec<u8>]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add((*certificate).clone().into()).expect("a certificate");
    }
    client_of(Arc::new(roots))
}

pub(crate) const VALID: (i32, i32) = (2020, 4000);

fn certificates_are_chosen_by_name_and_a_reload_replaces_them(config: &Config) {
    let folder = TempFolder::new("pairs");
    let first = write_pair(&folder, "a", "a.test", VALID);
    let second = write_pair(&folder, "b", "b.test", VALID);
    let text = "tls-certificate = [\"a.pem\", \"b.pem\"]\ntls-key = [\"a-key.pem\", \"b-key.pem\"]\n";
    let file = folder.write("tenfold.toml", text);
    let server = Launch::new(config, site::shared()).flag("--config", file.display()).start();
    let presented = |trusted: &[&Vec<u8>], name: &str| {
        get_once(server.address, &trusting(trusted), name, "/1k.html").map(|exchange| exchange.certificate)
    };
    let both = [&first, &second];
    assert_eq!(presented(&both, "a.test").expect("a response"), first);
    assert_eq!(presented(&both, "b.test").expect("a response"), second);
    // The first certificate is the default, which this client rejects.
    assert!(presented(&both, "c.test").is_err());
    let said = server.errors();
    let shown =
        |name: &str, file: &str| format!("{name}, expires 4000-01-01 ({})", folder.at(file).display());
    let both_shown = format!("{}; {}", shown("a.test", "a.pem"), shown("b.test", "b.pem"));
    assert!(said.contains(&both_shown), "{said}");

    let third = write_pair(&folder, "b", "b.test", VALID);
    server.process.signal(Signal::HUP);
    becomes_true(SOON, "the new certificate", || presented(&[&third], "b.test").is_ok());
    // The key of another certificate.
    folder.write("b-key.pem", std::fs::read(folder.at("a-key.pem")).expect("our own file"));
    let before = server.errors().len();
    server.process.signal(Signal::HUP);
    becomes_true(SOON, "an error", || {
        server.errors()[before..].contains("the old configuration stays in use")
    });
    let said = server.errors()[before..].to_owned();
    assert!(said.contains("does not belong to certificate"), "{said}");
    assert_eq!(presented(&[&third], "b.test").expect("the old one is kept"), third);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn wrong_certificates_are_told(_: &Config) {
    let folder = TempFolder::new("wrong-pairs");
    folder.write("site/index.html", "here");
    write_pair(&folder, "a", "a.test", VALID);
    write_pair(&folder, "old", "old.test", (2000, 2001));
    write_pair(&folder, "early", "early.test", (3000, 3001));
    let check = |certificates: &str, keys: &str, rest: &str| {
        let text = format!(
            "listen = \"127.0.0.1:0\"\nroot = \"site\"\ntls-certificate = {certificates}\ntls-key = {keys}\n{rest}"
        );
        let file = folder.write("tenfold.toml", text).display().to_string();
        let output = tenfold(&["check", &file]);
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let warned = check(
        "[\"old.pem\", \"early.pem\"]",
        "[\"old-key.pem\", \"early-key.pem\"]",
        "[[host]]\nname = [\"other.test\", \"OLD.test\"]\nroot = \"site\"\n",
    );
    assert!(warned.0, "warnings are no errors: {}", warned.1);
    for word in
        ["expired on 2001-01-01", "is not valid before 3000-01-01", "no certificate covers other.test: "]
    {
        assert!(warned.1.contains(word), "{word}: {}", warned.1);
    }
    assert!(!warned.1.contains("covers old.test"), "{}", warned.1);
    for (certificates, keys, word) in [
        ("\"a.pem\"", "\"old-key.pem\"", "does not belong to certificate"),
        ("\"a.pem\"", "[\"a-key.pem\", \"old-key.pem\"]", "names 1 files and tls-key 2"),
        ("\"a-key.pem\"", "\"a-key.pem\"", "it has no CERTIFICATE section"),
    ] {
        let (accepted, said) = check(certificates, keys, "");
        assert!(!accepted && said.contains(word), "{word}: {said}");
    }
}

fn the_modern_preset_refuses_tls_1_2(config: &Config) {
    let folder = TempFolder::new("presets");
    let certificate = write_pair(&folder, "a", "a.test", VALID);
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone().into()).expect("a certificate");
    let old = ClientConfig::builder_with_protocol_versions(&[&rustls::version::TLS12]);
    let old = Arc::new(old.with_root_certificates(roots).with_no_client_auth());
    for (preset, accepted) in [("intermediate", true), ("modern", false)] {
        let server = Launch::new(config, site::shared())
            .flag("--tls-certificate", folder.at("a.pem").display())
            .flag("--tls-key", folder.at("a-key.pem").display())
            .flag("--tls-preset", preset)
            .start();
        let works = |client| get_once(server.address, client, "a.test", "/1k.html").is_ok();
        assert_eq!(works(&old), accepted, "{preset}");
        assert!(works(&trusting(&[&certificate])), "{preset}");
        server.stop().unwrap_or_else(|why| panic!("{why}"));
    }
}
