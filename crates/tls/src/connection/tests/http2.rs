//! HTTP/2 above the layer.

use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::version::TLS13;

use super::{Fixture, TestClient, pattern};

/// The preface, and SETTINGS without a setting (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// HEADERS with `GET https://localhost/16384`, on stream 1 (RFC 7541 §6).
const REQUEST: &[u8] = b"\0\0\x15\x01\x05\0\0\0\x01\x82\x87\x04\x06/16384\x41\x09localhost";
/// WINDOW_UPDATE of the connection by one byte, which has no answer.
const WINDOW_UPDATE: &[u8] = b"\0\0\x04\x08\0\0\0\0\0\0\0\0\x01";

/// The layer has sealed the output, and the driver has not sent all of it. If the connection takes this output for sent,
/// the last records are lost, and the client cannot open the next record.
#[test]
fn frames_that_arrive_during_a_flush_lose_no_record() {
    for blocks in [false, true] {
        let fixture = Fixture::new(&TLS13);
        let mut config = ClientConfig::clone(&fixture.client);
        config.alpn_protocols = vec![b"h2".to_vec()];
        let client = TestClient::new(&Arc::new(config));
        let script = client.handshakes().takes(1000, Duration::from_millis(100));
        let script = script.responds(client.answers(0, &[PREFACE, REQUEST].concat()));
        let script = script.waits(Duration::from_millis(500)).responds(client.answers(0, WINDOW_UPDATE));
        let script = script.waits(Duration::from_secs(10)).responds(client.closes());
        let outcome = fixture.play(if blocks { script.blocking() } else { script });
        client.read(&outcome.sent);
        assert_eq!(client.error(), None, "blocks: {blocks}");
        let content = pattern(0..16_384);
        assert!(client.plaintext().ends_with(&content[16_380..]), "blocks: {blocks}");
        assert!(client.plaintext().len() > content.len(), "{} bytes", client.plaintext().len());
    }
}
