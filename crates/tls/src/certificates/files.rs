//! The configured pairs of files, read and checked together.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::sign::SigningKey;

use super::chain::Chain;
use super::finding::{Finding, Severity};
use super::resolver::{Candidate, CertificateTable};
use super::{check, key};

/// The files of one certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain, in PEM.
    pub certificate: PathBuf,
    /// The private key, in PEM.
    pub key: PathBuf,
}

/// A chain and its key, of the same order as the configured files.
#[derive(Clone, Debug)]
pub struct CertificatePair {
    /// The chain.
    pub chain: Chain,
    /// The key that belongs to it.
    pub key: Arc<dyn SigningKey>,
}

/// The usable pairs, and everything that is wrong with the others and with these.
#[derive(Debug, Default)]
pub struct LoadedCertificates {
    /// Pairs without an error.
    pub pairs: Vec<CertificatePair>,
    /// Errors and warnings, in the order of the files; then names that no certificate covers.
    pub findings: Vec<Finding>,
}

impl LoadedCertificates {
    /// Reads and checks all pairs at `now` (seconds since 1970) for a server of these names, in lower case.
    pub fn load(files: &[CertificateFiles], names: &[String], now: i64) -> LoadedCertificates {
        let mut loaded = LoadedCertificates::default();
        for files in files {
            loaded.pairs.extend(load_pair(files, now, &mut loaded.findings));
        }
        let chains: Vec<Chain> = loaded.pairs.iter().map(|pair| pair.chain.clone()).collect();
        loaded.findings.extend(check::names(names.iter().map(String::as_str), &chains));
        loaded
    }

    /// Whether a server may start with these, or replace the ones that it has.
    pub fn is_usable(&self) -> bool {
        let has_error = self.findings.iter().any(|finding| finding.severity() == Severity::Error);
        !self.pairs.is_empty() && !has_error
    }

    /// Returns the table of a server that signs by itself; `None` if there is no pair.
    pub fn table(&self) -> Option<CertificateTable> {
        let candidate = |pair: &CertificatePair| Candidate::new(&pair.chain, Arc::clone(&pair.key));
        CertificateTable::new(self.pairs.iter().map(candidate).collect())
    }

    /// Returns the lines of the start block: the names of each certificate, and its expiry date.
    pub fn summaries(&self) -> impl Iterator<Item = String> {
        self.pairs.iter().map(|pair| pair.chain.facts().summary())
    }
}

/// Reads one pair; `None` if it is not usable.
fn load_pair(files: &CertificateFiles, now: i64, findings: &mut Vec<Finding>) -> Option<CertificatePair> {
    let chain = Chain::read(&files.certificate).map_err(|error| findings.push(Finding::Chain(error))).ok();
    let key = key::read(&files.key).map_err(|error| findings.push(Finding::Key(error))).ok();
    let chain = chain?;
    findings.extend(check::chain(&chain, now));
    let key = key?;
    let mismatch = check::key(&chain, &files.key, &*key);
    let is_usable = mismatch.is_none() && chain.facts().key.is_some();
    findings.extend(mismatch);
    is_usable.then_some(CertificatePair { chain, key })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::certificates::generate;

    /// Writes a pair to the files `name` and `name-key`.
    fn written(
        folder: &std::path::Path,
        name: &str,
        algorithm: &'static rcgen::SignatureAlgorithm,
    ) -> CertificateFiles {
        let pair = generate::pair(&[name], algorithm);
        let files =
            CertificateFiles { certificate: folder.join(name), key: folder.join(format!("{name}-key")) };
        fs::write(&files.certificate, pair.certificate_pem).expect("our own folder");
        fs::write(&files.key, pair.key_pem).expect("our own folder");
        files
    }

    fn now() -> i64 {
        x509_parser::time::ASN1Time::now().timestamp()
    }

    #[test]
    fn all_pairs_are_read_and_everything_wrong_is_told_at_once() {
        let folder = std::env::temp_dir().join(format!("tenfold-tls-files-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("our own folder");
        let rsa = written(&folder, "a.test", &rcgen::PKCS_RSA_SHA256);
        let ecdsa = written(&folder, "b.test", &rcgen::PKCS_ECDSA_P256_SHA256);
        let names = ["a.test", "b.test"].map(str::to_owned);
        let good = LoadedCertificates::load(&[rsa.clone(), ecdsa.clone()], &names, now());
        assert!(good.is_usable() && good.findings.is_empty(), "{:?}", good.findings);
        assert!(good.table().is_some());
        assert!(good.summaries().next().is_some_and(|line| line.starts_with("a.test, expires ")));
        let swapped = CertificateFiles { key: rsa.key.clone(), ..ecdsa.clone() };
        let absent = CertificateFiles { key: folder.join("absent"), ..ecdsa };
        let wrong = LoadedCertificates::load(&[rsa, swapped, absent], &names, now());
        let said: Vec<String> = wrong.findings.iter().map(Finding::to_string).collect();
        assert_eq!((wrong.pairs.len(), said.len()), (1, 3), "{said:?}");
        assert!(said[0].contains("does not belong to certificate"));
        assert!(said[1].starts_with("cannot read key "));
        assert!(said[2].starts_with("no certificate covers b.test"));
        assert!(!wrong.is_usable());
        assert!(!LoadedCertificates::load(&[], &[], now()).is_usable());
        fs::remove_dir_all(&folder).expect("our own folder");
    }
}
