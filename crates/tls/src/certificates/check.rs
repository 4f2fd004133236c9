//! The checks of configured certificates and keys.

use std::path::Path;

use rustls::sign::SigningKey;

use super::chain::Chain;
use super::finding::Finding;

/// The divisor of the lifetime: a certificate is reported if less than a sixth is left. Renewal begins at a
/// third.
const SOON: i64 = 6;

/// Checks a chain at the moment `now`, in seconds since 1970.
pub fn chain(chain: &Chain, now: i64) -> Vec<Finding> {
    let (facts, certificate) = (chain.facts(), || chain.path.clone());
    let (not_before, not_after) = (facts.not_before, facts.not_after);
    let mut found = Vec::new();
    if facts.key.is_none() {
        found.push(Finding::UnsupportedKey { certificate: certificate() });
    }
    if now > not_after {
        found.push(Finding::Expired { certificate: certificate(), not_after });
    } else if now < not_before {
        found.push(Finding::NotYetValid { certificate: certificate(), not_before });
    } else if not_after - now < (not_after - not_before) / SOON {
        found.push(Finding::ExpiresSoon { certificate: certificate(), not_after });
    }
    if facts.names.is_empty() && facts.addresses.is_empty() {
        found.push(Finding::NoNames { certificate: certificate() });
    }
    if !chain.is_in_order() {
        found.push(Finding::OutOfOrder { certificate: certificate() });
    }
    found
}

/// Checks that the key in `path` belongs to a chain.
pub fn key(chain: &Chain, path: &Path, key: &dyn SigningKey) -> Option<Finding> {
    let belongs = key.public_key().is_some_and(|public| public.as_ref() == chain.facts().public_key);
    let mismatch = || Finding::Mismatch { certificate: chain.path.clone(), key: path.to_owned() };
    (!belongs).then(mismatch)
}

/// Checks that every configured name, in lower case, is in one of the certificates.
pub fn names<'a>(names: impl IntoIterator<Item = &'a str>, chains: &[Chain]) -> Vec<Finding> {
    let is_uncovered = |name: &&str| !chains.iter().any(|chain| chain.facts().covers(name));
    let uncovered = names.into_iter().filter(is_uncovered);
    uncovered.map(|name| Finding::Uncovered { name: name.to_owned() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificates::finding::Severity;
    use crate::certificates::generate::{self, TestPair};
    use crate::certificates::key as keys;

    const DAY: i64 = 86_400;
    const START: i64 = 1_800_000_000;

    fn parsed(pair: &TestPair) -> Chain {
        Chain::parse(Path::new("a.pem"), pair.certificate_pem.as_bytes()).expect("a chain")
    }

    fn texts(findings: &[Finding]) -> Vec<String> {
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn validity_is_exact_at_both_ends() {
        let pair = generate::pair_between(&["a.test"], &rcgen::PKCS_ED25519, START, START + 60 * DAY);
        let at = |now: i64| texts(&chain(&parsed(&pair), now));
        assert!(at(START - 1)[0].starts_with("certificate a.pem is not valid before 2027-01-15"));
        assert!(at(START).is_empty());
        assert!(at(START + 50 * DAY).is_empty());
        assert_eq!(at(START + 50 * DAY + 1), ["certificate a.pem expires on 2027-03-16; renew it"]);
        assert_eq!(at(START + 60 * DAY), ["certificate a.pem expires on 2027-03-16; renew it"]);
        assert!(at(START + 60 * DAY + 1)[0].starts_with("certificate a.pem expired on 2027-03-16"));
    }

    #[test]
    fn a_key_of_another_certificate_is_an_error() {
        let (ours, other) = (
            generate::pair(&["a.test"], &rcgen::PKCS_ED25519),
            generate::pair(&["a.test"], &rcgen::PKCS_ED25519),
        );
        let path = Path::new("key.pem");
        let load = |pair: &TestPair| keys::parse(path, pair.key_pem.as_bytes()).expect("a key");
        assert!(key(&parsed(&ours), path, &*load(&ours)).is_none());
        let finding = key(&parsed(&ours), path, &*load(&other)).expect("another key");
        assert_eq!(finding.severity(), Severity::Error);
        assert!(finding.to_string().starts_with("key key.pem does not belong to certificate a.pem"));
    }

    #[test]
    fn names_without_a_certificate_are_reported() {
        let chains = [
            parsed(&generate::pair(&["*.a.test"], &rcgen::PKCS_ED25519)),
            parsed(&generate::pair(&["b.test", "192.0.2.1"], &rcgen::PKCS_ED25519)),
        ];
        let found = names(["www.a.test", "b.test", "192.0.2.1", "a.test", "192.0.2.2"], &chains);
        assert!(found.iter().all(|finding| finding.severity() == Severity::Warning));
        assert_eq!(found.len(), 2);
        assert!(found[0].to_string().starts_with("no certificate covers a.test: "));
        assert!(found[1].to_string().starts_with("no certificate covers 192.0.2.2: "));
    }

    #[test]
    fn missing_names_and_a_chain_out_of_order_are_reported() {
        let bare = generate::pair(&[], &rcgen::PKCS_ED25519);
        let now = parsed(&bare).facts().not_before;
        assert!(texts(&chain(&parsed(&bare), now))[0].starts_with("certificate a.pem has no subject"));
        let named = generate::issued(&["a.test"]);
        let good = format!("{}{}", named.leaf, named.issuer);
        let wrong = format!("{}{}{}", named.leaf, bare.certificate_pem, named.issuer);
        let check =
            |pem: &str| texts(&chain(&Chain::parse(Path::new("a.pem"), pem.as_bytes()).expect("pem"), now));
        assert!(check(&good).is_empty());
        assert!(check(&wrong)[0].starts_with("the chain in a.pem is out of order"));
    }
}
