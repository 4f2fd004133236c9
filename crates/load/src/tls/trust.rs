//! The certificates that the generator trusts, and the reasons why it does not trust one.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, DigitallySignedStruct, Error, InvalidMessage, RootCertStore, SignatureScheme,
};

use crate::error::LoadError;
use crate::measure::record::ErrorKind;

/// The certificates of a PEM file, or without one those of the system.
pub(super) fn roots(file: Option<&Path>) -> Result<RootCertStore, LoadError> {
    let mut roots = RootCertStore::empty();
    let Some(path) = file else {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        return match roots.is_empty() {
            true => Err(LoadError::Failed(
                "cannot verify a server: this system has no trusted certificates; name some with --ca FILE, or use --insecure"
                    .into(),
            )),
            false => Ok(roots),
        };
    };
    let shown = path.display();
    let wrong = |why: &dyn std::fmt::Display| LoadError::Failed(format!("cannot use --ca {shown}: {why}"));
    let bytes = std::fs::read(path).map_err(|error| wrong(&error))?;
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        roots.add(certificate.map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))?;
    }
    if roots.is_empty() { Err(wrong(&"it has no certificate in PEM form")) } else { Ok(roots) }
}

/// Accepts every certificate. Its key must still sign the handshake.
#[derive(Debug)]
struct UnverifiedCertificates(WebPkiSupportedAlgorithms);

pub(super) fn unverified(provider: &CryptoProvider) -> Arc<dyn ServerCertVerifier> {
    Arc::new(UnverifiedCertificates(provider.signature_verification_algorithms))
}

impl ServerCertVerifier for UnverifiedCertificates {
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
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// Describes an error of TLS. `first` are the first bytes of the server, if the error is in them.
pub(crate) fn failure(error: &Error, handshaking: bool, first: Option<&[u8]>) -> (ErrorKind, String) {
    let plain = first.is_some_and(|bytes| bytes.starts_with(b"HTTP/"));
    match error {
        Error::InvalidCertificate(reason) => (
            ErrorKind::Certificate,
            format!(
                "the server's certificate is not trusted: {}; name its authority with --ca FILE, or accept any certificate with --insecure",
                distrust(reason)
            ),
        ),
        Error::InvalidMessage(_) if plain => {
            (ErrorKind::Tls, "the server sent plain HTTP instead of TLS; use http://".into())
        }
        Error::InvalidMessage(InvalidMessage::InvalidContentType) if first.is_some() => {
            (ErrorKind::Tls, "the server does not use TLS here".into())
        }
        Error::AlertReceived(alert) => {
            let name = alert.as_str().unwrap_or("unknown");
            let what = if handshaking { "refused the TLS handshake" } else { "ended TLS" };
            (ErrorKind::Tls, format!("the server {what} with the alert {name}"))
        }
        _ if handshaking => (ErrorKind::Tls, format!("the TLS handshake failed: {error}")),
        _ => (ErrorKind::Tls, format!("the server broke TLS: {error}")),
    }
}

fn distrust(reason: &CertificateError) -> String {
    match reason {
        CertificateError::UnknownIssuer => "its issuer is unknown".to_owned(),
        // A trusted certificate has the name of its issuer, and another key.
        CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "no trusted certificate has signed it".to_owned()
        }
        _ => reason.to_string(),
    }
}
