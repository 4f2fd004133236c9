//! `tenfold bench https://…`: against Tenfold, and against peers of rustls, some of them faulty.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rcgen::CertifiedKey;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion};
use serde_json::{Value, json};
use tenfold_engine::Engine;
use tenfold_tests::config::Config;
use tenfold_tests::launch::Launch;
use tenfold_tests::seal::certificate_folder;
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};

use super::peer::{FaultyServer, ok};
use super::{expect_code, measured, number, said, undisturbed};

type SealedStream = StreamOwned<ServerConnection, TcpStream>;

fn trusted() -> String {
    certificate_folder().join("cert.pem").display().to_string()
}

fn server() -> (Server, String) {
    let server = Launch::new(&Config::of(Engine::Epoll).over_tls(), site::shared()).start();
    let url = format!("https://localhost:{}/1k.html", server.address.port());
    (server, url)
}

/// A server that passes each head and the length of its body to a function.
fn sealed(
    version: &'static SupportedProtocolVersion,
    answer: impl Fn(&mut SealedStream, &str, usize) -> bool + Send + Sync + 'static,
) -> FaultyServer {
    let read = |name: &str| fs::read(certificate_folder().join(name)).expect("the file of the certificate");
    let chain = vec![CertificateDer::from_pem_slice(&read("cert.pem")).expect("a certificate")];
    let key = PrivateKeyDer::from_pem_slice(&read("key.pem")).expect("a key");
    let config = ServerConfig::builder_with_protocol_versions(&[version])
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("key and certificate match");
    let config = Arc::new(config);
    FaultyServer::accept("127.0.0.1:0", move |stream| {
        let connection = ServerConnection::new(config.clone()).expect("the configuration is legal");
        let mut stream = StreamOwned::new(connection, stream);
        let mut received = Vec::new();
        let mut buffer = [0; 16 << 10];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            received.extend_from_slice(&buffer[..count]);
            while let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&received[..end + 4]).into_owned();
                let field = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
                let length: usize = field.map_or(0, |value| value.parse().expect("a length"));
                if received.len() < end + 4 + length {
                    break;
                }
                received.drain(..end + 4 + length);
                if !answer(&mut stream, &head, length) {
                    return;
                }
            }
        }
    })
}

#[track_caller]
fn count(run: &Value, name: &str) -> u64 {
    run["tls"][name].as_u64().unwrap_or_else(|| panic!("no {name} in {run:#}"))
}

pub(super) fn https_handshakes_are_counted_and_timed() {
    let (server, url) = server();
    let full =
        ["-n", "300", "-c", "6", "-t", "2", "--requests-per-connection", "1", "--expect-length", "1024"];
    let trusted = trusted();
    let words = [&full[..], &["--ca", &trusted, &url]].concat();
    let at_server = || {
        let status = server.status();
        ["full", "resumed", "failed"].map(|name| number(&status, &format!("/tls/{name}")) as u64)
    };

    let run = measured(&[&words[..], &["--tls-resume", "off"]].concat());
    assert_eq!((number(&run, "/answers"), &run["errors"]), (300.0, &json!({})), "{run:#}");
    assert_eq!((count(&run, "full"), count(&run, "resumed"), count(&run, "truncated")), (300, 0, 0));
    assert_eq!(at_server(), [300, 0, 0]);
    assert_eq!(run["tls"]["ciphers"], json!({ "TLSv1.3 TLS_AES_128_GCM_SHA256": 300 }), "{run:#}");
    for times in ["connect_us", "handshake_us"] {
        assert_eq!(number(&run, &format!("/{times}/count")), 300.0, "{run:#}");
    }
    // A request is due before its handshake, and begins after it.
    let mean = |name: &str| number(&run, &format!("/{name}/mean"));
    assert!(mean("latency_us") >= mean("uncorrected_us") + 0.9 * mean("handshake_us"), "{run:#}");

    // Each of six connections begins without a ticket; each later one has one.
    let run = measured(&words);
    assert_eq!((number(&run, "/answers"), &run["errors"]), (300.0, &json!({})), "{run:#}");
    assert!((1..=6).contains(&count(&run, "full")), "{run:#}");
    assert_eq!(count(&run, "full") + count(&run, "resumed"), 300, "{run:#}");
    assert_eq!(at_server(), [300 + count(&run, "full"), count(&run, "resumed"), 0]);

    let words = [&["-v"][..], &words].concat();
    let output = expect_code(0, &words, &["  TLS  ", " resumed; TLSv1.3 TLS_", "    handshake "]);
    assert!(
        said(&output).contains("I/O by epoll: io_uring here does not support https"),
        "{}",
        said(&output)
    );
}

