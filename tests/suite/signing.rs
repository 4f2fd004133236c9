//! The keys of certificates are in a separate process, which signs only handshakes.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rcgen::PublicKeyData;
use rustix::io::ioctl_fionread;
use rustix::net::{RecvFlags, SendFlags, recv, send, sockopt};
use rustix::process::Signal;
use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::process::Process;
use tenfold_tests::seal::{certificate_folder, get_once, new_client, own_key, secret_parts};
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true, eventually};
use tenfold_tests::wire::Wire;

pub(crate) const THEME: Theme = Theme {
    name: "signing",
    cases: cases![
        OwnAsRoot on DRIVERS + ANOTHER: h96_no_other_process_has_the_key;
        Own on DRIVERS + ANOTHER: h96_a_killed_signing_process_is_replaced;
        OwnAsRoot on DRIVERS: h96_only_full_handshakes_wait_until_a_stopped_signing_process_is_replaced;
        OwnAsRoot on EPOLL: h96_only_handshakes_are_signed,
            h96_no_other_process_has_the_key_of_an_internal_certificate,
            workers_have_the_keys_without_isolation;
    ],
};

/// The signing process of the newest generation.
pub(super) fn signing_process(server: &Server) -> Process {
    let number = || server.status()["signing"]["process"].as_u64();
    Process(eventually(SOON, "a signing process", number) as u32)
}

fn get(server: &Server, client: &Arc<ClientConfig>) -> std::io::Result<()> {
    let exchange = get_once(server.address, client, "localhost", "/1k.html")?;
    assert!(exchange.response.starts_with("HTTP/1.1 200 "), "{}", exchange.response);
    Ok(())
}

fn stop(server: Server) {
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn h96_no_other_process_has_the_key(config: &Config) {
    let server = Launch::new(&config.over_tls(), site::shared()).start();
    // With `fork`, the process of this connection is checked too.
    let mut wire = server.connect();
    wire.get("/1k.html");
    assert_eq!(wire.response().status, 200);
    let signer = signing_process(&server);
    let parts = secret_parts(&certificate_folder().join("key.pem"));
    assert!(signer.remembers(&parts[0]), "the search finds what is there");
    let others = server.process.with_descendants();
    assert!(others.len() > 2, "a worker serves");
    for process in others.into_iter().filter(|process| *process != signer) {
        assert!(!parts.iter().any(|part| process.remembers(part)), "process {} has the key", process.0);
        let is_worker = process != server.process;
        let opened = process.descriptors().iter().any(|target| target.ends_with("/key.pem"));
        assert!(!(is_worker && opened), "process {} can read the file of the key", process.0);
    }
    assert!(!signer.descriptors().iter().any(|target| target.ends_with("/key.pem")), "it was read");
    drop(wire);
    stop(server);
}

fn h96_no_other_process_has_the_key_of_an_internal_certificate(config: &Config) {
    let folder = TempFolder::new("internal-key");
    let state = folder.at("state");
    let launch = Launch::new(config, site::shared()).flag("--tls", "internal");
    let server = launch.flag("--tls-state", state.display()).start();
    let signer = signing_process(&server);
    let parts = |name: &str| secret_parts(&state.join("internal").join(name));
    let (key, of_root) = (parts("internal-key.pem"), parts("root-key.pem"));
    assert!(signer.remembers(&key[0]), "the search finds what is there");
    for process in server.process.with_descendants() {
        let has = |parts: &[Vec<u8>]| parts.iter().any(|part| process.remembers(part));
        assert!(process == signer || !has(&key), "process {} has the key", process.0);
        assert!(!has(&of_root), "process {} has the key of the authority", process.0);
    }
    stop(server);
}

fn workers_have_the_keys_without_isolation(config: &Config) {
    let server =
        Launch::new(&config.over_tls(), site::shared()).flag("--tls-key-isolation", "off").word("-v").start();
    get(&server, &new_client()).expect("a response");
    assert!(server.status()["signing"].is_null());
    let said = server.errors();
    assert!(said.contains("each worker has the keys in its memory"), "{said}");
    let parts = secret_parts(&certificate_folder().join("key.pem"));
    assert!(server.workers()[0].remembers(&parts[0]));
    stop(server);
}

fn h96_a_killed_signing_process_is_replaced(config: &Config) {
    let server = Launch::new(&config.over_tls(), site::shared()).start();
    get(&server, &new_client()).expect("a response");
    let first = signing_process(&server);
    let workers = server.workers();
    first.signal(Signal::KILL);
    becomes_true(SOON, "another process signs", || get(&server, &new_client()).is_ok());
    let second = signing_process(&server);
    assert_ne!(second, first);
    assert_eq!(server.status()["signing"]["replaced"], 1);
    assert_eq!(server.workers(), workers, "workers stay");
    server.expect_report("the signing process was killed by signal 9");
    // A reload starts another signing process, and the former process ends with its workers.
    server.process.signal(Signal::HUP);
    becomes_true(SOON, "the new generation serves alone", || {
        server.status()["generation"] == 2 && !second.is_running()
    });
    get(&server, &new_client()).expect("a response");
    assert_ne!(signing_process(&server), second);
    stop(server);
}

/// Handshakes that need a signature wait; everything else is served meanwhile.
fn h96_only_full_handshakes_wait_until_a_stopped_signing_process_is_replaced(config: &Config) {
    let config = config.over_tls();
    let launch = Launch::new(&config, site::shared()).flag("--listen", "http:127.0.0.1:0");
    let server = launch.start();
    let plain = server.listening()[0];
    let resumes = new_client();
    get(&server, &resumes).expect("a response");
    let mut open = [server.connect(), Wire::connect(plain)];
    let mut serves = || {
        for wire in &mut open {
            wire.get("/1k.html");
            assert!([200, 301].contains(&wire.response().status));
        }
    };
    serves();
    let signer = signing_process(&server);
    let workers = server.workers();
    signer.signal(Signal::STOP);
    becomes_true(SOON, "it has stopped", || signer.is_stopped());
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..3).map(|_| scope.spawn(|| get(&server, &new_client()))).collect();
        let asked = signer.message_sockets();
        let waits = |socket: &OwnedFd| ioctl_fionread(socket).is_ok_and(|bytes| bytes > 0);
        becomes_true(SOON, "a signature is asked for", || asked.iter().any(waits));
        serves();
        get(&server, &resumes).expect("a resumed session needs no signature");
        assert!(signer.is_stopped() && waiting.iter().all(|waiting| !waiting.is_finished()));
        for waiting in waiting {
            waiting.join().expect("no panic").expect("another process has signed");
        }
    });
    server.expect_report("hangs and is killed");
    assert_ne!(signing_process(&server), signer);
    assert_eq!(server.workers(), workers, "workers stay");
    let status = server.status();
    assert_eq!((&status["signing"]["replaced"], &status["tls"]["failed"]), (&1.into(), &0.into()));
    get(&server, &new_client()).expect("a response");
    stop(server);
}

