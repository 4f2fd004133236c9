//! The certificate in the state folder. The public key in its file identifies the file of its key, so
//! replacing this single file replaces both.

use std::path::PathBuf;

use crate::certificates::chain::Chain;
use crate::certificates::facts::{CertificateFacts, KeyId};
use crate::certificates::{check, key};
use crate::state::{FolderLock, Secrecy, StateFolder};

use super::error::AcmeError;

const CERTIFICATE: &str = "certificate.pem";

/// A certificate issued by an authority.
#[derive(Clone, Debug)]
pub struct StoredCertificate {
    /// The chain as the authority sent it.
    pub chain: Chain,
    /// The file of its key.
    pub key: PathBuf,
}

/// The step of [`find`] and [`load`], for messages.
const READING: &str = "read the stored certificate";

/// Returns the certificate in the folder and the path of its key, which is not read; `None` if there is none.
pub fn find(folder: &StateFolder) -> Result<Option<StoredCertificate>, AcmeError> {
    let failed = READING;
    let Some(pem) = folder.read(CERTIFICATE).map_err(AcmeError::at(failed))? else { return Ok(None) };
    let chain = Chain::parse(&folder.path_of(CERTIFICATE), &pem).map_err(AcmeError::at(failed))?;
    let key = folder.path_of(&key_name(&chain.facts().key_id()));
    match key.try_exists() {
        Ok(true) => Ok(Some(StoredCertificate { chain, key })),
        Ok(false) => Err(AcmeError::new(failed, format!("its key {} is missing", key.display()))),
        Err(error) => Err(AcmeError::new(failed, error)),
    }
}

/// Returns the certificate in the folder after checking its key; `None` if there is none.
pub fn load(folder: &StateFolder) -> Result<Option<StoredCertificate>, AcmeError> {
    let Some(stored) = find(folder)? else { return Ok(None) };
    let signing = key::read(&stored.key).map_err(AcmeError::at(READING))?;
    match check::key(&stored.chain, &stored.key, &*signing) {
        None => Ok(Some(stored)),
        Some(finding) => Err(AcmeError::new(READING, finding)),
    }
}

/// Returns the file name of a key.
pub(super) fn key_name(id: &KeyId) -> String {
    format!("key-{}.pem", hex(&id.0[..8]))
}

/// Checks a chain that an authority sent at `now` (seconds since 1970). Its key was written to the folder
/// before the order.
pub(super) fn accept(
    folder: &StateFolder,
    pem: &str,
    names: &[String],
    now: i64,
) -> Result<Chain, AcmeError> {
    let failed = "accept the certificate";
    let chain = Chain::parse(&folder.path_of(CERTIFICATE), pem.as_bytes()).map_err(AcmeError::at(failed))?;
    let facts = chain.facts();
    if let Some(name) = names.iter().find(|name| !facts.covers(name)) {
        return Err(AcmeError::new(failed, format!("the authority issued it without {name}")));
    }
    let surplus = facts.names.iter().find(|name| !names.contains(name));
    if let Some(surplus) = surplus.cloned().or_else(|| facts.addresses.first().map(ToString::to_string)) {
        return Err(AcmeError::new(failed, format!("the authority issued it for {surplus}, too")));
    }
    if facts.not_after <= now {
        return Err(AcmeError::new(failed, "it has expired already; check the clock of this machine"));
    }
    if folder.read(&key_name(&facts.key_id())).map_err(AcmeError::at(failed))?.is_none() {
        return Err(AcmeError::new(failed, "the authority issued it for another key"));
    }
    Ok(chain)
}

