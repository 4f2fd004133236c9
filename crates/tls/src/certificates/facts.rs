//! The facts of a certificate that its checks and the choice by name need.

use std::net::IpAddr;

use aws_lc_rs::digest;
use rustls::pki_types::CertificateDer;
use rustls::{SignatureAlgorithm, SignatureScheme};
use tenfold_http::covers_name;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::oid_registry as oid;
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;

/// The facts of a certificate. Times are seconds since 1970 (UTC).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFacts {
    /// DNS names of the subject in lower case; a wildcard begins with `*.`.
    pub names: Vec<String>,
    /// IP addresses of the subject.
    pub addresses: Vec<IpAddr>,
    /// The first second of the certificate's validity.
    pub not_before: i64,
    /// The last second of the certificate's validity.
    pub not_after: i64,
    /// The type of the public key; `None` if TLS does not support it.
    pub key: Option<KeyType>,
    /// The SubjectPublicKeyInfo (RFC 5280 §4.1.2.7), in DER.
    pub public_key: Vec<u8>,
    /// The issuer's name, in DER.
    pub issuer: Vec<u8>,
    /// The subject's name, in DER.
    pub subject: Vec<u8>,
}

/// The SHA-256 digest of a public key, which identifies the key in other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyId(pub [u8; 32]);

impl KeyId {
    /// Returns the digest of a SubjectPublicKeyInfo.
    pub fn of(public_key: &[u8]) -> KeyId {
        let mut id = [0; 32];
        id.copy_from_slice(digest::digest(&digest::SHA256, public_key).as_ref());
        KeyId(id)
    }
}

/// The types of keys that sign handshakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    /// RSA of any size that the library accepts.
    Rsa,
    /// ECDSA on P-256.
    P256,
    /// ECDSA on P-384.
    P384,
    /// ECDSA on P-521.
    P521,
    /// EdDSA on Curve25519.
    Ed25519,
}

impl KeyType {
    /// Returns the signature schemes of this key in order of preference.
    pub fn schemes(self) -> &'static [SignatureScheme] {
        match self {
            KeyType::Rsa => &[
                SignatureScheme::RSA_PSS_SHA256,
                SignatureScheme::RSA_PSS_SHA384,
                SignatureScheme::RSA_PSS_SHA512,
                SignatureScheme::RSA_PKCS1_SHA256,
                SignatureScheme::RSA_PKCS1_SHA384,
                SignatureScheme::RSA_PKCS1_SHA512,
            ],
            KeyType::P256 => &[SignatureScheme::ECDSA_NISTP256_SHA256],
            KeyType::P384 => &[SignatureScheme::ECDSA_NISTP384_SHA384],
            KeyType::P521 => &[SignatureScheme::ECDSA_NISTP521_SHA512],
            KeyType::Ed25519 => &[SignatureScheme::ED25519],
        }
    }

    /// Returns the algorithm that TLS 1.2 names in a cipher suite.
    pub fn algorithm(self) -> SignatureAlgorithm {
        match self {
            KeyType::Rsa => SignatureAlgorithm::RSA,
            KeyType::P256 | KeyType::P384 | KeyType::P521 => SignatureAlgorithm::ECDSA,
            KeyType::Ed25519 => SignatureAlgorithm::ED25519,
        }
    }
}

impl CertificateFacts {
    /// Parses a certificate.
    pub fn read(der: &CertificateDer<'_>) -> Result<CertificateFacts, String> {
        let (rest, certificate) = X509Certificate::from_der(der).map_err(|error| error.to_string())?;
        if !rest.is_empty() {
            return Err("bytes follow the certificate".to_owned());
        }
        let (mut names, mut addresses) = (Vec::new(), Vec::new());
        let alternatives = certificate.subject_alternative_name().map_err(|error| error.to_string())?;
        for name in alternatives.iter().flat_map(|extension| &extension.value.general_names) {
            match name {
                GeneralName::DNSName(name) => names.push(name.to_ascii_lowercase()),
                GeneralName::IPAddress(bytes) => addresses.extend(address(bytes)),
                _ => {}
            }
        }
        Ok(CertificateFacts {
            names,
            addresses,
            not_before: certificate.validity().not_before.timestamp(),
            not_after: certificate.validity().not_after.timestamp(),
            key: key_type(&certificate),
            public_key: certificate.public_key().raw.to_vec(),
            issuer: certificate.issuer().as_raw().to_vec(),
            subject: certificate.subject().as_raw().to_vec(),
        })
    }