/// The test sends requests over the socket of a worker, as compromised code could.
fn h96_only_handshakes_are_signed(config: &Config) {
    let server = Launch::new(&config.over_tls(), site::shared()).start();
    get(&server, &new_client()).expect("a response");
    let socket = message_socket(server.workers()[0]);
    let key = sha256(&own_key().subject_public_key_info());
    let ecdsa = 0x0403u16;
    let handshake = [&[b' '; 64][..], b"TLS 1.3, server CertificateVerify\0", &[7; 32]].concat();
    let answer = |key: &[u8], message: &[u8]| {
        let request = [&9u64.to_le_bytes()[..], key, &ecdsa.to_le_bytes(), message].concat();
        send(&socket, &request, SendFlags::empty()).expect("there is room");
        let mut room = [0; 2048];
        let (length, _) = recv(&socket, &mut room[..], RecvFlags::empty()).expect("an answer");
        assert_eq!(room[..8], 9u64.to_le_bytes());
        room[8..length].to_vec()
    };
    const SIGNED: u8 = 0;
    const UNKNOWN_KEY: [u8; 1] = [1];
    const REFUSED: [u8; 1] = [2];
    let signed = answer(&key, &handshake);
    assert!(signed[0] == SIGNED && signed.len() > 64, "{signed:?}");
    let client = [&[b' '; 64][..], b"TLS 1.3, client CertificateVerify\0", &[7; 32]].concat();
    for message in [&b"{\"alg\":\"ES256\"}.payload"[..], &[], &[0x30; 130], &client, &handshake[1..]] {
        assert_eq!(answer(&key, message), REFUSED, "{message:?}");
    }
    assert_eq!(answer(&[0; 32], &handshake), UNKNOWN_KEY);
    // An invalid request gets no answer, and the process continues.
    send(&socket, &[1, 2, 3], SendFlags::empty()).expect("there is room");
    assert_eq!(answer(&key, &handshake)[0], SIGNED);
    get(&server, &new_client()).expect("a response");
    stop(server);
}

/// The socket to the signing process: the only socket of a worker with message boundaries.
fn message_socket(process: Process) -> OwnedFd {
    let socket = process.message_sockets().into_iter().next().expect("a worker has such a socket");
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(Duration::from_secs(20)))
        .expect("it takes a timeout");
    socket
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    let suite = TLS13_AES_128_GCM_SHA256.tls13().expect("a suite of TLS 1.3");
    suite.common.hash_provider.hash(bytes).as_ref().to_vec()
}
