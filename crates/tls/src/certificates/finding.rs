//! Errors and warnings about certificates, for `check` and the start.

use std::fmt;
use std::path::PathBuf;

use super::chain::ChainError;
use super::facts::date;
use super::key::KeyError;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The server works, but clients may reject the certificate.
    Warning,
    /// The server cannot use the certificate.
    Error,
}

/// A fault of the configured certificates.
#[derive(Debug)]
pub enum Finding {
    /// A chain cannot be read.
    Chain(ChainError),
    /// A key cannot be read.
    Key(KeyError),
    /// The key does not belong to the certificate.
    Mismatch {
        /// The file of the chain.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// TLS cannot use keys of this type.
    UnsupportedKey {
        /// The file of the chain.
        certificate: PathBuf,
    },
    /// The validity has ended.
    Expired {
        /// The file of the chain.
        certificate: PathBuf,
        /// The last second of the validity.
        not_after: i64,
    },
    /// The validity ends soon.
    ExpiresSoon {
        /// The file of the chain.
        certificate: PathBuf,
        /// The last second of the validity.
        not_after: i64,
    },
    /// The validity has not begun.
    NotYetValid {
        /// The file of the chain.
        certificate: PathBuf,
        /// The first second of the validity.
        not_before: i64,
    },
    /// The certificate has no host name.
    NoNames {
        /// The file of the chain.
        certificate: PathBuf,
    },
    /// The certificate of its issuer does not follow a certificate.
    OutOfOrder {
        /// The file of the chain.
        certificate: PathBuf,
    },
    /// No certificate is valid for a configured name.
    Uncovered {
        /// The configured name.
        name: String,
    },
}

impl Finding {
    /// Returns the severity. An expired certificate is a warning, because a server that does not start serves
    /// no client at all.
    pub fn severity(&self) -> Severity {
        match self {
            Finding::Chain(_)
            | Finding::Key(_)
            | Finding::Mismatch { .. }
            | Finding::UnsupportedKey { .. } => Severity::Error,
            Finding::Expired { .. }
            | Finding::ExpiresSoon { .. }
            | Finding::NotYetValid { .. }
            | Finding::NoNames { .. }
            | Finding::OutOfOrder { .. }
            | Finding::Uncovered { .. } => Severity::Warning,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Chain(error) => error.fmt(f),
            Finding::Key(error) => error.fmt(f),
            Finding::Mismatch { certificate, key } => write!(
                f,
                "key {} does not belong to certificate {}: their public keys differ; list keys in the order of their \
                 certificates",
                key.display(),
                certificate.display()
            ),
            Finding::UnsupportedKey { certificate } => write!(
                f,
                "cannot use certificate {}: its key type is not supported; use RSA, ECDSA on P-256, P-384 or P-521, \
                 or Ed25519",
                certificate.display()
            ),
            Finding::Expired { certificate, not_after } => write!(
                f,
                "certificate {} expired on {}: clients will reject it; renew it",
                certificate.display(),
                date(*not_after)
            ),
            Finding::ExpiresSoon { certificate, not_after } => {
                write!(f, "certificate {} expires on {}; renew it", certificate.display(), date(*not_after))
            }
            Finding::NotYetValid { certificate, not_before } => write!(
                f,
                "certificate {} is not valid before {}: clients will reject it; check the clock of this machine",
                certificate.display(),
                date(*not_before)
            ),
            Finding::NoNames { certificate } => write!(
                f,
                "certificate {} has no subject alternative name: clients will reject it; issue it with DNS names",
                certificate.display()
            ),
            Finding::OutOfOrder { certificate } => write!(
                f,
                "the chain in {} is out of order: some clients will reject it; put each issuer after the certificate \
                 that it signed",
                certificate.display()
            ),
            Finding::Uncovered { name } => {
                write!(
                    f,
                    "no certificate covers {name}: clients will reject the default one; add a certificate for it"
                )
            }
        }
    }
}
