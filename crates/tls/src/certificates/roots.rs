//! The certificate authorities that a client trusts.

use std::fmt::Display;
use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

use super::file;
use super::pem::{self, LocatedCertificate};

/// Returns the certificates of a PEM file, or without a file the system's; at least one. An error begins with
/// the path.
pub fn trusted(file: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, String> {
    let Some(path) = file else {
        let found = rustls_native_certs::load_native_certs().certs;
        return match found.is_empty() {
            true => Err("this system has no trusted certificates; install ca-certificates".into()),
            false => Ok(found),
        };
    };
    Ok(located(path)?.into_iter().map(|found| found.der).collect())
}

fn located(path: &Path) -> Result<Vec<LocatedCertificate>, String> {
    let wrong = |why: &dyn Display| format!("{}: {why}", path.display());
    match pem::certificates(&pem(path)?).map_err(|error| wrong(&error))? {
        found if found.is_empty() => Err(wrong(&"it has no CERTIFICATE section")),
        found => Ok(found),
    }
}

/// Reads the PEM file of authorities. An error begins with the path.
pub fn pem(path: &Path) -> Result<Vec<u8>, String> {
    file::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the authorities that rustls can use. Every certificate of a file must be usable.
pub fn usable(file: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, String> {
    let mut roots = RootCertStore::empty();
    let Some(path) = file else {
        let mut certificates = trusted(None)?;
        certificates.retain(|certificate| roots.add(certificate.clone()).is_ok());
        return Ok(certificates);
    };
    let usable = located(path)?.into_iter().map(|found| {
        let added = roots.add(found.der.clone());
        added.map(|()| found.der).map_err(|error| format!("{}: line {}: {error}", path.display(), found.line))
    });
    usable.collect()
}

/// Returns the usable authorities for a rustls client.
pub fn root_store(file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(usable(file)?);
    Ok(roots)
}
