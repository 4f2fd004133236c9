//! A configuration with one certificate, from PEM files.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::NoServerSessionStorage;

use super::capture::prepare;

/// Reads a certificate with its chain, and its key. A worker adds the keys of tickets.
///
/// # Errors
/// In words: a file cannot be read or holds something else, or the key is of another certificate.
pub fn load(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, String> {
    let read = |error: &dyn std::fmt::Display| {
        format!("cannot read the certificate {}: {error}", certificate.display())
    };
    let chain = CertificateDer::pem_file_iter(certificate).map_err(|error| read(&error))?;
    let chain: Vec<_> = chain.collect::<Result<_, _>>().map_err(|error| read(&error))?;
    if chain.is_empty() {
        return Err(format!("{} holds no certificate in PEM form", certificate.display()));
    }
    let secret = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| format!("cannot read the key {}: {error}", key.display()))?;
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, secret);
    let mut config = config.map_err(|error| {
        format!("cannot use {} with the key {}: {error}", certificate.display(), key.display())
    })?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    prepare(&mut config);
    Ok(Arc::new(config))
}
