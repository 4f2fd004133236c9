//! Handshakes signed by another process.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustls::ServerConfig;
use rustls::sign::SingleCertAndKey;
use rustls::version::{TLS12, TLS13};

use super::{Fixture, TestClient, request};
use crate::certificates::chain::Chain;
use crate::certificates::{generate, key};
use crate::config::handshake::client;
use crate::connection::{HandshakeResult, TlsServer, prepare};
use crate::signing::keys::{HeldKeys, tell_lost};
use crate::signing::remote::{AnswerPath, SigningClient};

#[test]
fn a_handshake_begins_again_if_the_process_ends_that_had_its_request() {
    let pair = generate::pair(&["localhost"], &rcgen::PKCS_ECDSA_P256_SHA256);
    let chain = Chain::parse(Path::new("a.pem"), pair.certificate_pem.as_bytes()).expect("a chain");
    let key = key::parse(Path::new("key.pem"), pair.key_pem.as_bytes()).expect("a key");
    let held = HeldKeys::new([key]);
    for version in [&TLS13, &TLS12] {
        let (near, far) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .expect("a pair of sockets");
        let far = UnixDatagram::from(far);
        let patience = Duration::from_secs(20);
        let signing = SigningClient::new([near.into()], patience, AnswerPath::Pair).expect("a socket");
        let certified = chain.with_key(signing.key(chain.facts()).expect("a key for TLS"));
        let builder = ServerConfig::builder().with_no_client_auth();
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        prepare(&mut config);
        let fixture = Fixture::new(version);
        let results = fixture.results.clone();
        let tls = TlsServer::new(config.into(), &[true], move |result| {
            results.lock().expect("no panic").push(result);
        });
        let fixture = Fixture {
            tls: tls.with_signer(move || signing.is_late()),
            client: client(&[version]),
            ..fixture
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                far.recv(&mut [0; 4096]).expect("a request");
                tell_lost(&far);
                held.serve(&far).expect("the socket works");
            });
            let client = TestClient::new(&fixture.client);
            let script = client.handshakes().responds(client.answers(0, &request("/")));
            let outcome = fixture.play(script);
            client.read(&outcome.sent);
            assert_eq!((client.small_answers(), client.error()), (1, None), "{version:?}");
            assert_eq!(*fixture.results.lock().expect("no panic"), [HandshakeResult::Full]);
            drop(fixture);
        });
    }
}
