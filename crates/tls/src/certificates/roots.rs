//! The certificate authorities that a client trusts.

use std::fmt::Display;
use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

use super::file;
use super::pem;

/// Returns the authorities of a PEM file, which must all be usable, or without a file the system's usable
/// authorities; at least one. An error begins with the path.
pub fn trusted(file: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, String> {
    let Some(path) = file else {
        let mut roots = RootCertStore::empty();
        let mut found = rustls_native_certs::load_native_certs().certs;
        found.retain(|certificate| roots.add(certificate.clone()).is_ok());
        return match found.is_empty() {
            true => Err("this system has no trusted certificates; install ca-certificates".into()),
            false => Ok(found),
        };
    };
    trusted_in(path, &pem(path)?)
}

/// Returns the authorities of the content of the PEM file `path`, which must all be usable. An error begins with the path.
pub fn trusted_in(path: &Path, content: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let mut roots = RootCertStore::empty();
    let wrong = |why: &dyn Display| format!("{}: {why}", path.display());
    let located = pem::certificates(content).map_err(|error| wrong(&error))?;
    if located.is_empty() {
        return Err(wrong(&"it has no CERTIFICATE section"));
    }
    let usable = located.into_iter().map(|found| {
        let added = roots.add(found.der.clone());
        added.map(|()| found.der).map_err(|error| wrong(&format_args!("line {}: {error}", found.line)))
    });
    usable.collect()
}

/// Reads the PEM file of authorities. An error begins with the path.
pub fn pem(path: &Path) -> Result<Vec<u8>, String> {
    file::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the authorities for a rustls client.
pub fn root_store(file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(trusted(file)?);
    Ok(roots)
}