    /// Whether the certificate is valid for `host`, a DNS name or an IP address.
    pub fn covers(&self, host: &str) -> bool {
        if let Ok(address) = host.parse::<IpAddr>() {
            return self.addresses.contains(&address);
        }
        covers_name(&self.names, host)
    }

    /// Returns the identity of the key.
    pub fn key_id(&self) -> KeyId {
        KeyId::of(&self.public_key)
    }

    /// Returns names and addresses as a list, and the expiry date, for the start block. Escapes control
    /// characters in names.
    pub fn summary(&self) -> String {
        let addresses = self.addresses.iter().map(IpAddr::to_string);
        let names = self.names.iter().map(|name| name.escape_debug().to_string());
        let all: Vec<String> = names.chain(addresses).collect();
        format!("{}, expires {}", all.join(" "), date(self.not_after))
    }
}

/// Formats the date of a time as `2026-11-22` (UTC).
pub fn date(unix_seconds: i64) -> String {
    match ASN1Time::from_timestamp(unix_seconds) {
        Ok(time) => time.to_datetime().date().to_string(),
        Err(_) => format!("{unix_seconds} s after 1970"),
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from).ok();
    four.or_else(|| <[u8; 16]>::try_from(bytes).map(IpAddr::from).ok())
}

fn key_type(certificate: &X509Certificate<'_>) -> Option<KeyType> {
    let algorithm = &certificate.public_key().algorithm;
    if algorithm.algorithm == oid::OID_PKCS1_RSAENCRYPTION {
        return Some(KeyType::Rsa);
    }
    if algorithm.algorithm == oid::OID_SIG_ED25519 {
        return Some(KeyType::Ed25519);
    }
    if algorithm.algorithm != oid::OID_KEY_TYPE_EC_PUBLIC_KEY {
        return None;
    }
    let curve = algorithm.parameters.as_ref()?.as_oid().ok()?;
    [
        (oid::OID_EC_P256, KeyType::P256),
        (oid::OID_NIST_EC_P384, KeyType::P384),
        (oid::OID_NIST_EC_P521, KeyType::P521),
    ]
    .into_iter()
    .find_map(|(known, key)| (curve == known).then_some(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificates::generate;

    fn facts(names: &[&str]) -> CertificateFacts {
        let pair = generate::pair(names, &rcgen::PKCS_ECDSA_P256_SHA256);
        CertificateFacts::read(&pair.certificate).expect("a certificate of our own")
    }

    #[test]
    fn names_addresses_times_and_the_key_are_read() {
        let facts = facts(&["Example.org", "*.example.org", "192.0.2.1", "2001:db8::1"]);
        assert_eq!(facts.names, ["example.org", "*.example.org"]);
        assert_eq!(
            facts.addresses,
            ["192.0.2.1".parse::<IpAddr>().expect("v4"), "2001:db8::1".parse().expect("v6")]
        );
        assert_eq!(facts.key, Some(KeyType::P256));
        assert_eq!(facts.not_after - facts.not_before, 10 * 86_400);
        assert!(facts.summary().starts_with("example.org *.example.org 192.0.2.1 2001:db8::1, expires 20"));
    }

    #[test]
    fn a_wildcard_covers_one_label() {
        let facts = facts(&["example.org", "*.example.org", "192.0.2.1"]);
        for covered in ["example.org", "www.example.org", "*.example.org", "192.0.2.1"] {
            assert!(facts.covers(covered), "{covered}");
        }
        for foreign in ["a.b.example.org", "org", "xexample.org", "*.org", "192.0.2.2", "*.a.example.org"] {
            assert!(!facts.covers(foreign), "{foreign}");
        }
    }

    #[test]
    fn every_key_type_is_recognized() {
        for (algorithm, expected) in [
            (&rcgen::PKCS_RSA_SHA256, KeyType::Rsa),
            (&rcgen::PKCS_ECDSA_P384_SHA384, KeyType::P384),
            (&rcgen::PKCS_ECDSA_P521_SHA512, KeyType::P521),
            (&rcgen::PKCS_ED25519, KeyType::Ed25519),
        ] {
            let pair = generate::pair(&["a.test"], algorithm);
            let facts = CertificateFacts::read(&pair.certificate).expect("a certificate of our own");
            assert_eq!(facts.key, Some(expected));
        }
    }

    #[test]
    fn a_date_is_written_as_iso_8601() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(1_795_305_600), "2026-11-22");
    }

    #[test]
    fn any_bytes_are_a_certificate_or_an_error() {
        bolero::check!().with_iterations(2000).with_max_len(512).for_each(|bytes| {
            let _ = CertificateFacts::read(&CertificateDer::from(bytes.to_vec()));
        });
    }
}