/// Stores an accepted chain, and removes the keys of former certificates. On failure, the former certificate
/// stays.
pub(super) fn store(
    folder: &StateFolder,
    lock: &FolderLock,
    pem: &str,
    chain: Chain,
) -> Result<StoredCertificate, AcmeError> {
    folder
        .write(lock, CERTIFICATE, pem.as_bytes(), Secrecy::Public)
        .map_err(AcmeError::at("store the certificate"))?;
    let key = key_name(&chain.facts().key_id());
    // A key that cannot be removed is harmless.
    for name in folder.names().unwrap_or_default() {
        if name.starts_with("key-") && name != key {
            let _ = folder.remove(lock, &name);
        }
    }
    Ok(StoredCertificate { chain, key: folder.path_of(&key) })
}

/// Removes the certificate. Storing the next certificate removes its key.
pub(super) fn remove(folder: &StateFolder, lock: &FolderLock) -> Result<(), AcmeError> {
    folder.remove(lock, CERTIFICATE).map_err(AcmeError::at("remove the certificate"))
}

/// Whether a certificate is valid for all `names`.
pub(super) fn covers_all(facts: &CertificateFacts, names: &[String]) -> bool {
    names.iter().all(|name| facts.covers(name))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificates::generate::{self, TestPair};
    use crate::state::scratch::ScratchState;

    const NOW: i64 = 1_800_000_000;

    fn pair(names: &[&str]) -> TestPair {
        generate::pair_between(names, &rcgen::PKCS_ECDSA_P256_SHA256, NOW, NOW + 1000)
    }

    /// Writes the key of a certificate, as an order does first.
    fn prepare(folder: &StateFolder, lock: &FolderLock, pair: &TestPair) -> String {
        let facts = CertificateFacts::read(&pair.certificate).expect("a certificate");
        let name = key_name(&facts.key_id());
        folder.write(lock, &name, pair.key_pem.as_bytes(), Secrecy::Private).expect("room");
        name
    }

    #[test]
    fn a_certificate_replaces_the_former_with_its_key() {
        let scratch = ScratchState::new("stored");
        let folder = scratch.folder();
        let lock = folder.lock().expect("no error").expect("it is free");
        assert!(load(&folder).expect("no error").is_none());
        let names = ["a.test".to_owned()];
        for _ in 0..2 {
            let pair = pair(&["a.test"]);
            let key = prepare(&folder, &lock, &pair);
            let chain = accept(&folder, &pair.certificate_pem, &names, NOW).expect("accepted");
            store(&folder, &lock, &pair.certificate_pem, chain).expect("room");
            let stored = load(&folder).expect("no error").expect("it is stored");
            assert_eq!(stored.chain.certificates, [pair.certificate]);
            assert_eq!(stored.key, folder.path_of(&key));
            let keys =
                folder.names().expect("no error").iter().filter(|name| name.starts_with("key-")).count();
            assert_eq!(keys, 1);
        }
    }

    #[test]
    fn a_certificate_that_is_of_no_use_leaves_the_former() {
        let scratch = ScratchState::new("lies");
        let folder = scratch.folder();
        let lock = folder.lock().expect("no error").expect("it is free");
        let names = ["a.test".to_owned()];
        let good = pair(&["a.test"]);
        prepare(&folder, &lock, &good);
        let chain = accept(&folder, &good.certificate_pem, &names, NOW).expect("accepted");
        store(&folder, &lock, &good.certificate_pem, chain).expect("room");
        let (other_name, other_key) = (pair(&["b.test"]), pair(&["a.test"]));
        prepare(&folder, &lock, &other_name);
        for (pem, now, expected) in [
            (&other_name.certificate_pem, NOW, "the authority issued it without a.test"),
            (&other_key.certificate_pem, NOW, "the authority issued it for another key"),
            (&good.certificate_pem, NOW + 1000, "it has expired already"),
            (&"<html>".to_owned(), NOW, "no certificate in"),
        ] {
            let error = accept(&folder, pem, &names, now).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
            let kept = load(&folder).expect("no error").expect("the former");
            assert_eq!(kept.chain.certificates[..], *std::slice::from_ref(&good.certificate));
        }
    }
}
