//! Early data of a client with another server's ticket.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::version::TLS13;
use rustls::{AlertDescription, ClientConfig, Error, HandshakeKind, ServerConfig};
use tenfold_http::script::Script;

use super::{Fixture, TestClient, request};
use crate::certificates::generate;
use crate::config::handshake::{client, handshake};

/// Returns the settings of a client with a ticket of another server, which accepts early data.
fn client_of_another_server() -> Arc<ClientConfig> {
    let pair = generate::pair(&["a.test"], &rcgen::PKCS_ECDSA_P256_SHA256);
    let key = PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes()).expect("a key");
    let builder = ServerConfig::builder().with_no_client_auth();
    let mut other = builder.with_single_cert(vec![pair.certificate], key).expect("the key matches");
    other.max_early_data_size = 1 << 16;
    other.alpn_protocols = vec![b"http/1.1".to_vec()];
    let mut config = (*client(&[&TLS13])).clone();
    config.enable_early_data = true;
    let config = Arc::new(config);
    for _ in 0..8 {
        handshake(&config, &Arc::new(other.clone())).expect("a ticket");
    }
    config
}

/// Connects with `records` records of `bytes` bytes of early data. The client's first bytes arrive in two
/// parts, split at `split`. Returns the client, and the number of its first bytes.
fn connect(fixture: &Fixture, records: usize, bytes: usize, split: usize) -> (TestClient, usize) {
    let client = TestClient::named(&client_of_another_server(), "a.test");
    client.connection(|connection| {
        for _ in 0..records {
            let mut early = connection.early_data().expect("the ticket allows it");
            early.write_all(&vec![b'x'; bytes]).expect("there is room");
        }
    });
    let mut first = client.wire();
    let rest = first.split_off(split.min(first.len()));
    let length = first.len() + rest.len();
    let script = Script::new().sends(first).waits(Duration::from_secs(1)).sends(rest);
    let outcome = fixture.play(script.responds(client.answers(9, &request("/"))));
    client.read(&outcome.sent);
    (client, length)
}

#[test]
fn early_data_for_another_server_is_skipped_up_to_its_bound() {
    let fixture = Fixture::new(&TLS13);
    // A record adds 17 bytes, which also count.
    for (records, bytes) in [(1, 1024), (1, 8193), (1, 16_000), (2, 8000), (10, 100), (900, 1), (16, 1007)] {
        let (client, _) = connect(&fixture, records, bytes, usize::MAX);
        assert_eq!((client.small_answers(), client.error()), (1, None), "{records} records of {bytes} bytes");
        assert_eq!(client.connection(|client| client.handshake_kind()), Some(HandshakeKind::Full));
    }
    for (records, bytes) in [(1, 16_384), (16, 1008), (911, 1)] {
        let (client, _) = connect(&fixture, records, bytes, usize::MAX);
        let alert = Error::AlertReceived(AlertDescription::BadRecordMac);
        assert_eq!(client.error(), Some(alert), "{records} records of {bytes} bytes");
    }
}

#[test]
fn skipped_early_data_may_be_split_anywhere() {
    let fixture = Fixture::new(&TLS13);
    let (_, length) = connect(&fixture, 12, 20, 0);
    // In steps of a prime number, to shorten the run and vary the positions.
    for at in (1..length).step_by(11) {
        let (client, _) = connect(&fixture, 12, 20, at);
        assert_eq!((client.small_answers(), client.error()), (1, None), "split at {at}");
    }
}