pub(super) fn https_serves_every_shape_of_load() {
    let (server, url) = server();
    let trusted = trusted();
    for words in [
        &["-c", "4", "--pipeline", "16"][..],
        &["-c", "4", "--http", "1.0"],
        &["-c", "4", "--rate", "2000", "-t", "2"],
        &["-c", "4", "--processes", "2", "--requests-per-connection", "10"],
        &["-c", "4", "--join-ack", "--requests-per-connection", "1"],
        &["-c", "4", "--completion", "end"],
    ] {
        let run = measured(&[&["-n", "200", "--ca", &trusted, &url], words].concat());
        assert_eq!((number(&run, "/answers"), &run["errors"]), (200.0, &json!({})), "{words:?}: {run:#}");
    }
    // Records such as tickets do not make an idle connection send requests.
    let words = ["-n", "200", "-c", "2", "--idle", "5", "--pipeline", "4", "--ca", &trusted, &url];
    let run = measured(&words);
    assert_eq!((number(&run, "/answers"), number(&run, "/connections/idle_held")), (200.0, 5.0), "{run:#}");
    assert_eq!((count(&run, "full"), &run["errors"]), (7, &json!({})), "{run:#}");
    // Ten steps a second of 100 bytes: more than a second for a response, and at least a step for a request.
    for (kind, most) in [("--slow-readers", 4.0), ("--slow-writers", 41.0)] {
        let words = ["-d", "4s", "-c", "1", kind, "1", "--slow-rate", "1000", "--ca", &trusted, &url];
        let run = measured(&words);
        let slow = number(&run, "/connections/slow_answers");
        assert!((1.0..=most).contains(&slow), "{kind}: {slow}");
        assert_eq!(run["errors"], json!({}), "{kind}: {run:#}");
    }
    drop(server);
}

pub(super) fn https_moves_long_bodies_both_ways() {
    let folder = TempFolder::new("bench-https");
    let body = folder.write("body", "0123456789".repeat(100_000)).display().to_string();
    let peer = sealed(&rustls::version::TLS13, |stream, _, length| {
        assert_eq!(length, 1_000_000);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 3 * length);
        stream.write_all(head.as_bytes()).is_ok() && stream.write_all(&vec![b'x'; 3 * length]).is_ok()
    });
    let url = format!("https://localhost:{}/", peer.address.port());
    let words = ["-n", "20", "-c", "2", "-m", "POST", "--body", &body, "--expect-length", "3000000"];
    let run = measured(&[&words[..], &["--ca", &trusted(), &url]].concat());
    assert_eq!((number(&run, "/answers"), &run["errors"]), (20.0, &json!({})), "{run:#}");
}

pub(super) fn https_refuses_what_it_cannot_trust() {
    let (_server, url) = server();
    let folder = TempFolder::new("bench-https-other");
    let CertifiedKey { cert, .. } =
        rcgen::generate_simple_self_signed(["other".to_owned()]).expect("a certificate can be made");
    let other = folder.write("other.pem", cert.pem()).display().to_string();
    let empty = folder.write("empty.pem", "nothing").display().to_string();
    let trusted = trusted();
    for (words, says) in [
        (&["--ca", &other][..], &["is not trusted: no trusted certificate has signed it", "--insecure"][..]),
        (&[], &["--ca FILE", "--insecure"]),
        (
            &["--ca", &trusted, "--sni", "example.org"],
            &["is for localhost, not for example.org", "--insecure"],
        ),
        (&["--ca", &empty], &["it has no CERTIFICATE section"]),
        (&["--ca", "/no/such/file"], &["cannot use --ca /no/such/file"]),
    ] {
        let output = expect_code(1, &[&["-n", "5", &url], words].concat(), says);
        assert_eq!(said(&output).trim_end().lines().count(), 1, "{words:?}: {}", said(&output));
    }
    expect_code(0, &["-n", "5", "--insecure", &url], &["5 responses OK"]);
    let by_address = url.replace("localhost", "127.0.0.1");
    expect_code(1, &["-n", "5", "--ca", &trusted, &by_address], &["is for localhost, not for 127.0.0.1"]);
    expect_code(0, &["-n", "5", "--ca", &trusted, "--sni", "localhost", &by_address], &["5 responses OK"]);
}

