//! A certificate authority of this machine: HTTPS for local development, without any other service.

mod constraints;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use x509_parser::time::ASN1Time;

use self::constraints::Permitted;
use crate::certificates::chain::Chain;
use crate::certificates::facts::KeyId;
use crate::certificates::files::CertificateFiles;
use crate::certificates::{check, key};
use crate::state::{FolderLock, Secrecy, StateFolder};

const DAY: i64 = 86_400;

/// The lifetime of the root certificate, which users must trust manually.
const ROOT_LIFETIME: i64 = 3650 * DAY;

/// The lifetime of the server's certificate. A start in its last third renews it.
const LIFETIME: i64 = 90 * DAY;

/// Seconds by which the validity begins in the past, because clocks differ.
const SKEW: i64 = 3600;

const ROOT: &str = "root.pem";
const ROOT_KEY: &str = "root-key.pem";
const CERTIFICATE: &str = "internal.pem";
const KEY: &str = "internal-key.pem";

/// The origin of a root certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootOrigin {
    /// It existed before.
    Kept,
    /// It is the first root, so no client trusts it yet.
    Made,
    /// It replaces a root that would have expired before the certificate.
    Replaced,
}

fn failed(error: impl fmt::Display) -> String {
    format!("cannot create an internal certificate: {error}")
}

/// Returns the names of this machine: `localhost`, the loopback addresses, and the host name.
pub fn machine_names() -> Vec<String> {
    let mut names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    let host = rustix::system::uname().nodename().to_string_lossy().to_ascii_lowercase();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    if !host.is_empty() && host != "localhost" && host.chars().all(is_name) {
        // Multicast DNS (RFC 6762) finds the machine by this name.
        names.extend((!host.contains('.')).then(|| format!("{host}.local")));
        names.push(host);
    }
    names
}

/// Returns the paths of the certificate's files, which may not exist.
pub fn files(folder: &StateFolder) -> CertificateFiles {
    CertificateFiles { certificate: folder.path_of(CERTIFICATE), key: folder.path_of(KEY) }
}

/// Returns the file of the root certificate.
pub fn root(folder: &StateFolder) -> PathBuf {
    folder.path_of(ROOT)
}

/// Keeps a certificate for `names` in the folder. Creates it if it is absent, if its last third has begun
/// at `now` (seconds since 1970), or if it lacks a name. `may_begin` allows an empty folder, and thus a first
/// root.
///
/// A new root permits `names` and private names. The certificate omits names that an earlier root does not permit,
/// because clients would refuse the whole certificate.
///
/// # Errors
/// Fails if the root is damaged or missing: it is not replaced, because clients trust it. Fails also if
/// another process holds the folder's lock for seconds.
pub fn certificate(
    folder: &StateFolder,
    names: &[String],
    now: i64,
    may_begin: bool,
) -> Result<RootOrigin, String> {
    let lock = lock(folder)?;
    let (root, root_origin) = match RootAuthority::load(folder, now)? {
        FoundRoot::Usable(root) => (*root, RootOrigin::Kept),
        FoundRoot::Ends => (RootAuthority::make(folder, &lock, names, now)?, RootOrigin::Replaced),
        FoundRoot::Absent if may_begin => (RootAuthority::make(folder, &lock, names, now)?, RootOrigin::Made),
        FoundRoot::Absent => return Err(lost(folder, ROOT, "it is missing")),
    };
    let names: Vec<String> = names.iter().filter(|name| root.permitted.permits(name)).cloned().collect();
    if root_origin != RootOrigin::Kept || !is_usable(folder, &root, &names, now)? {
        root.issue(folder, &lock, &names, now)?;
    }
    Ok(root_origin)
}

