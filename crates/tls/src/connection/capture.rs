//! Facts of a handshake that rustls passes only to callbacks: traffic secrets and the server name.
//!
//! Callbacks run on the thread that processes the handshake, so they store the facts in thread-local memory.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{KeyLog, ServerConfig};
use zeroize::Zeroize;

/// The most bytes of a traffic secret: the output of SHA-384.
const MOST_SECRET_BYTES: usize = 48;

/// The protocols of ALPN (RFC 7301) that every server has, in order of preference.
const PROTOCOLS: [&str; 2] = ["http/1.1", "http/1.0"];

/// The protocols that a server may have.
pub(super) const ALL_PROTOCOLS: [&str; 3] = ["h2", "http/1.1", "http/1.0"];

/// A traffic secret (RFC 8446 §7.1). Dropping it wipes it.
#[derive(Clone)]
pub(super) struct Secret {
    bytes: [u8; MOST_SECRET_BYTES],
    length: u8,
}

impl Secret {
    /// Copies a secret; `None` if it is too long.
    pub(super) fn new(from: &[u8]) -> Option<Secret> {
        let mut secret = Secret { bytes: [0; MOST_SECRET_BYTES], length: u8::try_from(from.len()).ok()? };
        secret.bytes.get_mut(..from.len())?.copy_from_slice(from);
        Some(secret)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The facts from callbacks.
#[derive(Debug, Default)]
pub(super) struct Captured {
    /// `CLIENT_TRAFFIC_SECRET_0`.
    pub(super) client: Option<Secret>,
    /// `SERVER_TRAFFIC_SECRET_0`.
    pub(super) server: Option<Secret>,
    /// `SERVER_HANDSHAKE_TRAFFIC_SECRET`, for an alert that rustls does not send.
    pub(super) handshake: Option<Secret>,
    /// `CLIENT_HANDSHAKE_TRAFFIC_SECRET`, to distinguish skipped early data from parts of messages.
    pub(super) client_handshake: Option<Secret>,
    /// The client's server name (RFC 6066 §3), in lower case.
    pub(super) name: Option<Box<str>>,
    /// The names of the server's certificate.
    pub(super) certificate_names: Option<Arc<[String]>>,
}

impl Captured {
    /// Takes the facts of the last call of rustls on this thread.
    pub(super) fn collect(&mut self) {
        let Captured { client, server, handshake, client_handshake, name, certificate_names } =
            CAPTURED.take();
        self.client = client.or(self.client.take());
        self.server = server.or(self.server.take());
        self.handshake = handshake.or(self.handshake.take());
        self.client_handshake = client_handshake.or(self.client_handshake.take());
        self.name = name.or(self.name.take());
        self.certificate_names = certificate_names.or(self.certificate_names.take());
    }
}

thread_local! {
    static CAPTURED: RefCell<Captured> = RefCell::default();
}

/// Stores the names of the certificate that a resolver chose.
pub(crate) fn capture_names(names: &Arc<[String]>) {
    CAPTURED.with_borrow_mut(|captured| captured.certificate_names = Some(Arc::clone(names)));
}

/// Prepares a configuration for [`TlsServer`](super::TlsServer): protocols, and extraction of secrets.
/// Without it, rustls keeps connections of TLS 1.3.
pub fn prepare(config: &mut ServerConfig) {
    for protocol in PROTOCOLS {
        if !config.alpn_protocols.iter().any(|known| known == protocol.as_bytes()) {
            config.alpn_protocols.push(protocol.into());
        }
    }
    // Early data can be replayed (RFC 8446 §8).
    config.max_early_data_size = 0;
    config.enable_secret_extraction = true;
    config.key_log = Arc::new(SecretCapture);
    config.cert_resolver = Arc::new(NameCapture(config.cert_resolver.clone()));
}

#[derive(Debug)]
struct SecretCapture;

impl KeyLog for SecretCapture {
    fn log(&self, label: &str, _: &[u8], secret: &[u8]) {
        CAPTURED.with_borrow_mut(|captured| match label {
            "CLIENT_TRAFFIC_SECRET_0" => captured.client = Secret::new(secret),
            "SERVER_TRAFFIC_SECRET_0" => captured.server = Secret::new(secret),
            "SERVER_HANDSHAKE_TRAFFIC_SECRET" => captured.handshake = Secret::new(secret),
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => captured.client_handshake = Secret::new(secret),
            _ => {}
        });
    }

    fn will_log(&self, label: &str) -> bool {
        matches!(
            label,
            "CLIENT_TRAFFIC_SECRET_0"
                | "SERVER_TRAFFIC_SECRET_0"
                | "SERVER_HANDSHAKE_TRAFFIC_SECRET"
                | "CLIENT_HANDSHAKE_TRAFFIC_SECRET"
        )
    }
}

#[derive(Debug)]
struct NameCapture(Arc<dyn ResolvesServerCert>);

impl ResolvesServerCert for NameCapture {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(|name| name.to_ascii_lowercase().into());
        CAPTURED.with_borrow_mut(|captured| captured.name = name);
        self.0.resolve(hello)
    }

    fn only_raw_public_keys(&self) -> bool {
        self.0.only_raw_public_keys()
    }
}
