//! Handshakes in memory between rustls clients and servers with these settings.

use std::path::Path;

use rustls::{ClientConfig, HandshakeKind, ProtocolVersion};

use super::handshake::{client, handshake};
use super::*;
use crate::certificates::chain::Chain;
use crate::certificates::resolver::{Candidate, CertificateResolver, CertificateTable};
use crate::certificates::{generate, key};
use crate::challenges::{self, ChallengeBoard, PendingChallenges};
use crate::shared::{SharedBytes, private_words};
use crate::tickets::keys::{MAX_BYTES, TicketKeys};
use crate::tickets::ticketer::SharedTicketer;

fn resolver() -> Arc<CertificateResolver> {
    Arc::new(CertificateResolver::new(Some(table()), None))
}

fn table() -> CertificateTable {
    let pair = generate::pair(&["a.test"], &rcgen::PKCS_ECDSA_P256_SHA256);
    let chain = Chain::parse(Path::new("a.pem"), pair.certificate_pem.as_bytes()).expect("a chain");
    let key = key::parse(Path::new("key.pem"), pair.key_pem.as_bytes()).expect("a key");
    let candidate = Candidate::new(&chain, key);
    CertificateTable::new(vec![candidate]).expect("a certificate")
}

fn server(
    preset: SecurityPreset,
    resolver: &Arc<CertificateResolver>,
    keys: &SharedBytes,
) -> Arc<ServerConfig> {
    let resolver: Arc<CertificateResolver> = Arc::clone(resolver);
    Arc::new(
        server_config(preset, resolver, SharedTicketer::new(keys.clone()), false, false).expect("settings"),
    )
}

fn memory() -> SharedBytes {
    SharedBytes::new(private_words(SharedBytes::words_for(MAX_BYTES)))
}

#[test]
fn a_session_resumes_in_another_worker_that_shares_the_keys() {
    for versions in [[&version::TLS13], [&version::TLS12]] {
        let (shared, resolver) = (memory(), resolver());
        let now = crate::tickets::keys::now();
        let mut keys = TicketKeys::generate(now).expect("random bytes");
        assert!(shared.publish(&keys.to_bytes()));
        let worker = || server(SecurityPreset::Intermediate, &resolver, &shared);
        let (first, second) = (worker(), worker());
        let client = client(&versions);
        let kind = |server| handshake(&client, server).expect("a handshake").kind;
        assert_eq!(kind(&first), HandshakeKind::Full);
        assert_eq!(kind(&second), HandshakeKind::Resumed);
        // The times of keys and of tickets are independent, so an early rotation is a valid rotation.
        assert!(keys.rotate(keys.next_rotation()).expect("random bytes"));
        assert!(shared.publish(&keys.to_bytes()));
        assert_eq!(kind(&first), HandshakeKind::Resumed, "a ticket under the previous key");
        assert_eq!(kind(&worker()), HandshakeKind::Resumed, "a worker of the next generation");
    }
}

#[test]
fn a_ticket_under_an_unknown_key_leads_to_a_full_handshake() {
    let (shared, resolver) = (memory(), resolver());
    let publish = || {
        let keys = TicketKeys::generate(crate::tickets::keys::now()).expect("random bytes");
        assert!(shared.publish(&keys.to_bytes()));
    };
    publish();
    let server = server(SecurityPreset::Intermediate, &resolver, &shared);
    let client = client(&[&version::TLS13]);
    assert_eq!(handshake(&client, &server).expect("a handshake").kind, HandshakeKind::Full);
    publish();
    assert_eq!(handshake(&client, &server).expect("a handshake").kind, HandshakeKind::Full);
    assert_eq!(handshake(&client, &server).expect("a handshake").kind, HandshakeKind::Resumed);
}

#[test]
fn without_keys_every_handshake_is_full_and_succeeds() {
    let server = server(SecurityPreset::Intermediate, &resolver(), &memory());
    for versions in [[&version::TLS13], [&version::TLS12]] {
        let client = client(&versions);
        for _ in 0..2 {
            assert_eq!(handshake(&client, &server).expect("a handshake").kind, HandshakeKind::Full);
        }
    }
}

#[test]
fn a_preset_decides_the_versions() {
    let (resolver, keys) = (resolver(), memory());
    let modern = server(SecurityPreset::Modern, &resolver, &keys);
    let intermediate = server(SecurityPreset::Intermediate, &resolver, &keys);
    let old = client(&[&version::TLS12]);
    let new = client(&[&version::TLS13, &version::TLS12]);
    assert!(handshake(&old, &modern).is_err());
    let agreed = |client, server| handshake(client, server).expect("a handshake");
    assert_eq!(agreed(&new, &modern).version, ProtocolVersion::TLSv1_3);
    assert_eq!(agreed(&new, &intermediate).version, ProtocolVersion::TLSv1_3);
    assert_eq!(agreed(&old, &intermediate).version, ProtocolVersion::TLSv1_2);
    assert_eq!(agreed(&old, &intermediate).alpn.as_deref(), Some(HTTP_1_1));
    assert_eq!("modern".parse(), Ok(SecurityPreset::Modern));
    assert!("old".parse::<SecurityPreset>().is_err());
}

#[test]
fn an_authority_gets_the_certificate_of_its_challenge_and_others_never_do() {
    let board =
        ChallengeBoard::new(SharedBytes::new(private_words(SharedBytes::words_for(challenges::MAX_BYTES))));
    let resolver = CertificateResolver::new(Some(table()), Some(board.clone()));
    let tickets = SharedTicketer::new(memory());
    let server = server_config(SecurityPreset::Intermediate, Arc::new(resolver), tickets, true, false)
        .expect("settings");
    let server = Arc::new(server);
    let asks = |protocols: &[&[u8]]| {
        let mut config = ClientConfig::clone(&client(&[&version::TLS13]));
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        handshake(&Arc::new(config), &server)
    };
    let refusal = asks(&[ACME_TLS_1]).expect_err("no challenge is pending").to_string();
    assert!(!refusal.contains("UnsupportedCriticalExtension"), "{refusal}");
    let mut pending = PendingChallenges::default();
    pending.add_tls("a.test", &[7; 32]).expect("a certificate");
    assert!(board.publish(&pending));
    // The test's client received it, but does not support the extension of challenge certificates.
    let refusal = asks(&[ACME_TLS_1]).expect_err("its extension is critical and unsupported").to_string();
    assert!(refusal.contains("UnsupportedCriticalExtension"), "{refusal}");
    let browser = asks(&[HTTP_1_1, ACME_TLS_1]).expect("a handshake");
    assert_eq!(browser.alpn.as_deref(), Some(HTTP_1_1));
}
