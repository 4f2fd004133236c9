//! The checks of configured certificates and keys.

use std::path::Path;

use rustls::sign::SigningKey;

use super::chain::Chain;
use super::facts::date;

/// The divisor of the lifetime: a certificate is reported if less than a sixth is left. Renewal begins at a
/// third.
const SOON: i64 = 6;

/// Returns the warnings about a chain at the moment `now`, in seconds since 1970. An expired certificate is no
/// error, because a server that does not start serves no client at all.
pub fn chain(chain: &Chain, now: i64) -> Vec<String> {
    let (facts, path) = (chain.facts(), chain.path.display());
    let (not_before, not_after) = (facts.not_before, facts.not_after);
    let mut found = Vec::new();
    if now > not_after {
        found.push(format!(
            "certificate {path} expired on {}: clients will reject it; renew it",
            date(not_after)
        ));
    } else if now < not_before {
        found.push(format!(
            "certificate {path} is not valid before {}: clients will reject it; check the clock of this machine",
            date(not_before)
        ));
    } else if not_after - now < (not_after - not_before) / SOON {
        found.push(format!("certificate {path} expires on {}; renew it", date(not_after)));
    }
    if facts.names.is_empty() && facts.addresses.is_empty() {
        found.push(format!(
            "certificate {path} has no subject alternative name: clients will reject it; issue it with DNS names"
        ));
    }
    if !chain.is_in_order() {
        found.push(format!(
            "the chain in {path} is out of order: some clients will reject it; put each issuer after the certificate \
             that it signed"
        ));
    }
    found
}

/// Returns the error of a key in `path` that does not belong to a chain.
pub fn key(chain: &Chain, path: &Path, key: &dyn SigningKey) -> Option<String> {
    let belongs = key.public_key().is_some_and(|public| public.as_ref() == chain.facts().public_key);
    (!belongs).then(|| {
        format!(
            "key {} does not belong to certificate {}: their public keys differ; list keys in the order of their \
             certificates",
            path.display(),
            chain.path.display()
        )
    })
}

/// Returns a warning for each configured name, in lower case, that no certificate contains.
pub fn names<'a>(names: impl IntoIterator<Item = &'a str>, chains: &[Chain]) -> Vec<String> {
    let is_uncovered = |name: &&str| !chains.iter().any(|chain| chain.facts().covers(name));
    let warning = |name| {
        format!("no certificate covers {name}: clients will reject the default one; add a certificate for it")
    };
    names.into_iter().filter(is_uncovered).map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificates::generate::{self, TestPair};
    use crate::certificates::key as keys;

    const DAY: i64 = 86_400;
    const START: i64 = 1_800_000_000;

    fn parsed(pair: &TestPair) -> Chain {
        Chain::parse(Path::new("a.pem"), pair.certificate_pem.as_bytes()).expect("a chain")
    }

    #[test]
    fn validity_is_exact_at_both_ends() {
        let pair = generate::pair_between(&["a.test"], &rcgen::PKCS_ED25519, START, START + 60 * DAY);
        let at = |now: i64| chain(&parsed(&pair), now);
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
        let error = key(&parsed(&ours), path, &*load(&other)).expect("another key");
        assert!(error.starts_with("key key.pem does not belong to certificate a.pem"));
    }

    #[test]
    fn names_without_a_certificate_are_reported() {
        let chains = [
            parsed(&generate::pair(&["*.a.test"], &rcgen::PKCS_ED25519)),
            parsed(&generate::pair(&["b.test", "192.0.2.1"], &rcgen::PKCS_ED25519)),
        ];
        let found = names(["www.a.test", "b.test", "192.0.2.1", "a.test", "192.0.2.2"], &chains);
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("no certificate covers a.test: "));
        assert!(found[1].starts_with("no certificate covers 192.0.2.2: "));
    }

    #[test]
    fn missing_names_and_a_chain_out_of_order_are_reported() {
        let bare = generate::pair(&[], &rcgen::PKCS_ED25519);
        let now = parsed(&bare).facts().not_before;
        assert!(chain(&parsed(&bare), now)[0].starts_with("certificate a.pem has no subject"));
        let named = generate::issued(&["a.test"]);
        let good = format!("{}{}", named.leaf, named.issuer);
        let wrong = format!("{}{}{}", named.leaf, bare.certificate_pem, named.issuer);
        let check = |pem: &str| chain(&Chain::parse(Path::new("a.pem"), pem.as_bytes()).expect("pem"), now);
        assert!(check(&good).is_empty());
        assert!(check(&wrong)[0].starts_with("the chain in a.pem is out of order"));
    }
}
