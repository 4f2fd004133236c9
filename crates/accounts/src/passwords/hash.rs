//! Argon2id (RFC 9106), in PHC strings that contain their own cost.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use unicode_normalization::UnicodeNormalization;

/// The cost of a hash.
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

/// The greatest cost of a stored hash that is verified, so that a database cannot name any cost. The settings permit no
/// greater cost for new hashes.
const MOST: Cost = Cost { memory: 1024 * 1024, passes: 64, lanes: 16 };

/// The most bytes of memory for the verification of a stored hash.
pub const GREATEST_MEMORY: u64 = MOST.memory as u64 * 1024;

/// Hashes and verifies passwords.
///
/// It reuses its memory. Page faults of fresh memory cost a third of a hash, and an allocator reuses memory depending on
/// earlier requests, such as a row that was found. That time would reveal whether a name exists.
pub struct Hasher {
    params: Params,
    /// A hash of a random password, for unknown names.
    dummy: String,
    /// Unused memory: one list of blocks per concurrent hash, each of this hasher's cost.
    rested: Mutex<Vec<Vec<Block>>>,
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hasher").field("params", &self.params).finish_non_exhaustive()
    }
}

impl Hasher {
    /// Creates a hasher with this cost for new hashes.
    pub fn new(cost: Cost) -> Result<Hasher, String> {
        let Cost { memory, passes, lanes } = cost;
        let params = Params::new(memory, passes, lanes, None).map_err(|error| {
            format!("Argon2id rejects {memory} KiB, {passes} passes, {lanes} lanes: {error}")
        })?;
        let mut hasher = Hasher { params, dummy: String::new(), rested: Mutex::default() };
        hasher.dummy = hasher.hash(&crate::token::random()?)?;
        Ok(hasher)
    }

    /// Returns the hash of a password, with a new salt.
    pub(crate) fn hash(&self, password: &str) -> Result<String, String> {
        let mut salt = [0; 16];
        getrandom::fill(&mut salt).map_err(|error| format!("cannot read random numbers: {error}"))?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, self.params.clone());
        let hash = || {
            let salt = Salt::new(&salt)?;
            Ok(PasswordHash {
                algorithm: Algorithm::Argon2id.ident(),
                version: Some(Version::V0x13.into()),
                params: ParamsString::try_from(&self.params)?,
                hash: Some(self.output(&argon2, password, &salt, Params::DEFAULT_OUTPUT_LEN)?),
                salt: Some(salt),
            })
        };
        let failed = |error: HashError| format!("cannot hash a password: {error}");
        hash().map(|hash| hash.to_string()).map_err(failed)
    }

    /// Whether `password` matches the stored hash `kept`. Without it, verifies the hash of another member, and returns
    /// false.
    pub(crate) fn verify(&self, password: &str, kept: Option<&str>, other: Option<&str>) -> bool {
        let text = kept.or(other).unwrap_or(&self.dummy);
        let Ok(hash) = PasswordHash::new(text) else { return false };
        let same = self.is_behind(password, &hash).unwrap_or(false);
        same && kept.is_some()
    }

    /// Whether `password` matches `hash`; `None` if the hash is unusable.
    fn is_behind(&self, password: &str, hash: &PasswordHash) -> Option<bool> {
        let (salt, expected) = (hash.salt?, hash.hash?);
        let algorithm = Algorithm::try_from(hash.algorithm.as_str()).ok()?;
        let version = hash.version.map_or(Ok(Version::default()), Version::try_from).ok()?;
        let params = Params::try_from(hash).ok().filter(Hasher::bears)?;
        let argon2 = Argon2::new(algorithm, version, params);
        let output = self.output(&argon2, password, &salt, expected.len()).ok()?;
        // Constant-time comparison.
        Some(output == expected)
    }

    /// Whether a hash of this cost is verified.
    fn bears(params: &Params) -> bool {
        params.m_cost() <= MOST.memory && params.t_cost() <= MOST.passes && params.p_cost() <= MOST.lanes
    }

    /// Computes `length` bytes of hash.
    fn output(
        &self,
        argon2: &Argon2<'_>,
        password: &str,
        salt: &Salt,
        length: usize,
    ) -> Result<Output, HashError> {
        let (needed, own) = (argon2.params().block_count(), self.params.block_count());
        // The memory of a greater cost is not kept, because that hash is about to be replaced.
        let is_ours = needed <= own;
        let rested = if is_ours { self.rested().pop() } else { None };
        let mut memory = rested.map_or_else(|| blocks(needed.max(own)), Ok)?;
        let mut bytes = [0; Output::MAX_LENGTH];
        let bytes = &mut bytes[..length.min(Output::MAX_LENGTH)];
        let hashed = argon2.hash_password_into_with_memory(
            normalised(password).as_bytes(),
            salt.as_ref(),
            bytes,
            &mut memory,
        );
        if is_ours {
            self.rested().push(memory);
        }
        hashed?;
        Ok(Output::new(bytes)?)
    }

    fn rested(&self) -> MutexGuard<'_, Vec<Vec<Block>>> {
        self.rested.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the stored hash has another cost than new ones.
    pub(crate) fn is_outdated(&self, kept: &str) -> bool {
        let Ok(hash) = PasswordHash::new(kept) else { return true };
        let params = Params::try_from(&hash);
        hash.algorithm != Algorithm::Argon2id.ident()
            || params.is_ok_and(|params| {
                let cost = |params: &Params| (params.m_cost(), params.t_cost(), params.p_cost());
                cost(&params) != cost(&self.params)
            })
    }
}

