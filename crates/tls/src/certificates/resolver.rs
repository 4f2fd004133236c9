//! The choice of a certificate by the server name and the signature schemes of a client.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::{CertifiedKey, SigningKey};
use rustls::{SignatureAlgorithm, SignatureScheme};

use super::chain::Chain;
use super::facts::CertificateFacts;
use crate::challenges::{ACME_TLS_1, ChallengeBoard};
use crate::connection::capture_names;

/// A certificate with its key, and the facts that the choice needs.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The facts of the certificate.
    pub facts: CertificateFacts,
    /// The chain and its key.
    pub certified: Arc<CertifiedKey>,
    /// The names of the certificate, shared with connections.
    names: Arc<[String]>,
}

impl Candidate {
    /// Joins a chain and its key, which may sign in another process.
    pub fn new(chain: &Chain, key: Arc<dyn SigningKey>) -> Candidate {
        let facts = chain.facts().clone();
        let names = facts.names.clone().into();
        Candidate { facts, certified: Arc::new(chain.with_key(key)), names }
    }
}

/// Certificates by name. An unknown name gets a certificate with the names of the first certificate.
#[derive(Debug)]
pub struct CertificateTable {
    candidates: Vec<Candidate>,
    by_name: HashMap<String, Vec<usize>>,
    default: Vec<usize>,
}

impl CertificateTable {
    /// Returns the table; `None` without any certificate. For the same name, ECDSA and EdDSA precede RSA,
    /// because their signatures cost less.
    pub fn new(mut candidates: Vec<Candidate>) -> Option<CertificateTable> {
        let first = candidates.first()?.facts.clone();
        candidates.sort_by_key(|candidate| candidate.certified.key.algorithm() == SignatureAlgorithm::RSA);
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, candidate) in candidates.iter().enumerate() {
            for name in &candidate.facts.names {
                by_name.entry(name.clone()).or_default().push(index);
            }
        }
        let has_first_names = |candidate: &Candidate| {
            (&candidate.facts.names, &candidate.facts.addresses) == (&first.names, &first.addresses)
        };
        let default = (0..candidates.len()).filter(|&index| has_first_names(&candidates[index])).collect();
        Some(CertificateTable { candidates, by_name, default })
    }

    /// Returns the certificate for a name in lower case and the offered schemes. If the client offers no
    /// usable scheme, the first certificate of the name makes rustls send the right alert.
    pub fn choose(&self, name: Option<&str>, schemes: &[SignatureScheme]) -> &Candidate {
        let indices = name.and_then(|name| self.find(name)).unwrap_or(&self.default);
        let suits = |index: &&usize| self.candidates[**index].certified.key.choose_scheme(schemes).is_some();
        let index = indices.iter().find(suits).unwrap_or(&indices[0]);
        &self.candidates[*index]
    }

    fn find(&self, name: &str) -> Option<&Vec<usize>> {
        self.by_name.get(name).or_else(|| {
            let (_, parent) = name.split_once('.')?;
            self.by_name.get(&format!("*.{parent}"))
        })
    }
}

/// The certificates of a server. Without a certificate, handshakes end with an alert.
pub struct CertificateResolver {
    table: Option<CertificateTable>,
    challenges: Option<ChallengeBoard>,
}

impl CertificateResolver {
    /// Returns a resolver. `table` is None until the first certificate exists; `challenges` has the responses
    /// for a certificate authority.
    pub fn new(table: Option<CertificateTable>, challenges: Option<ChallengeBoard>) -> CertificateResolver {
        CertificateResolver { table, challenges }
    }
}

impl fmt::Debug for CertificateResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateResolver").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(str::to_ascii_lowercase);
        if let Some(challenges) = self.challenges.as_ref().filter(|_| is_validation(&hello)) {
            return challenges.tls_response(name.as_deref()?);
        }
        let chosen = self.table.as_ref()?.choose(name.as_deref(), hello.signature_schemes());
        capture_names(&chosen.names);
        Some(Arc::clone(&chosen.certified))
    }
}

/// Whether an authority validates: it offers this protocol and no other (RFC 8737 §3).
fn is_validation(hello: &ClientHello<'_>) -> bool {
    hello.alpn().is_some_and(|offered| offered.eq([ACME_TLS_1]))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::certificates::generate;
    use crate::certificates::key;

    fn candidate(names: &[&str], algorithm: &'static rcgen::SignatureAlgorithm) -> Candidate {
        let pair = generate::pair(names, algorithm);
        let chain = Chain::parse(Path::new("a.pem"), pair.certificate_pem.as_bytes()).expect("a chain");
        let key = key::parse(Path::new("key.pem"), pair.key_pem.as_bytes()).expect("a key");
        Candidate::new(&chain, key)
    }

    const BOTH: &[SignatureScheme] =
        &[SignatureScheme::RSA_PSS_SHA256, SignatureScheme::ECDSA_NISTP256_SHA256];
    const RSA: &[SignatureScheme] = &[SignatureScheme::RSA_PSS_SHA256];

    #[test]
    fn name_then_wildcard_then_default_and_ecdsa_before_rsa() {
        let rsa = candidate(&["a.test"], &rcgen::PKCS_RSA_SHA256);
        let ecdsa = candidate(&["a.test"], &rcgen::PKCS_ECDSA_P256_SHA256);
        let wild = candidate(&["*.b.test"], &rcgen::PKCS_ECDSA_P256_SHA256);
        let exact = candidate(&["www.b.test"], &rcgen::PKCS_ECDSA_P256_SHA256);
        let all = [&rsa, &ecdsa, &wild, &exact].map(Candidate::clone).to_vec();
        let table = CertificateTable::new(all).expect("four certificates");
        for (name, schemes, expected) in [
            (Some("a.test"), BOTH, &ecdsa),
            (Some("a.test"), RSA, &rsa),
            (Some("x.b.test"), BOTH, &wild),
            (Some("www.b.test"), BOTH, &exact),
            (Some("a.b.b.test"), BOTH, &ecdsa),
            (Some("other.test"), RSA, &rsa),
            (None, BOTH, &ecdsa),
            // There is no common scheme: rustls sends the alert.
            (Some("www.b.test"), RSA, &exact),
        ] {
            let chosen = table.choose(name, schemes);
            assert!(Arc::ptr_eq(&chosen.certified, &expected.certified), "{name:?} {schemes:?}");
        }
        assert!(CertificateTable::new(Vec::new()).is_none());
    }
}
