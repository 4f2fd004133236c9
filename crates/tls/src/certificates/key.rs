//! Private keys in PEM files.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::SigningKey;
use zeroize::Zeroizing;

use super::{file, pem};

pub(super) fn unreadable(path: &Path, error: &io::Error) -> String {
    format!("cannot read key {}: {error}; name a PEM file that the server may read", path.display())
}

/// Reads the private key of a PEM file: PKCS #8, PKCS #1 (RSA) or SEC 1 (EC). Wipes the text from memory,
/// because processes without access to the key are forked later.
pub fn read(path: &Path) -> Result<Arc<dyn SigningKey>, String> {
    read_open(path, open(path)?)
}

/// Opens the file of a private key, for another process to read.
pub fn open(path: &Path) -> Result<File, String> {
    file::open(path).map_err(|error| unreadable(path, &error))
}

/// Opens a copy of a private key's file, which survives changes of the file, for another process to read.
pub fn open_copy(path: &Path) -> Result<File, String> {
    open(path).and_then(|file| file::copy(&file).map_err(|error| unreadable(path, &error)))
}

/// Reads a private key from a descriptor that another process opened; `path` is for messages.
pub fn read_open(path: &Path, file: File) -> Result<Arc<dyn SigningKey>, String> {
    let pem = file::read_to_end(file).map(Zeroizing::new).map_err(|error| unreadable(path, &error))?;
    parse(path, &pem)
}

/// Parses the PEM text of a private key; `path` is for messages.
pub fn parse(path: &Path, pem: &[u8]) -> Result<Arc<dyn SigningKey>, String> {
    let path = path.display();
    let unsupported = |error: &str| {
        format!(
            "cannot use key {path}: {error}; use RSA from 2,048 bits, ECDSA on P-256, P-384 or P-521, or Ed25519"
        )
    };
    let encrypted = |header: &[u8]| pem.windows(header.len()).any(|window| window == header);
    if encrypted(b"BEGIN ENCRYPTED PRIVATE KEY") || encrypted(b"Proc-Type: 4,ENCRYPTED") {
        return Err(format!(
            "cannot read key {path}: it is encrypted; decrypt it with `openssl pkey -in {path} -out NEW`"
        ));
    }
    let der = pem::private_key(pem)
        .map_err(|error| format!("cannot read key {path}: {error}; replace the file"))?
        .ok_or_else(|| {
            format!("no private key in {path}: it has no PRIVATE KEY section; name the PEM file of the key")
        })?;
    let der = PrivateKeyDer::try_from(&der[..]).map_err(unsupported)?;
    any_supported_type(&der).map_err(|error| unsupported(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificates::generate;

    fn error(pem: &str) -> String {
        parse(Path::new("key.pem"), pem.as_bytes()).expect_err("no key")
    }

    #[test]
    fn a_key_is_read_and_an_error_has_its_reason() {
        let pair = generate::pair(&["a.test"], &rcgen::PKCS_ECDSA_P256_SHA256);
        parse(Path::new("key.pem"), pair.key_pem.as_bytes()).expect("a key");
        assert!(error(&pair.certificate_pem).starts_with("no private key in key.pem"));
        let encrypted = pair.key_pem.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
        assert!(error(&encrypted).starts_with("cannot read key key.pem: it is encrypted; decrypt it"));
        let broken = "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n";
        assert!(error(broken).starts_with("cannot use key key.pem"), "{}", error(broken));
        let cut = pair.key_pem.replacen("MIG", "", 1);
        assert!(error(&cut).starts_with("cannot "), "{}", error(&cut));
        let cut = pair.key_pem.lines().next().expect("a line");
        assert_eq!(
            error(cut),
            "cannot read key key.pem: line 1: the file ends within the section of line 1; replace the file"
        );
        assert!(error(&pair.key_pem.repeat(2)).contains(": a second private key;"));
        let other = pair.key_pem.replace("PRIVATE KEY", "OPENSSH PRIVATE KEY");
        assert!(error(&other).contains("line 1: the section OPENSSH PRIVATE KEY cannot be used here"));
    }

    #[test]
    fn a_key_is_found_between_other_sections_and_with_either_line_end() {
        let pem = generate::pair(&["a.test"], &rcgen::PKCS_ECDSA_P256_SHA256).key_pem;
        let public = |pem: &str| {
            let key = parse(Path::new("key.pem"), pem.as_bytes()).expect("a key");
            key.public_key().expect("it has one").to_vec()
        };
        let other = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
        let joined = format!("\u{feff}{}{}{other}", other.trim_end(), pem.trim_end());
        for spelling in [pem.replace('\n', "\r\n"), format!("a key:\n{other}{pem}{other}"), joined] {
            assert_eq!(public(&spelling), public(&pem), "{spelling}");
        }
    }
}
