//! The certificates that the generator trusts, and the reasons for distrust.

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, RootCertStore};
use tenfold_http::clock::format_date;
use tenfold_tls::certificates::roots::{trusted, trusted_in};

use crate::error::LoadError;
use crate::measure::record::ErrorKind;
use crate::plan::TrustFile;

/// The certificates of a PEM file. Without a file, the certificates of the system.
pub(super) fn roots(file: Option<&TrustFile>) -> Result<RootCertStore, LoadError> {
    let found = match file {
        Some(file) => trusted_in(&file.path, &file.pem),
        None => trusted(None),
    };
    let store = found.map(|certificates| {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(certificates);
        store
    });
    store.map_err(|why| {
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
            format!("{}, or accept any certificate with --insecure", distrust(reason)),
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

/// The reason of an invalid certificate, and its remedy.
fn distrust(reason: &CertificateError) -> String {
    let date = |time: UnixTime| String::from_utf8_lossy(&format_date(time.as_secs())).into_owned();
    match reason {
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("the server's certificate expired on {}; renew it", date(*not_after))
        }
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "the server's certificate is valid from {}, and the clock of this machine shows {}; correct the clock",
            date(*not_before),
            date(*time)
        ),
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names: Vec<_> = presented.iter().map(|name| bare(name)).collect();
            format!(
                "the server's certificate is for {}, not for {}; use one of these names in the URL or with --sni",
                if names.is_empty() { "no name".to_owned() } else { names.join(", ") },
                expected.to_str()
            )
        }
        _ => format!(
            "the server's certificate is not trusted: {}; name its authority with --ca FILE",
            unknown(reason)
        ),
    }
}

/// Returns the name in a word of rustls, such as `DnsName("a.example")` or `IpAddress(192.0.2.1)`.
fn bare(name: &str) -> &str {
    let inner = name.split_once('(').map_or(name, |(_, inner)| inner);
    inner.strip_suffix(')').unwrap_or(inner).trim_matches('"')
}

fn unknown(reason: &CertificateError) -> String {
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
        let said = |bytes: &[u8]| {
            let file = TrustFile { path: "ca.pem".into(), pem: bytes.to_vec() };
            roots(Some(&file)).map(|roots| roots.len()).map_err(|error| error.to_string())
        };
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let one = made.cert.pem();
        assert_eq!(said(one.as_bytes()), Ok(1));
        assert_eq!(said(format!("{one}{one}").as_bytes()), Ok(2));
        assert!(said(b"").is_err_and(|why| why.ends_with("it has no CERTIFICATE section")));
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(said(broken.as_bytes()).is_err_and(|why| why.starts_with("cannot use --ca ")));
    }

    #[test]
    fn a_date_or_a_name_has_its_own_remedy() {
        let time = |seconds| UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        let (now, then) = (time(784_111_800), time(784_111_777));
        let expected = "localhost".try_into().expect("a name");
        let presented = ["DnsName(\"a.example\")", "IpAddress(192.0.2.1)"].map(str::to_owned).to_vec();
        for (reason, says) in [
            (
                CertificateError::ExpiredContext { time: now, not_after: then },
                "expired on Sun, 06 Nov 1994 08:49:37 GMT; renew it",
            ),
            (
                CertificateError::NotValidYetContext { time: then, not_before: now },
                "valid from Sun, 06 Nov 1994 08:50:00 GMT, and the clock of this machine shows Sun, 06 Nov 1994",
            ),
            (
                CertificateError::NotValidForNameContext { expected, presented },
                "is for a.example, 192.0.2.1, not for localhost; use one of these names",
            ),
        ] {
            let (kind, said) = failure(&Error::InvalidCertificate(reason), true, None);
            assert!(kind == ErrorKind::Certificate && said.contains(says), "{said}");
            assert!(!said.contains("--ca") && said.ends_with("--insecure"), "{said}");
        }
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
