//! The configured pairs of files, read and checked together.

use std::fs::File;
use std::io::Seek;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::sign::SigningKey;

use super::chain::Chain;
use super::facts::CertificateFacts;
use super::resolver::{Candidate, CertificateTable};
use super::{check, key};

/// The files of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain, in PEM.
    pub certificate: PathBuf,
    /// The private key, in PEM.
    pub key: PathBuf,
}

/// The process that has the private keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHolder {
    /// The serving process.
    Own,
    /// The signing process, which reads them from descriptors that this process opened.
    Other,
}

/// A chain and its key.
#[derive(Clone, Debug)]
pub struct CertificatePair {
    /// The chain.
    pub chain: Chain,
    /// The key of the chain; `None` if the signing process has it.
    pub key: Option<Arc<dyn SigningKey>>,
}

/// An open copy of a key's file. The process that opened it does not read it.
#[derive(Clone, Debug)]
pub struct KeyFile {
    chain: Chain,
    path: PathBuf,
    file: Arc<File>,
}

impl KeyFile {
    /// Opens the file of the key of `chain`.
    pub fn open(chain: &Chain, path: &Path) -> Result<KeyFile, String> {
        let file = Arc::new(key::open_copy(path)?);
        Ok(KeyFile { chain: chain.clone(), path: path.to_owned(), file })
    }

    /// Reads the key and checks that it belongs to its certificate. The signing process calls this.
    pub fn read(&self) -> Result<Arc<dyn SigningKey>, String> {
        // Processes share the position in the file.
        let _ = (&*self.file).rewind();
        let file = self.file.try_clone().map_err(|error| key::unreadable(&self.path, &error))?;
        let key = key::read_open(&self.path, file)?;
        check::key(&self.chain, &self.path, &*key).map_or(Ok(key), Err)
    }
}

/// The usable pairs, and the errors and warnings about all pairs.
#[derive(Debug, Default)]
pub struct LoadedCertificates {
    /// The files of keys for the signing process.
    pub key_files: Vec<KeyFile>,
    /// Pairs without an error.
    pub pairs: Vec<CertificatePair>,
    /// Reasons why the server cannot use a pair.
    pub errors: Vec<String>,
    /// Reasons why clients may reject a certificate, then names that no certificate covers.
    pub warnings: Vec<String>,
    /// Whether a pair was kept from the running server, because its files are no longer valid.
    pub has_kept: bool,
}

impl LoadedCertificates {
    /// Reads and checks all pairs at `now` (seconds since 1970) for a server with these names, in lower case.
    /// Keys for the signing process are only opened: that process reads and checks them.
    pub fn load(
        files: &[CertificateFiles],
        names: &[String],
        now: i64,
        holder: KeyHolder,
    ) -> LoadedCertificates {
        let mut loaded = LoadedCertificates::default();
        for files in files {
            let pair = loaded.load_pair(files, now, holder);
            loaded.pairs.extend(pair);
        }
        let chains: Vec<Chain> = loaded.pairs.iter().map(|pair| pair.chain.clone()).collect();
        loaded.warnings.extend(check::names(names.iter().map(String::as_str), &chains));
        loaded
    }

    /// Keeps the pairs of `running` whose files are in `folder`. Returns whether any pair with a key for
    /// `holder` was kept. `keys` are the key files of the signing process.
    pub fn keep(
        &mut self,
        running: &LoadedCertificates,
        keys: &[KeyFile],
        folder: &Path,
        holder: KeyHolder,
    ) -> bool {
        for pair in running.pairs.iter().filter(|pair| pair.chain.path.starts_with(folder)) {
            let file = keys.iter().find(|file| file.chain.certificates == pair.chain.certificates);
            let key = match (holder, &pair.key, file) {
                (KeyHolder::Own, Some(key), _) => Some(Arc::clone(key)),
                (KeyHolder::Own, None, Some(file)) => file.read().ok(),
                (KeyHolder::Other, _, Some(file)) => {
                    self.key_files.push(file.clone());
                    None
                }
                (_, _, None) => continue,
            };
            if key.is_some() || holder == KeyHolder::Other {
                self.pairs.push(CertificatePair { chain: pair.chain.clone(), key });
                self.has_kept = true;
            }
        }
        self.has_kept
    }

    /// Returns the table of a server. `remote` returns the keys that the signing process has, by the facts of
    /// the certificate. `None` if no pair has a key.
    pub fn table(
        &self,
        remote: impl Fn(&CertificateFacts) -> Option<Arc<dyn SigningKey>>,
    ) -> Option<CertificateTable> {
        let candidate = |pair: &CertificatePair| {
            let key = pair.key.clone().or_else(|| remote(pair.chain.facts()))?;
            Some(Candidate::new(&pair.chain, key))
        };
        CertificateTable::new(self.pairs.iter().filter_map(candidate).collect())
    }

