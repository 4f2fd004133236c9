//! The settings of a certificate from a certificate authority.

use std::net::IpAddr;
use std::path::PathBuf;

/// The directory of Let's Encrypt.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// The most names of a certificate; Let's Encrypt has the same bound.
const MAX_NAMES: usize = 100;

/// The certificate to obtain, and its authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeSettings {
    /// DNS names in lower case, at least one.
    pub names: Vec<String>,
    /// The URL of the authority's directory.
    pub directory: String,
    /// The root certificates that verify the authority's own HTTPS; None: the system's.
    pub authority_roots: Option<PathBuf>,
    /// The email address for messages from the authority.
    pub contact: Option<String>,
    /// The file with the key of an external account, if the authority requires one.
    pub external_account: Option<PathBuf>,
    /// The proof of control over the names.
    pub validation: Validation,
}

/// The challenge that proves the control over a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Validation {
    /// A certificate on port 443 (RFC 8737).
    TlsAlpn01,
    /// A file on port 80 (RFC 8555 §8.3).
    Http01,
    /// A TXT record (RFC 8555 §8.4). The program gets `set` or `clear`, the name of the record and its value.
    /// It returns when all name servers have the record.
    Dns01 {
        /// The program.
        command: PathBuf,
    },
}

impl AcmeSettings {
    /// Checks that an authority can issue this certificate.
    pub fn check(&self) -> Result<(), String> {
        if self.names.is_empty() || self.names.len() > MAX_NAMES {
            return Err(format!(
                "invalid certificate with {} names; give 1 to {MAX_NAMES} names",
                self.names.len()
            ));
        }
        for name in &self.names {
            self.check_name(name)
                .map_err(|why| format!("cannot obtain a certificate for {name:?}: {why}"))?;
        }
        if !self.directory.starts_with("https://") {
            return Err(format!(
                "invalid tls-directory {:?}: give a URL that begins with https://",
                self.directory
            ));
        }
        Ok(())
    }

    fn check_name(&self, name: &str) -> Result<(), &'static str> {
        if name.parse::<IpAddr>().is_ok() {
            return Err("it is an IP address; name a file with tls-certificate instead");
        }
        let host = name.strip_prefix("*.").unwrap_or(name);
        if host != name && !matches!(self.validation, Validation::Dns01 { .. }) {
            return Err("a wildcard requires validation by DNS; name a program with tls-dns-command");
        }
        let is_label = |label: &str| {
            let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            (1..=63).contains(&label.len())
                && label.chars().all(is_inner)
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if host.len() > 253 || !host.split('.').all(is_label) {
            return Err("it is not a DNS name in lower case; write international names in their ASCII form");
        }
        if !host.contains('.') {
            return Err(
                "public authorities issue only for full names; use `--tls internal` for this machine",
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[&str], validation: Validation) -> Result<(), String> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let directory = LETS_ENCRYPT.to_owned();
        AcmeSettings {
            names,
            directory,
            validation,
            authority_roots: None,
            contact: None,
            external_account: None,
        }
        .check()
    }

    #[test]
    fn names_that_no_authority_takes_are_refused_before_it_is_asked() {
        let dns = || Validation::Dns01 { command: PathBuf::from("/bin/true") };
        assert_eq!(check(&["example.org", "xn--bcher-kva.example"], Validation::Http01), Ok(()));
        assert_eq!(check(&["*.example.org"], dns()), Ok(()));
        for (name, expected) in [
            ("*.example.org", "a wildcard requires validation by DNS"),
            ("192.0.2.1", "it is an IP address"),
            ("localhost", "public authorities issue only for full names"),
            ("Example.org", "it is not a DNS name in lower case"),
            ("a..org", "it is not a DNS name"),
            ("-a.org", "it is not a DNS name"),
            ("a/b.org", "it is not a DNS name"),
        ] {
            let error = check(&[name], Validation::TlsAlpn01).expect_err(name);
            assert!(error.contains(expected), "{error}");
        }
        assert!(check(&[], Validation::Http01).is_err());
        assert!(check(&["a.example"; 100], Validation::Http01).is_ok());
        assert!(check(&["a.example"; 101], Validation::Http01).is_err());
    }
}
