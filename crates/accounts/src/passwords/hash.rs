//! Argon2id (RFC 9106), in PHC strings that carry their own cost.

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};

use super::normalised;

/// What a hash costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Memory in KiB.
    pub memory: u32,
    /// Passes over it.
    pub passes: u32,
    /// Independent lanes.
    pub lanes: u32,
}

impl Default for Cost {
    /// 19 MiB and two passes: the least that OWASP's cheat sheet on password storage advises.
    fn default() -> Cost {
        Cost { memory: 19 * 1024, passes: 2, lanes: 1 }
    }
}

/// Hashes and verifies passwords.
#[derive(Debug)]
pub struct Hasher {
    params: Params,
    /// The hash of a password that nobody knows: for names that nobody has.
    dummy: String,
}

impl Hasher {
    /// With this cost for new hashes.
    ///
    /// # Errors
    /// In words: a cost that Argon2 does not know, or a system without random numbers.
    pub fn new(cost: Cost) -> Result<Hasher, String> {
        let Cost { memory, passes, lanes } = cost;
        let params = Params::new(memory, passes, lanes, None).map_err(|error| {
            format!("Argon2id can not have {memory} KiB, {passes} passes, {lanes} lanes: {error}")
        })?;
        let mut hasher = Hasher { params, dummy: String::new() };
        hasher.dummy = hasher.hash(&crate::token::random()?)?;
        Ok(hasher)
    }

    /// The hash of a password, with a salt of its own.
    ///
    /// # Errors
    /// In words: no memory, or no random numbers.
    pub(crate) fn hash(&self, password: &str) -> Result<String, String> {
        let mut salt = [0; 16];
        getrandom::fill(&mut salt)
            .map_err(|error| format!("this system gives no random numbers: {error}"))?;
        let hashed = self.argon2().hash_password_with_salt(normalised(password).as_bytes(), &salt);
        hashed.map(|hash| hash.to_string()).map_err(|error| format!("can not hash a password: {error}"))
    }

    /// Whether `password` is the one behind `kept`. Without one it takes as long, and it is not.
    pub(crate) fn verify(&self, password: &str, kept: Option<&str>) -> bool {
        let text = kept.unwrap_or(&self.dummy);
        let Ok(hash) = PasswordHash::new(text) else { return false };
        let same = self.argon2().verify_password(normalised(password).as_bytes(), &hash).is_ok();
        same && kept.is_some()
    }

    /// Whether `kept` was made at another cost than what new ones get.
    pub(crate) fn is_outdated(&self, kept: &str) -> bool {
        let Ok(hash) = PasswordHash::new(kept) else { return true };
        let params = Params::try_from(&hash);
        hash.algorithm != Algorithm::Argon2id.ident()
            || params.is_ok_and(|params| {
                let cost = |params: &Params| (params.m_cost(), params.t_cost(), params.p_cost());
                cost(&params) != cost(&self.params)
            })
    }

    fn argon2(&self) -> Argon2<'_> {
        Argon2::new(Algorithm::Argon2id, Version::V0x13, self.params.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHEAP: Cost = Cost { memory: 64, passes: 1, lanes: 1 };

    #[test]
    fn what_was_hashed_is_verified_and_nothing_else() {
        let hasher = Hasher::new(CHEAP).expect("a legal cost");
        let kept = hasher.hash("Gänse am Weg").expect("hashed");
        assert!(kept.starts_with("$argon2id$v=19$m=64,t=1,p=1$"), "{kept}");
        assert_ne!(kept, hasher.hash("Gänse am Weg").expect("hashed"), "each has a salt of its own");
        assert!(hasher.verify("Gänse am Weg", Some(&kept)));
        assert!(hasher.verify("Ga\u{308}nse am Weg", Some(&kept)), "the same letters in pieces");
        assert!(!hasher.verify("Gänse am weg", Some(&kept)));
        assert!(!hasher.verify("Gänse am Weg", Some("nonsense")));
        assert!(!hasher.verify("Gänse am Weg", None));
    }

    #[test]
    fn a_hash_of_another_cost_still_verifies_and_is_outdated() {
        let (cheap, dear) = (Hasher::new(CHEAP), Hasher::new(Cost { memory: 128, ..CHEAP }));
        let (cheap, dear) = (cheap.expect("a legal cost"), dear.expect("a legal cost"));
        let kept = cheap.hash("xk7-Tqm2").expect("hashed");
        assert!(dear.verify("xk7-Tqm2", Some(&kept)) && dear.is_outdated(&kept) && !cheap.is_outdated(&kept));
    }

    #[test]
    fn a_cost_that_can_not_be_is_refused() {
        assert!(Hasher::new(Cost { memory: 1, ..CHEAP }).is_err());
    }
}
