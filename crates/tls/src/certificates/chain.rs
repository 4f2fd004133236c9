//! A certificate chain as a server sends it, with the facts of its certificates.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::sign::{CertifiedKey, SigningKey};

use super::facts::CertificateFacts;
use super::file;
use super::pem;

/// The most certificates of a chain; public chains have two to four.
const MAX_CERTIFICATES: usize = 10;

/// A chain of at least one certificate, beginning with the server's own.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The file of the chain.
    pub path: PathBuf,
    /// The certificates. If possible, the certificate of its issuer follows each of them.
    pub certificates: Vec<CertificateDer<'static>>,
    /// The facts of each certificate, in the same order.
    facts: Vec<CertificateFacts>,
}

impl Chain {
    /// Reads a PEM file.
    pub fn read(path: &Path) -> Result<Chain, String> {
        let bytes = file::read(path).map_err(|error| {
            let path = path.display();
            format!("cannot read certificate {path}: {error}; name a PEM file that the server may read")
        })?;
        Chain::parse(path, &bytes)
    }

    /// Parses the PEM text of a chain; `path` is for messages.
    pub fn parse(path: &Path, pem: &[u8]) -> Result<Chain, String> {
        let shown = path.display();
        let located = pem::certificates(pem)
            .map_err(|error| format!("cannot read certificate {shown}: {error}; replace the file"))?;
        if located.is_empty() {
            return Err(format!(
                "no certificate in {shown}: it has no CERTIFICATE section; name the PEM file of the chain, not the \
                 key or a DER file"
            ));
        }
        if located.len() > MAX_CERTIFICATES {
            return Err(format!("too many certificates in {shown}: a chain has at most {MAX_CERTIFICATES}"));
        }
        let facts = located.iter().map(|found| {
            CertificateFacts::read(&found.der).map_err(|error| {
                let line = found.line;
                format!("cannot read the certificate in line {line} of {shown}: {error}; replace the file")
            })
        });
        let facts: Vec<_> = facts.collect::<Result<_, _>>()?;
        let all = (0..facts.len()).collect();
        let order: Vec<usize> = if is_in_order(&facts) { all } else { ordered(&facts).unwrap_or(all) };
        let certificates = order.iter().map(|at| located[*at].der.clone()).collect();
        let facts = order.iter().map(|at| facts[*at].clone()).collect();
        Ok(Chain { path: path.to_owned(), certificates, facts })
    }

    /// Returns the facts of the server's own certificate.
    pub fn facts(&self) -> &CertificateFacts {
        &self.facts[0]
    }

    /// Whether the certificate of its issuer follows each certificate. A root at the end may be absent.
    pub fn is_in_order(&self) -> bool {
        is_in_order(&self.facts)
    }

    /// Joins the chain and the key that signs for it.
    pub fn with_key(&self, key: Arc<dyn SigningKey>) -> CertifiedKey {
        CertifiedKey::new(self.certificates.clone(), key)
    }
}

/// Whether `issuer` is the issuer of `certificate`, by name. An issuer's name is not empty (RFC 5280
/// §4.1.2.4), but the name of a server's own certificate often is.
fn names_issuer(certificate: &CertificateFacts, issuer: &CertificateFacts) -> bool {
    const EMPTY: [u8; 2] = [0x30, 0];
    certificate.issuer == issuer.subject && certificate.issuer != EMPTY
}

fn is_in_order(facts: &[CertificateFacts]) -> bool {
    facts.windows(2).all(|pair| pair[0].issuer == pair[1].subject)
}

/// Returns the indices of the certificates from the server's own to its root, also for a reversed chain;
/// `None` if the certificates are not a single chain.
fn ordered(facts: &[CertificateFacts]) -> Option<Vec<usize>> {
    let others = |at: usize| facts.iter().enumerate().filter(move |(other, _)| *other != at);
    let issues = |at: usize| others(at).any(|(_, other)| names_issuer(other, &facts[at]));
    let mut last = (0..facts.len()).find(|at| !issues(*at))?;
    let mut order = vec![last];
    while order.len() < facts.len() {
        let is_next = |at: &usize| !order.contains(at) && names_issuer(&facts[last], &facts[*at]);
        last = (0..facts.len()).find(is_next)?;
        order.push(last);
    }
    Some(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificates::generate;

    fn parse(pem: &str) -> Result<Chain, String> {
        Chain::parse(Path::new("chain.pem"), pem.as_bytes())
    }

    #[test]
    fn a_chain_has_its_certificates_in_order() {
        let (first, second) = (
            generate::pair(&["a.test"], &rcgen::PKCS_ED25519),
            generate::pair(&["b.test"], &rcgen::PKCS_ED25519),
        );
        let chain = parse(&format!("text before\n{}{}", first.certificate_pem, second.certificate_pem));
        let chain = chain.expect("two certificates");
        assert_eq!(chain.certificates, [first.certificate, second.certificate]);
        assert_eq!(chain.facts().names, ["a.test"]);
    }

    #[test]
    fn a_reversed_chain_is_put_in_order() {
        let issued = generate::issued(&["a.test"]);
        let chain = parse(&format!("{}{}", issued.issuer, issued.leaf)).expect("a chain");
        assert_eq!(chain.facts().names, ["a.test"]);
        assert!(chain.is_in_order());
        // A certificate of another chain leaves the order of the file.
        let other = generate::pair(&["b.test"], &rcgen::PKCS_ED25519).certificate_pem;
        let text = format!("{}{}{other}", issued.issuer, issued.leaf);
        assert!(!parse(&text).expect("three certificates").is_in_order());
    }

    #[test]
    fn a_file_without_a_usable_certificate_is_an_error_with_its_reason() {
        let pair = generate::pair(&["a.test"], &rcgen::PKCS_ED25519);
        let broken = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
        for (pem, expected) in [
            (pair.key_pem.clone(), "no certificate in chain.pem: it has no CERTIFICATE section"),
            (pair.certificate_pem.repeat(11), "too many certificates in chain.pem"),
            (format!("\n{broken}"), "cannot read the certificate in line 2 of chain.pem"),
            (pair.certificate_pem.replace("-----END", "----END"), "cannot read certificate chain.pem: line "),
        ] {
            let error = parse(&pem).expect_err(expected);
            assert!(error.starts_with(expected), "{error}");
        }
        let error = Chain::read(Path::new("/nonexistent/chain.pem")).expect_err("no file");
        assert!(error.starts_with("cannot read certificate /nonexistent/chain.pem: No such file"), "{error}");
    }
}