/// Returns a warning about the names that the certificate omits, because the root does not permit them.
pub fn omitted(folder: &StateFolder, names: &[String]) -> Option<String> {
    let root = Chain::read(&folder.path_of(ROOT)).ok()?;
    let permitted = Permitted::read(&root.certificates[0]).ok()?;
    // No root permits a malformed name.
    let possible = Permitted::with(names);
    let is_omitted = |name: &&str| !permitted.permits(name) && possible.permits(name);
    let omitted: Vec<&str> = names.iter().map(String::as_str).filter(is_omitted).collect();
    (!omitted.is_empty()).then(|| {
        format!(
            "the root certificate {} does not permit these names, so the certificate omits them: {}; to make a root \
             that permits them, which clients must trust, stop the server, remove {} and start it",
            root.path.display(),
            omitted.join(", "),
            folder.path_of("").display()
        )
    })
}

/// Takes the lock, which another starting server may hold for some milliseconds.
fn lock(folder: &StateFolder) -> Result<FolderLock, String> {
    for _ in 0..100 {
        if let Some(lock) = folder.lock().map_err(failed)? {
            return Ok(lock);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(failed("another process has locked the state folder for 5 s; stop it, or name another folder"))
}

/// Returns the commands that add the root to trust stores of this machine. The server itself changes no trust
/// store.
pub fn how_to_trust(root: &Path, port: &str) -> String {
    let root = root.display();
    format!(
        "root certificate: {root}\n\
         curl:             curl --cacert {root} https://localhost:{port}/\n\
         Debian, Ubuntu:   sudo cp {root} /usr/local/share/ca-certificates/tenfold-internal.crt && \
         sudo update-ca-certificates\n\
         Fedora:           sudo trust anchor {root}\n\
         Chromium:         certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n tenfold-internal -i {root}\n\
         Firefox:          Settings, Privacy & Security, View Certificates, Authorities, Import\n\
         Its key stays in the same folder. Remove the certificate from these stores when you no longer need it."
    )
}

/// The authority: its certificate and key.
struct RootAuthority {
    chain: Chain,
    key: KeyPair,
    pem: String,
    permitted: Permitted,
}

/// The state of the authority in a folder.
enum FoundRoot {
    /// No authority was ever used.
    Absent,
    /// It would expire before a new certificate.
    Ends,
    Usable(Box<RootAuthority>),
}

/// The error of a root that clients trust but that cannot be used.
fn lost(folder: &StateFolder, name: &str, why: impl fmt::Display) -> String {
    failed(format_args!(
        "cannot use {}: {why}; clients trust this root, so restore the file, or stop the server, remove {} and start \
         it to make a new root",
        folder.path_of(name).display(),
        folder.path_of("").display()
    ))
}

impl RootAuthority {
    /// Reads the authority. Fails if a file is missing or damaged.
    fn load(folder: &StateFolder, now: i64) -> Result<FoundRoot, String> {
        let Some(pem) = folder.read(ROOT).map_err(failed)? else {
            // A start that was interrupted before it wrote the root left no certificate.
            return match folder.read(CERTIFICATE).map_err(failed)? {
                Some(_) => Err(lost(folder, ROOT, "it is missing")),
                None => Ok(FoundRoot::Absent),
            };
        };
        let chain = Chain::parse(&folder.path_of(ROOT), &pem).map_err(|error| lost(folder, ROOT, error))?;
        if now + LIFETIME >= chain.facts().not_after {
            return Ok(FoundRoot::Ends);
        }
        let path = folder.path_of(ROOT_KEY);
        let text = folder.read(ROOT_KEY).map_err(failed)?;
        let text = text.ok_or_else(|| lost(folder, ROOT_KEY, "it is missing"))?;
        let bad_key = |error: &dyn fmt::Display| lost(folder, ROOT_KEY, error);
        let signing = key::parse(&path, &text).map_err(|error| bad_key(&error))?;
        if let Some(error) = check::key(&chain, &path, &*signing) {
            return Err(bad_key(&error));
        }
        let text = String::from_utf8(text).map_err(|error| bad_key(&error))?;
        let key = KeyPair::from_pem(&text).map_err(|error| bad_key(&error))?;
        let pem = String::from_utf8(pem).map_err(|error| lost(folder, ROOT, error))?;
        let permitted = Permitted::read(&chain.certificates[0]).map_err(|error| lost(folder, ROOT, error))?;
        Ok(FoundRoot::Usable(Box::new(RootAuthority { chain, key, pem, permitted })))
    }

    fn make(
        folder: &StateFolder,
        lock: &FolderLock,
        names: &[String],
        now: i64,
    ) -> Result<RootAuthority, String> {
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.name_constraints = Permitted::with(names).into_extension();
        params.distinguished_name = DistinguishedName::new();
        // Trust stores distinguish authorities by name.
        let [a, b, c, d, ..] = KeyId::of(key.public_key_raw()).0;
        let name = format!("Tenfold internal authority {a:02x}{b:02x}{c:02x}{d:02x}");
        params.distinguished_name.push(DnType::CommonName, name);
        validity(&mut params, now - SKEW, now + ROOT_LIFETIME)?;
        let pem = params.self_signed(&key).map_err(failed)?.pem();
        // The key is written first, because the certificate is useless without its key.
        folder.write(lock, ROOT_KEY, key.serialize_pem().as_bytes(), Secrecy::Private).map_err(failed)?;
        folder.write(lock, ROOT, pem.as_bytes(), Secrecy::Public).map_err(failed)?;
        let chain = Chain::parse(&folder.path_of(ROOT), pem.as_bytes()).map_err(failed)?;
        let permitted = Permitted::read(&chain.certificates[0]).map_err(failed)?;
        Ok(RootAuthority { chain, key, pem, permitted })
    }

    /// Creates and writes a certificate for the server.
    fn issue(
        &self,
        folder: &StateFolder,
        lock: &FolderLock,
        names: &[String],
        now: i64,
    ) -> Result<(), String> {
        let mut params = CertificateParams::new(names).map_err(failed)?;
        params.distinguished_name = DistinguishedName::new();
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        validity(&mut params, now - SKEW, now + LIFETIME)?;
        let issuer = Issuer::from_ca_cert_pem(&self.pem, &self.key).map_err(failed)?;
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &issuer).map_err(failed)?;
        folder.write(lock, KEY, key.serialize_pem().as_bytes(), Secrecy::Private).map_err(failed)?;
        folder.write(lock, CERTIFICATE, certificate.pem().as_bytes(), Secrecy::Public).map_err(failed)
    }
}

/// Whether the server's certificate and its key need not be created again.
fn is_usable(folder: &StateFolder, root: &RootAuthority, names: &[String], now: i64) -> Result<bool, String> {
    let (Some(pem), Some(text)) =
        (folder.read(CERTIFICATE).map_err(failed)?, folder.read(KEY).map_err(failed)?)
    else {
        return Ok(false);
    };
    let read = || {
        let chain = Chain::parse(&folder.path_of(CERTIFICATE), &pem).ok()?;
        let key = key::parse(&folder.path_of(KEY), &text).ok()?;
        let facts = chain.facts();
        let lives = facts.not_before <= now && facts.not_after - now > LIFETIME / 3;
        let is_ours = facts.issuer == root.chain.facts().subject;
        let belongs = check::key(&chain, &folder.path_of(KEY), &*key).is_none();
        Some(lives && is_ours && belongs && names.iter().all(|name| facts.covers(name)))
    };
    Ok(read().unwrap_or(false))
}

fn validity(params: &mut CertificateParams, not_before: i64, not_after: i64) -> Result<(), String> {
    let moment = |seconds| ASN1Time::from_timestamp(seconds).map(|time| time.to_datetime()).map_err(failed);
    (params.not_before, params.not_after) = (moment(not_before)?, moment(not_after)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::pki_types::{ServerName, UnixTime};
    use rustls::{RootCertStore, client::WebPkiServerVerifier};

    use super::*;
    use crate::config::provider;
    use crate::state::scratch::ScratchState;

    const NOW: i64 = 1_800_000_000;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn made(folder: &StateFolder, wanted: &[&str], now: i64) -> (Chain, RootOrigin) {
        let origin = certificate(folder, &names(wanted), now, true).expect("a certificate");
        (Chain::read(&files(folder).certificate).expect("a certificate"), origin)
    }

    /// Verifies a certificate as a client that trusts the root.
    fn verify(folder: &StateFolder, chain: &Chain, name: &str) -> Result<(), rustls::Error> {
        let mut roots = RootCertStore::empty();
        roots.add(Chain::read(&root(folder)).expect("a root").certificates.remove(0)).expect("a root");
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider());
        let verifier = verifier.build().expect("a verifier");
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(NOW.unsigned_abs()));
        let name = ServerName::try_from(name).expect("a name").to_owned();
        let own = &chain.certificates[0];
        rustls::client::danger::ServerCertVerifier::verify_server_cert(&*verifier, own, &[], &name, &[], now)
            .map(|_| ())
    }

    /// Issues a certificate, whether the root permits the names or not.
    fn forged(folder: &StateFolder, wanted: &[&str]) -> Chain {
        let lock = lock(folder).expect("it is free");
        let FoundRoot::Usable(root) = RootAuthority::load(folder, NOW).expect("a root") else {
            panic!("there is a root")
        };
        root.issue(folder, &lock, &names(wanted), NOW).expect("a certificate");
        Chain::read(&files(folder).certificate).expect("a certificate")
    }

    #[test]
    fn the_root_permits_only_private_names_and_those_of_its_first_certificate() {
        let scratch = ScratchState::new("constraints");
        let folder = scratch.folder();
        made(&folder, &["localhost", "shop.example", "192.0.2.7"], NOW);
        for name in ["shop.example", "www.shop.example", "nas.lan", "192.0.2.7", "127.0.0.9", "fd00::1"] {
            verify(&folder, &forged(&folder, &[name]), name)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        let wildcard = forged(&folder, &["*.shop.example"]);
        verify(&folder, &wildcard, "www.shop.example").expect("its domain is permitted");
        for name in ["bank.example", "192.0.2.8", "2001:db8::1"] {
            assert!(verify(&folder, &forged(&folder, &[name]), name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_name_that_the_root_does_not_permit_is_omitted() {
        let scratch = ScratchState::new("omitted");
        let folder = scratch.folder();
        made(&folder, &["localhost"], NOW);
        let wanted = ["localhost", "renamed.example", "new.lan", "203.0.113.9"];
        let (first, origin) = made(&folder, &wanted, NOW);
        assert_eq!(origin, RootOrigin::Kept);
        for name in ["localhost", "new.lan"] {
            verify(&folder, &first, name).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        assert!(!first.facts().covers("renamed.example") && !first.facts().covers("203.0.113.9"));
        let (again, _) = made(&folder, &wanted, NOW);
        assert_eq!(again.certificates, first.certificates, "it is kept");
        let warning = omitted(&folder, &names(&wanted)).expect("two names");
        assert!(warning.contains("omits them: renamed.example, 203.0.113.9; "), "{warning}");
        assert_eq!(omitted(&folder, &names(&["localhost", "b.lan", "12"])), None);
    }

    #[test]
    fn a_root_of_an_earlier_version_permits_all_names() {
        let scratch = ScratchState::new("unconstrained");
        let folder = scratch.folder();
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        validity(&mut params, NOW - SKEW, NOW + ROOT_LIFETIME).expect("times");
        let pem = params.self_signed(&key).expect("a root").pem();
        std::fs::write(folder.path_of(ROOT), &pem).expect("our own folder");
        std::fs::write(folder.path_of(ROOT_KEY), key.serialize_pem()).expect("our own folder");
        let (chain, origin) = made(&folder, &["localhost", "shop.example"], NOW);
        assert_eq!((origin, omitted(&folder, &names(&["shop.example"]))), (RootOrigin::Kept, None));
        verify(&folder, &chain, "shop.example").expect("it is permitted");
        assert_eq!(std::fs::read_to_string(root(&folder)).expect("it is there"), pem);
    }

    #[test]
    fn a_client_that_trusts_the_root_accepts_the_certificate_for_each_name() {
        let scratch = ScratchState::new("trust");
        let folder = scratch.folder();
        let wanted = machine_names();
        assert!(certificate(&folder, &wanted, NOW, true) == Ok(RootOrigin::Made) && wanted.len() >= 3);
        let chain = Chain::read(&files(&folder).certificate).expect("a certificate");
        let path = root(&folder);
        for name in &wanted {
            verify(&folder, &chain, name).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        assert!(verify(&folder, &chain, "other.test").is_err());
        assert!(how_to_trust(&path, "8443").contains(&format!("curl --cacert {}", path.display())));
    }

    #[test]
    fn root_and_certificate_are_kept_until_their_time_and_made_again_after_it() {
        let scratch = ScratchState::new("kept");
        let folder = scratch.folder();
        let (first, _) = made(&folder, &["a.test"], NOW);
        let (again, origin) = made(&folder, &["a.test"], NOW + LIFETIME * 2 / 3 - 1);
        assert_eq!((again.certificates, origin), (first.certificates, RootOrigin::Kept));
        let (renewed, origin) = made(&folder, &["a.test"], NOW + LIFETIME * 2 / 3);
        assert_eq!(renewed.facts().not_after, NOW + LIFETIME * 2 / 3 + LIFETIME);
        assert_eq!(origin, RootOrigin::Kept);
        let (more, _) = made(&folder, &["a.test", "b.test"], NOW + LIFETIME * 2 / 3);
        assert!(more.facts().covers("b.test"));
        let (_, late) = made(&folder, &["a.test"], NOW + ROOT_LIFETIME - LIFETIME);
        assert_eq!(late, RootOrigin::Replaced, "the root would not outlive the certificate");
        let (_, moved) = made(&folder, &["a.test"], NOW - 365 * DAY);
        assert_eq!(moved, RootOrigin::Kept, "the clock went back");
    }

    #[test]
    fn an_interrupted_write_of_a_certificate_is_repaired() {
        for missing in [CERTIFICATE, KEY] {
            let scratch = ScratchState::new(missing);
            let folder = scratch.folder();
            made(&folder, &["a.test"], NOW);
            let read = || std::fs::read(root(&folder)).expect("it is there");
            let first = read();
            for damage in damages(&folder, missing) {
                damage();
                made(&folder, &["a.test"], NOW);
                assert_eq!(read(), first);
            }
        }
        let scratch = ScratchState::new("first-start");
        let folder = scratch.folder();
        std::fs::write(folder.path_of(ROOT_KEY), "half").expect("our own folder");
        assert_eq!(made(&folder, &["a.test"], NOW).1, RootOrigin::Made);
    }

    /// Returns two kinds of damage to a file.
    fn damages<'a>(folder: &'a StateFolder, name: &'a str) -> [Box<dyn Fn() + 'a>; 2] {
        let path = folder.path_of(name);
        let cut = path.clone();
        [
            Box::new(move || std::fs::remove_file(&path).expect("it is there")),
            Box::new(move || std::fs::write(&cut, b"-----BEGIN").expect("our own folder")),
        ]
    }

    #[test]
    fn a_damaged_root_is_never_replaced() {
        for name in [ROOT, ROOT_KEY] {
            let scratch = ScratchState::new(&format!("damaged-{name}"));
            let folder = scratch.folder();
            made(&folder, &["a.test"], NOW);
            for damage in damages(&folder, name) {
                damage();
                let refused = certificate(&folder, &names(&["a.test"]), NOW, true).expect_err("refused");
                assert!(refused.contains(name) && refused.contains("restore the file"), "{refused}");
            }
        }
        let scratch = ScratchState::new("emptied");
        let folder = scratch.folder();
        assert!(
            certificate(&folder, &names(&["a.test"]), NOW, false).is_err(),
            "a running server had a root"
        );
        assert!(folder.read(ROOT).expect("no error").is_none(), "no new root");
    }
}
