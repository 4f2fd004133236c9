//! Password hashes in the formats of `htpasswd -B` and `argon2`.

use std::str::FromStr;

use argon2::password_hash::PasswordVerifier;
use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, Params};
use bcrypt::HashParts;

/// The hash of a password: bcrypt, or Argon2id in the PHC format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredHash(HashKind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum HashKind {
    Argon2id(String),
    Bcrypt(String),
}

/// The bounds of the cost of a verification: for bcrypt, the rounds as a power of two (about a second); for
/// Argon2, KiB of memory, passes and lanes.
const MOST_BCRYPT: u32 = 14;
const MOST_ARGON2: (u32, u32, u32) = (256 * 1024, 16, 16);

impl StoredHash {
    /// Parses a hash. Its cost must be within the bounds.
    pub fn new(text: &str) -> Result<StoredHash, String> {
        const MAKE: &str = "create it with `htpasswd -nB NAME`, or with `argon2 SALT -id -e`";
        match text {
            _ if text.starts_with("$argon2id$") => {
                let hash = PasswordHash::new(text)
                    .map_err(|why| format!("it is not an Argon2id hash: {why}; {MAKE}"))?;
                let params =
                    Params::try_from(&hash).map_err(|why| format!("it is not an Argon2id hash: {why}"))?;
                let (memory, passes, lanes) = MOST_ARGON2;
                if params.m_cost() > memory || params.t_cost() > passes || params.p_cost() > lanes {
                    return Err(format!(
                        "it takes too long to verify; at most m={memory}, t={passes} and p={lanes} are allowed"
                    ));
                }
                if hash.hash.is_none() || hash.salt.is_none() {
                    return Err(format!("it has no salt or no hash; {MAKE}"));
                }
                Ok(StoredHash(HashKind::Argon2id(text.to_owned())))
            }
            _ if ["$2a$", "$2b$", "$2y$"].iter().any(|begin| text.starts_with(begin)) => {
                let parts = HashParts::from_str(text)
                    .map_err(|why| format!("it is not a bcrypt hash: {why}; {MAKE}"))?;
                if parts.get_cost() > MOST_BCRYPT {
                    return Err(format!(
                        "it takes too long to verify; a cost of at most {MOST_BCRYPT} is allowed"
                    ));
                }
                Ok(StoredHash(HashKind::Bcrypt(text.to_owned())))
            }
            _ => Err(format!("it is neither a bcrypt nor an Argon2id hash; {MAKE}")),
        }
    }

    /// Returns the hash as it was parsed.
    pub(crate) fn text(&self) -> &str {
        match &self.0 {
            HashKind::Argon2id(text) | HashKind::Bcrypt(text) => text,
        }
    }

    /// Whether this is the hash of `password`. Takes long. Compares in constant time.
    pub(crate) fn is_of(&self, password: &[u8]) -> bool {
        match &self.0 {
            HashKind::Argon2id(text) => PasswordHash::new(text)
                .is_ok_and(|hash| Argon2::default().verify_password(password, &hash).is_ok()),
            HashKind::Bcrypt(text) => bcrypt::verify(password, text).unwrap_or(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BCRYPT: &str = "$2y$04$ldLE7Yhlg22/2WQ9xeV0NegEaK6HITypbwmpMYvfVgdRlGDqiBoxC";

    #[test]
    fn both_kinds_are_verified() {
        let bcrypt = StoredHash::new(BCRYPT).expect("a hash");
        let made = argon2_of("secret");
        let argon2 = StoredHash::new(&made).expect("a hash");
        for hash in [bcrypt, argon2] {
            assert!(hash.is_of(b"secret"), "{hash:?}");
            for wrong in [&b""[..], b"Secret", b"secret ", b"\xff"] {
                assert!(!hash.is_of(wrong), "{hash:?}");
            }
        }
    }

    /// Hashes with the least possible work.
    fn argon2_of(password: &str) -> String {
        use argon2::password_hash::CustomizedPasswordHasher;
        let params = Params::new(8, 1, 1, None).expect("legal");
        let hash =
            Argon2::default().hash_password_customized(password.as_bytes(), b"saltsalt", None, None, params);
        hash.expect("it can be hashed").to_string()
    }

    #[test]
    fn other_kinds_and_slow_hashes_are_refused() {
        let cost = |cost: &str| BCRYPT.replace("$04$", cost);
        for (text, said) in [
            ("secret", "neither"),
            ("$apr1$x$y", "neither"),
            ("{SHA}x", "neither"),
            ("$2y$04$short", "not a bcrypt"),
            (&cost("$15$"), "too long"),
            ("$argon2id$v=19$m=8,t=1,p=1", "no salt"),
            ("$argon2id$v=19$m=1048576,t=1,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNo", "too long"),
            ("$argon2i$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNo", "neither"),
        ] {
            let why = StoredHash::new(text).expect_err(text);
            assert!(why.contains(said), "{text}: {why}");
        }
    }
}
