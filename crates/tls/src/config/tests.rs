//! Handshakes in memory between rustls' client and servers of these settings.

use std::path::Path;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, HandshakeKind, ProtocolVersion,
    ServerConnection, SignatureScheme,
};

use super::*;
use crate::certificates::chain::Chain;
use crate::certificates::resolver::{Candidate, CertificateResolver, CertificateTable};
use crate::certificates::{generate, key};
use crate::shared::{SharedBytes, private_words};
use crate::tickets::keys::{MAX_BYTES, TicketKeys};
use crate::tickets::ticketer::SharedTicketer;

/// A client's check that accepts every certificate, and every signature that is valid.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Returns a client of these versions that keeps tickets.
fn client(versions: &[&'static SupportedProtocolVersion]) -> Arc<ClientConfig> {
    let builder =
        ClientConfig::builder_with_provider(provider()).with_protocol_versions(versions).expect("versions");
    let mut config = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider())))
        .with_no_client_auth();
    config.alpn_protocols = vec![HTTP_1_1.to_vec()];
    Arc::new(config)
}

/// What a handshake agreed on, as the server sees it.
#[derive(Debug, PartialEq)]
struct Agreed {
    kind: HandshakeKind,
    version: ProtocolVersion,
    alpn: Option<Vec<u8>>,
}

/// Runs a handshake, and a message after it that brings the client its tickets.
fn handshake(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>) -> Result<Agreed, Error> {
    let name = ServerName::try_from("a.test").expect("a name");
    let mut client = ClientConnection::new(Arc::clone(client), name)?;
    let mut server = ServerConnection::new(Arc::clone(server))?;
    for _ in 0..10 {
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).expect("memory");
        server.read_tls(&mut &bytes[..]).expect("memory");
        server.process_new_packets()?;
        bytes.clear();
        server.write_tls(&mut bytes).expect("memory");
        client.read_tls(&mut &bytes[..]).expect("memory");
        client.process_new_packets()?;
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    Ok(Agreed {
        kind: server.handshake_kind().expect("it is over"),
        version: server.protocol_version().expect("it is over"),
        alpn: server.alpn_protocol().map(<[u8]>::to_vec),
    })
}

fn resolver() -> Arc<CertificateResolver> {
    let pair = generate::pair(&["a.test"], &rcgen::PKCS_ECDSA_P256_SHA256);
    let chain = Chain::parse(Path::new("a.pem"), pair.certificate_pem.as_bytes()).expect("a chain");
    let key = key::parse(Path::new("key.pem"), pair.key_pem.as_bytes()).expect("a key");
    let candidate = Candidate { facts: chain.facts().clone(), certified: Arc::new(chain.with_key(key)) };
    Arc::new(CertificateResolver::new(CertificateTable::new(vec![candidate]).expect("a certificate")))
}

fn server(
    preset: SecurityPreset,
    resolver: &Arc<CertificateResolver>,
    keys: &SharedBytes,
) -> Arc<ServerConfig> {
    let resolver: Arc<CertificateResolver> = Arc::clone(resolver);
    Arc::new(server_config(preset, resolver, SharedTicketer::new(keys.clone()), false).expect("settings"))
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
        // The time of a key is not that of the ticket: a rotation in advance is a rotation.
        assert!(keys.rotate(keys.next_rotation()).expect("random bytes"));
        assert!(shared.publish(&keys.to_bytes()));
        assert_eq!(kind(&first), HandshakeKind::Resumed, "a ticket under the key before");
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
fn without_keys_every_handshake_is_full_and_none_fails() {
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
