//! Settings of TLS.

use std::path::PathBuf;

use rustls::pki_types::ServerName;

/// The settings of TLS, for `https` URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// Accept every certificate.
    pub insecure: bool,
    /// A PEM file of certificates to trust instead of those of the system.
    pub ca: Option<PathBuf>,
    /// The name to ask for and to verify, instead of the URL's host.
    pub sni: Option<String>,
    /// New connections resume earlier sessions.
    pub resume: bool,
}

impl Default for TlsOptions {
    fn default() -> TlsOptions {
        TlsOptions { insecure: false, ca: None, sni: None, resume: true }
    }
}

/// The name that a certificate must cover.
///
/// # Errors
/// A reason, if `text` is neither a DNS name nor an address.
pub(crate) fn server_name(text: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(text.to_owned())
        .map_err(|_| format!("{text:?} is neither a DNS name nor an IP address"))
}
