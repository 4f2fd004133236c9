//! The authorities that a client trusts.

use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::file;

/// Returns the certificates of a PEM file, or without one those of the system; at least one.
///
/// # Errors
/// A message, which begins with the path of the file: it cannot be read, or there are no certificates.
pub fn trusted(file: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, String> {
    let Some(path) = file else {
        let found = rustls_native_certs::load_native_certs().certs;
        return match found.is_empty() {
            true => Err("this system has no trusted certificates; install ca-certificates".into()),
            false => Ok(found),
        };
    };
    let wrong = |why: &str| format!("{}: {why}", path.display());
    let bytes = file::read(path).map_err(|error| wrong(&error.to_string()))?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match all.map_err(|error| wrong(&error.to_string()))? {
        none if none.is_empty() => Err(wrong("it has no certificate in PEM form")),
        some => Ok(some),
    }
}

/// Returns them for a client of rustls. Each certificate of a file must be usable.
///
/// # Errors
/// See [`trusted`]; or a certificate cannot be parsed.
pub fn root_store(file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let certificates = trusted(file)?;
    let Some(path) = file else {
        roots.add_parsable_certificates(certificates);
        return Ok(roots);
    };
    for certificate in certificates {
        roots.add(certificate).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(roots)
}
