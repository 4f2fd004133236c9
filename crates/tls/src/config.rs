//! The settings of rustls for a server.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::server::{NoServerSessionStorage, ProducesTickets, ResolvesServerCert};
use rustls::{ServerConfig, SupportedProtocolVersion, version};

use crate::challenges::ACME_TLS_1;

/// HTTP/1.1 in ALPN (RFC 7301 §6).
pub const HTTP_1_1: &[u8] = b"http/1.1";

/// The versions and cipher suites that a server accepts; the names are those of Mozilla's "Server Side TLS".
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

/// Returns the cryptography of every part of this crate.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(default_provider())
}

/// Returns the settings of a server: certificates by `resolver`, resumption by tickets alone. `with_challenges` adds
/// `acme-tls/1` to the protocols. A `KeyLog` may be set afterwards: secrets can be extracted.
///
/// # Errors
/// Fails if the library cannot combine the versions and suites of the preset.
pub fn server_config(
    preset: SecurityPreset,
    resolver: Arc<dyn ResolvesServerCert>,
    ticketer: Arc<dyn ProducesTickets>,
    with_challenges: bool,
) -> Result<ServerConfig, rustls::Error> {
    let builder =
        ServerConfig::builder_with_provider(provider()).with_protocol_versions(preset.versions())?;
    let mut config = builder.with_no_client_auth().with_cert_resolver(resolver);
    config.alpn_protocols = vec![HTTP_1_1.to_vec()];
    if with_challenges {
        config.alpn_protocols.push(ACME_TLS_1.to_vec());
    }
    config.ticketer = ticketer;
    // A stored session would stay in one worker; a ticket resumes in each.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.enable_secret_extraction = true;
    // A request in early data can be replayed (RFC 8446 §8).
    config.max_early_data_size = 0;
    Ok(config)
}

#[cfg(test)]
pub(crate) mod handshake;
#[cfg(test)]
mod tests;