    /// Returns a line per certificate for the start block: its names and its expiry date.
    pub fn summaries(&self) -> impl Iterator<Item = String> {
        self.pairs.iter().map(|pair| pair.chain.facts().summary())
    }

    /// Reads a pair; `None` if it is not usable.
    fn load_pair(
        &mut self,
        files: &CertificateFiles,
        now: i64,
        holder: KeyHolder,
    ) -> Option<CertificatePair> {
        let chain = Chain::read(&files.certificate);
        let chain = chain.map_err(|error| self.errors.push(error)).ok();
        let file = key::open_copy(&files.key).map_err(|error| self.errors.push(error)).ok();
        if let Some(chain) = &chain {
            self.warnings.extend(check::chain(chain, now));
        }
        let is_supported = chain.as_ref().is_some_and(|chain| chain.facts().key.is_some());
        if let Some(chain) = chain.as_ref().filter(|_| !is_supported) {
            self.errors.push(format!(
                "cannot use certificate {}: its key type is not supported; use RSA, ECDSA on P-256, P-384 or P-521, \
                 or Ed25519",
                chain.path.display()
            ));
        }
        let (Some(chain), Some(file)) = (chain, file) else { return None };
        let file = KeyFile { chain: chain.clone(), path: files.key.clone(), file: Arc::new(file) };
        let key = match holder {
            KeyHolder::Own => Some(file.read().map_err(|error| self.errors.push(error)).ok()?),
            KeyHolder::Other => {
                self.key_files.push(file);
                None
            }
        };
        is_supported.then_some(CertificatePair { chain, key })
    }
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

    fn kept_pairs_do_not_depend_on_their_files(
        folder: &Path,
        own: &LoadedCertificates,
        opened: &LoadedCertificates,
    ) {
        fs::write(folder.join("a.test-key"), "cut").expect("our own folder");
        fs::remove_file(folder.join("a.test")).expect("our own folder");
        let (mut kept, (own_keys, keys)) =
            (LoadedCertificates::default(), (&own.key_files[..], &opened.key_files[..]));
        assert!(!kept.keep(opened, keys, Path::new("/elsewhere"), KeyHolder::Other));
        assert!(!kept.keep(own, own_keys, folder, KeyHolder::Other), "the signing process has no key file");
        assert!(kept.keep(opened, keys, folder, KeyHolder::Other));
        assert!(kept.key_files[0].read().is_ok(), "the key is not a copy");
        for (running, keys) in [(own, own_keys), (opened, keys)] {
            let mut kept = LoadedCertificates::default();
            assert!(kept.keep(running, keys, folder, KeyHolder::Own) && kept.table(|_| None).is_some());
        }
    }

    #[test]
    fn all_pairs_are_read_and_all_errors_reported() {
        let folder = std::env::temp_dir().join(format!("tenfold-tls-files-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("our own folder");
        let rsa = written(&folder, "a.test", &rcgen::PKCS_RSA_SHA256);
        let ecdsa = written(&folder, "b.test", &rcgen::PKCS_ECDSA_P256_SHA256);
        let names = ["a.test", "b.test"].map(str::to_owned);
        let good = LoadedCertificates::load(&[rsa.clone(), ecdsa.clone()], &names, now(), KeyHolder::Own);
        assert!(good.pairs.len() == 2 && good.errors.is_empty() && good.warnings.is_empty(), "{good:?}");
        assert!(good.table(|_| None).is_some());
        assert!(good.summaries().next().is_some_and(|line| line.starts_with("a.test, expires ")));
        let swapped = CertificateFiles { key: rsa.key.clone(), ..ecdsa.clone() };
        let absent = CertificateFiles { key: folder.join("absent"), ..ecdsa };
        let wrong =
            LoadedCertificates::load(&[rsa.clone(), swapped.clone(), absent], &names, now(), KeyHolder::Own);
        assert_eq!((wrong.pairs.len(), wrong.errors.len(), wrong.warnings.len()), (1, 2, 1), "{wrong:?}");
        assert!(wrong.errors[0].contains("does not belong to certificate"));
        assert!(wrong.errors[1].starts_with("cannot read key "));
        assert!(wrong.warnings[0].starts_with("no certificate covers b.test"));
        let opened = LoadedCertificates::load(&[rsa, swapped], &[], now(), KeyHolder::Other);
        assert!(!opened.pairs.is_empty() && opened.table(|_| None).is_none(), "this process has a key");
        let read: Vec<_> =
            opened.key_files.iter().map(|file| (file.read().is_ok(), file.read().is_ok())).collect();
        assert_eq!(read, [(true, true), (false, false)], "a second read fails");
        kept_pairs_do_not_depend_on_their_files(&folder, &good, &opened);
        fs::remove_dir_all(&folder).expect("our own folder");
    }
}
