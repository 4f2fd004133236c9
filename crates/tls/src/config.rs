//! The settings of rustls for a server.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::server::{NoServerSessionStorage, ProducesTickets, ResolvesServerCert};
use rustls::{CipherSuite, ServerConfig, SupportedProtocolVersion, version};

use crate::challenges::ACME_TLS_1;

/// HTTP/1.1 in ALPN (RFC 7301 §6).
pub const HTTP_1_1: &[u8] = b"http/1.1";

/// The name of HTTP/2 in ALPN (RFC 9113 §3.2).
pub const HTTP_2: &[u8] = b"h2";

/// The accepted versions and cipher suites, named as in Mozilla's "Server Side TLS".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecurityPreset {
    /// TLS 1.3.
    Modern,
    /// TLS 1.2 and 1.3; in 1.2 only suites with ephemeral keys and authenticated encryption.
    #[default]
    Intermediate,
}

impl SecurityPreset {
    /// Returns the protocol versions of the preset.
    pub fn versions(self) -> &'static [&'static SupportedProtocolVersion] {
        const MODERN: &[&SupportedProtocolVersion] = &[&version::TLS13];
        const INTERMEDIATE: &[&SupportedProtocolVersion] = &[&version::TLS13, &version::TLS12];
        match self {
            SecurityPreset::Modern => MODERN,
            SecurityPreset::Intermediate => INTERMEDIATE,
        }
    }
}

impl fmt::Display for SecurityPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SecurityPreset::Modern => "modern",
            SecurityPreset::Intermediate => "intermediate",
        })
    }
}

impl FromStr for SecurityPreset {
    type Err = String;

    fn from_str(text: &str) -> Result<SecurityPreset, String> {
        [SecurityPreset::Modern, SecurityPreset::Intermediate]
            .into_iter()
            .find(|preset| preset.to_string() == text)
            .ok_or_else(|| format!("unknown TLS preset {text:?}; use modern or intermediate"))
    }
}

/// Returns the cryptography that all of this crate uses.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(default_provider())
}

/// Returns the settings of a server: certificates by `resolver`, resumption only by tickets.
/// `with_challenges` adds `acme-tls/1` to the protocols, and `with_http2` adds `h2`. A caller may set a `KeyLog`, because secrets can be
/// extracted.
pub fn server_config(
    preset: SecurityPreset,
    resolver: Arc<dyn ResolvesServerCert>,
    ticketer: Arc<dyn ProducesTickets>,
    with_challenges: bool,
    with_http2: bool,
) -> Result<ServerConfig, rustls::Error> {
    let mut provider = default_provider();
    // Mozilla's order: AES-128 costs less than AES-256, and browsers prefer it.
    provider.cipher_suites.sort_by_key(|suite| order(suite.suite()));
    let builder =
        ServerConfig::builder_with_provider(provider.into()).with_protocol_versions(preset.versions())?;
    let mut config = builder.with_no_client_auth().with_cert_resolver(resolver);
    // Every suite is secure, so cost decides, and the server pays it for many clients. A client without AES
    // instructions is slower with AES; it gets ChaCha20 if it offers no AES suite.
    config.ignore_client_order = true;
    if with_http2 {
        config.alpn_protocols.push(HTTP_2.to_vec());
    }
    config.alpn_protocols.push(HTTP_1_1.to_vec());
    if with_challenges {
        config.alpn_protocols.push(ACME_TLS_1.to_vec());
    }
    config.ticketer = ticketer;
    // A stored session would be limited to one worker; every worker can resume a ticket.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.enable_secret_extraction = true;
    // A request in early data can be replayed (RFC 8446 §8).
    config.max_early_data_size = 0;
    Ok(config)
}

/// The rank of a suite in the server's order.
fn order(suite: CipherSuite) -> u8 {
    use CipherSuite as C;
    match suite {
        C::TLS13_AES_128_GCM_SHA256
        | C::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
        | C::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => 0,
        C::TLS13_AES_256_GCM_SHA384
        | C::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
        | C::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => 1,
        _ => 2,
    }
}

#[cfg(test)]
pub(crate) mod handshake;
#[cfg(test)]
mod tests;