/// An error of the library or of the allocator.
type HashError = Box<dyn std::error::Error>;

/// Memory for a hash.
fn blocks(count: usize) -> Result<Vec<Block>, HashError> {
    let mut blocks = Vec::new();
    blocks.try_reserve_exact(count)?;
    blocks.resize(count, Block::new());
    Ok(blocks)
}

/// Normalises a password: some keyboards send composed characters, others their parts.
pub(super) fn normalised(password: &str) -> String {
    password.nfkc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHEAP: Cost = Cost { memory: 64, passes: 1, lanes: 1 };

    #[test]
    fn only_the_hashed_password_is_verified() {
        let hasher = Hasher::new(CHEAP).expect("a legal cost");
        let kept = hasher.hash("Gänse am Weg").expect("hashed");
        assert!(kept.starts_with("$argon2id$v=19$m=64,t=1,p=1$"), "{kept}");
        assert_ne!(kept, hasher.hash("Gänse am Weg").expect("hashed"), "each has a salt of its own");
        assert!(hasher.verify("Gänse am Weg", Some(&kept), None));
        assert!(hasher.verify("Ga\u{308}nse am Weg", Some(&kept), None), "the same letters in pieces");
        assert!(!hasher.verify("Gänse am weg", Some(&kept), None));
        assert!(!hasher.verify("Gänse am Weg", Some("nonsense"), None));
        assert!(!hasher.verify("Gänse am Weg", None, None));
    }

    #[test]
    fn a_stored_hash_cannot_name_any_cost() {
        let hasher = Hasher::new(CHEAP).expect("a legal cost");
        let kept = hasher.hash("xk7-Tqm2").expect("hashed");
        for cost in ["m=4294967295,t=1,p=1", "m=64,t=4294967295,p=1", "m=1048576,t=1,p=17"] {
            let dear = kept.replace("m=64,t=1,p=1", cost);
            assert!(!hasher.verify("xk7-Tqm2", Some(&dear), None), "{cost}");
            assert!(!hasher.verify("xk7-Tqm2", None, Some(&dear)), "{cost}");
        }
    }

    #[test]
    fn a_hash_of_another_cost_still_verifies_and_is_outdated() {
        let (cheap, dear) = (Hasher::new(CHEAP), Hasher::new(Cost { memory: 128, ..CHEAP }));
        let (cheap, dear) = (cheap.expect("a legal cost"), dear.expect("a legal cost"));
        let kept = cheap.hash("xk7-Tqm2").expect("hashed");
        assert!(
            dear.verify("xk7-Tqm2", Some(&kept), None)
                && dear.is_outdated(&kept)
                && !cheap.is_outdated(&kept)
        );
    }

    #[test]
    fn memory_is_kept_for_as_many_as_hash_at_once_and_for_no_larger_cost() {
        let hasher = Hasher::new(CHEAP).expect("a legal cost");
        let dear = Hasher::new(Cost { memory: 4 * CHEAP.memory, ..CHEAP }).expect("a legal cost");
        let (cheap, dear) =
            (hasher.hash("xk7-Tqm2").expect("hashed"), dear.hash("xk7-Tqm2").expect("hashed"));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for kept in [&cheap, &dear].repeat(20) {
                        assert!(
                            hasher.verify("xk7-Tqm2", Some(kept), None)
                                && !hasher.verify("xk7-Tqm3", Some(kept), None)
                        );
                    }
                });
            }
        });
        let rested = hasher.rested();
        assert!((1..=3).contains(&rested.len()), "{} are kept", rested.len());
        let own = hasher.params.block_count();
        assert!(rested.iter().all(|memory| memory.len() == own && memory.capacity() == own));
    }

    #[test]
    fn a_hash_is_that_of_the_reference() {
        // `printf password | argon2 somesalt -id -t 2 -k 65536 -p 1`, from the reference implementation's own tests
        // (phc-winner-argon2, src/test.c).
        let known = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        let hasher = Hasher::new(CHEAP).expect("a legal cost");
        assert!(
            hasher.verify("password", Some(known), None) && !hasher.verify("Password", Some(known), None)
        );
    }

    #[test]
    fn impossible_costs_are_rejected() {
        assert!(Hasher::new(Cost { memory: 1, ..CHEAP }).is_err());
    }

    /// The minor page faults of this thread (field 10 of `man 5 proc_pid_stat`).
    fn pages_given() -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("the system says it");
        let behind = stat.rsplit(')').next().expect("the name stands in parentheses");
        behind.split_ascii_whitespace().nth(7).and_then(|field| field.parse().ok()).expect("a number")
    }

    #[test]
    fn h62_a_hash_never_waits_for_memory_from_the_system() {
        let hasher = Hasher::new(Cost::default()).expect("a legal cost");
        let kept = hasher.hash("xk7-Tqm2").expect("hashed");
        for name_is_known in [true, false, true, true, false, false, true, false] {
            let before = pages_given();
            hasher.verify("another", name_is_known.then_some(&kept), None);
            let given = pages_given() - before;
            assert!(given < 400, "{given} of the 4864 pages of a hash, known: {name_is_known}");
        }
    }
}
