//! The certificates that the generator trusts, and the reasons for distrust.

use std::path::Path;

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, RootCertStore};
use tenfold_tls::certificates::roots::root_store;

use crate::error::LoadError;
use crate::measure::record::ErrorKind;

/// The certificates of a PEM file. Without a file, the certificates of the system.
pub(super) fn roots(file: Option<&Path>) -> Result<RootCertStore, LoadError> {
    root_store(file).map_err(|why| {
        LoadError::Failed(match file {
            Some(_) => format!("cannot use --ca {why}"),
            None => format!("cannot verify a server: {why}, name some with --ca FILE, or use --insecure"),
        })
    })
}

/// Describes an error of TLS. `first` are the first bytes from the server, if they caused the error.
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
            let remedy = match alert {
                AlertDescription::NoApplicationProtocol => {
                    "; it does not offer this version of HTTP over TLS: use another version with --http"
                }
                _ => "",
            };
            (ErrorKind::Tls, format!("the server {what} with the alert {name}{remedy}"))
        }
        _ if handshaking => (ErrorKind::Tls, format!("the TLS handshake failed: {error}")),
        _ => (ErrorKind::Tls, format!("the server broke TLS: {error}")),
    }
}

fn distrust(reason: &CertificateError) -> String {
    match reason {
        CertificateError::UnknownIssuer => "its issuer is unknown".to_owned(),
        // `openssl req -x509` marks a certificate as an authority's.
        CertificateError::Other(why) if why.to_string().contains("CaUsedAsEndEntity") => {
            "it signs itself, as an authority does".to_owned()
        }
        // A trusted certificate has the issuer's name but another key.
        CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "no trusted certificate has signed it".to_owned()
        }
        _ => reason.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_usable_certificates_is_refused() {
        let file = std::env::temp_dir().join(format!("tenfold-load-ca-{}", std::process::id()));
        let said = |bytes: &[u8]| {
            std::fs::write(&file, bytes).expect("a file in the folder for temporary files");
            roots(Some(&file)).map(|roots| roots.len()).map_err(|error| error.to_string())
        };
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let one = made.cert.pem();
        assert_eq!(said(one.as_bytes()), Ok(1));
        assert_eq!(said(format!("{one}{one}").as_bytes()), Ok(2));
        assert!(said(b"").is_err_and(|why| why.ends_with("it has no CERTIFICATE section")));
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(said(broken.as_bytes()).is_err_and(|why| why.starts_with("cannot use --ca ")));
        std::fs::remove_file(&file).expect("the file is there");
        assert!(roots(Some(&file)).is_err());
    }

    #[test]
    fn an_error_names_its_reason() {
        let untrusted = Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let plain = Error::InvalidMessage(InvalidMessage::InvalidContentType);
        let alert = Error::AlertReceived(AlertDescription::NoApplicationProtocol);
        for (error, handshaking, first, kind, says) in [
            (&untrusted, true, None, ErrorKind::Certificate, "its issuer is unknown; name its authority"),
            (&plain, true, Some(&b"HTTP/1.1 400"[..]), ErrorKind::Tls, "plain HTTP instead of TLS"),
            (&plain, true, Some(b"SSH-2.0"), ErrorKind::Tls, "does not use TLS"),
            (&plain, false, None, ErrorKind::Tls, "broke TLS"),
            (
                &alert,
                true,
                None,
                ErrorKind::Tls,
                "refused the TLS handshake with the alert NoApplicationProtocol; it does not offer",
            ),
            (&alert, false, None, ErrorKind::Tls, "ended TLS"),
            (&Error::DecryptError, true, None, ErrorKind::Tls, "the TLS handshake failed: "),
        ] {
            let (found, said) = failure(error, handshaking, first);
            assert!(found == kind && said.contains(says), "{said}");
        }
    }
}