pub(super) fn https_without_tls_behind_it_is_explained() {
    let server = Launch::new(&Config::of(Engine::Epoll), site::shared()).start();
    let hangs_up = FaultyServer::accept("127.0.0.1:0", drop);
    let noise = FaultyServer::accept("127.0.0.1:0", |mut stream| {
        let _ = stream.write_all(b"SSH-2.0-OpenSSH\r\n").and_then(|()| stream.read(&mut [0; 1024]));
    });
    let silent = FaultyServer::start(|stream, _| ok(stream, "never"));
    for (address, why) in [
        (server.address, "the server sent plain HTTP instead of TLS; use http://"),
        (hangs_up.address, "during the TLS handshake"),
        (noise.address, "the server does not use TLS here"),
        (silent.address, "no response within 0.3 s"),
    ] {
        let url = format!("https://{address}/");
        let timeout = if address == silent.address { "300ms" } else { "20s" };
        let words = ["-n", "5", "-c", "1", "--insecure", "--timeout", timeout, &url];
        let output = expect_code(1, &words, &[&format!("cannot connect to {address}: ")]);
        let reset = address == hangs_up.address && said(&output).contains("reset");
        assert!(said(&output).contains(why) || reset, "{why}: {}", said(&output));
    }
}

pub(super) fn https_truncation_is_an_error_and_counted() {
    let peer = sealed(&rustls::version::TLS13, |stream, head, _| {
        let answer: &[u8] = match head {
            _ if head.contains("/to-the-end") => b"HTTP/1.1 200 OK\r\n\r\nabcde",
            _ if head.contains("/cut") => b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabcde",
            _ => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde",
        };
        let _ = stream.write_all(answer);
        if head.contains("/orderly") {
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
        // Unread bytes would make the kernel reset the connection.
        let _ = stream.sock.shutdown(std::net::Shutdown::Write);
        let _ = stream.sock.read(&mut [0; 1024]);
        false
    });
    let trusted = trusted();
    let run = |path: &str| {
        let url = format!("https://localhost:{}{path}", peer.address.port());
        measured(&["-n", "20", "-c", "2", "--expect-length", "5", "--ca", &trusted, &url])
    };
    let orderly = run("/to-the-end/orderly");
    assert_eq!((number(&orderly, "/answers"), count(&orderly, "truncated")), (20.0, 0), "{orderly:#}");
    for path in ["/to-the-end", "/cut"] {
        let truncated = run(path);
        assert_eq!(number(&truncated, "/errors/truncated"), 20.0, "{path}: {truncated:#}");
        assert_eq!((number(&truncated, "/answers"), count(&truncated, "truncated")), (0.0, 20), "{path}");
    }
    let closed = run("/cut/orderly");
    assert_eq!((number(&closed, "/errors/closed"), count(&closed, "truncated")), (20.0, 0), "{closed:#}");
    // Between responses it is no error. The rate leaves time for the end to arrive before the next request is sent.
    let url = format!("https://localhost:{}/", peer.address.port());
    let paced = ["-n", "20", "-c", "2", "--rate", "10", "--expect-length", "5", "--ca", &trusted, &url];
    let between = undisturbed(100_000.0, || measured(&paced));
    assert_eq!((number(&between, "/answers"), &between["errors"]), (20.0, &json!({})), "{between:#}");
    assert!(count(&between, "truncated") > 0, "{between:#}");
}

pub(super) fn https_speaks_tls_1_2_too() {
    let peer = sealed(&rustls::version::TLS12, |stream, _, _| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").is_ok()
    });
    let url = format!("https://localhost:{}/", peer.address.port());
    let run = measured(&["-n", "50", "-c", "1", "--requests-per-connection", "5", "--ca", &trusted(), &url]);
    assert_eq!((number(&run, "/answers"), &run["errors"]), (50.0, &json!({})), "{run:#}");
    assert_eq!((count(&run, "full"), count(&run, "resumed")), (1, 9), "{run:#}");
    assert!(run["tls"]["ciphers"].to_string().contains("TLSv1.2 TLS_ECDHE_"), "{run:#}");
}
