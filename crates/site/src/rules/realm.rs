//! Private files: basic authentication (RFC 7617) with hashed passwords.
//!
//! Hashing a password takes long on purpose, so it happens outside the loop. The result is cached under a
//! keyed digest of the credentials. An unknown name takes as long as a wrong password.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use base64ct::{Base64, Encoding};
use blake2::{Blake2s256, Digest};
use tenfold_http::{FieldValue, Instant, Request, clock};
use tenfold_sys::shared::SharedRows;

use crate::rules::password::StoredHash;

/// Users who may get private files. Browsers show the realm's name.
#[derive(Debug)]
pub struct Realm {
    /// The value of `WWW-Authenticate`.
    challenge: String,
    /// Sorted by name.
    users: Vec<(String, StoredHash)>,
    /// A digest of all hashes, which chooses the stand-ins for unknown names.
    digest: [u8; 32],
    known: Mutex<Marks>,
    /// Notified when a verification ends.
    ended: Condvar,
}

/// The user named in an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RealmUser {
    /// The name, truncated to a bounded length.
    pub name: String,
    /// A digest of the credentials, if the same credentials were right before.
    pub known: Option<String>,
}

/// Counts attempts at passwords.
pub trait Attempts {
    /// Admits an attempt at this user's password, or returns the seconds until the next attempt is admitted.
    fn admit(&self, user: &RealmUser) -> Result<(), u64>;

    /// Reports that the admitted attempt had the right password.
    fn succeeded(&self);
}

/// The results for credentials, and the verifications in progress.
#[derive(Debug, Default)]
struct Marks {
    by_mark: HashMap<Mark, RememberedVerdict>,
    /// Credentials that are being verified.
    verified: HashSet<Mark>,
}

/// The result of a password check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PasswordVerdict {
    Right,
    Wrong,
    /// Not checked because of too many attempts; retry after this many seconds.
    Throttled(u64),
}

/// A digest of credentials, with a key that only this server has.
type Mark = [u8; 32];

#[derive(Clone, Copy, Debug)]
struct RememberedVerdict {
    allowed: bool,
    until: Instant,
}

/// Milliseconds for which a right password is cached. The cache does not survive a reload, which may change
/// passwords. Only the [`SharedMarks`] do: they record that credentials were right before.
const ALLOWED_FOR: u64 = 60_000;
/// Milliseconds for which a wrong password is cached, so that a repetition costs no hash.
const REFUSED_FOR: u64 = 5_000;
/// The most passwords in the cache.
const MOST_KNOWN: usize = 1024;
/// The most bytes of credentials.
pub const MOST_CREDENTIALS: usize = 1024;

/// The credentials of a request, as far as they are known.
pub(crate) enum Claim {
    /// The credentials are right.
    Allowed,
    /// There are no credentials, or wrong credentials.
    Refused,
    /// The credentials must be verified.
    Unknown(Credentials),
}

/// A name and a password.
pub(crate) struct Credentials {
    name: String,
    password: Vec<u8>,
    mark: Mark,
    /// Whether they were right before, but too long ago to be valid still.
    were_right: bool,
    /// The time of the request.
    claimed: Instant,
}

/// The bytes of a user's name that distinguish counts of attempts.
const COUNTED_NAME: usize = 64;

impl Realm {
    /// Returns the realm of `users` with their hashes. Browsers show `name`.
    pub fn new(name: &str, users: BTreeMap<String, StoredHash>) -> Result<Realm, String> {
        if users.is_empty() {
            return Err("no client could log in: at least one user is needed".into());
        }
        if name.is_empty() || FieldValue::new(name.as_bytes()).is_none() || name.contains(['"', '\\']) {
            return Err(format!("{name:?} is not the name of a realm: use some words without quotes"));
        }
        if let Some(wrong) = users.keys().find(|user| user.is_empty() || user.contains(':')) {
            return Err(format!("{wrong:?} is not the name of a user: a name is not empty and has no colon"));
        }
        let challenge = format!("Basic realm=\"{name}\", charset=\"UTF-8\"");
        let users: Vec<_> = users.into_iter().collect();
        let mut digest = Blake2s256::new();
        users.iter().for_each(|(_, hash)| digest.update(hash.text()));
        let digest = digest.finalize().into();
        // Allocate it before workers are forked, so that they share it.
        let _ = shared();
        Ok(Realm { challenge, users, digest, known: Mutex::default(), ended: Condvar::new() })
    }

    pub(crate) fn challenge(&self) -> FieldValue<'_> {
        FieldValue::new(self.challenge.as_bytes()).expect("a realm's name is a field value")
    }

    /// Returns what is known about a request's credentials.
    pub(crate) fn claim(&self, request: &Request<'_>) -> Claim {
        let Some(mut credentials) = request.only("authorization").and_then(Credentials::read) else {
            return Claim::Refused;
        };
        let known = self.lock();
        match known.by_mark.get(&credentials.mark) {
            Some(known) if known.until > clock::now() && known.allowed => Claim::Allowed,
            Some(known) if known.until > clock::now() => Claim::Refused,
            known => {
                credentials.were_right = known.is_some_and(|known| known.allowed)
                    || shared().is_some_and(|shared| shared.were_right(&credentials.mark));
                Claim::Unknown(credentials)
            }
        }
    }

    /// Verifies a password, if `attempts` admits it, and caches the result. Takes long. Concurrent attempts
    /// with the same credentials are verified and counted once, because a browser requests the parts of a
    /// page concurrently.
    pub(crate) fn verify(
        &self,
        credentials: &Credentials,
        attempts: Option<&dyn Attempts>,
    ) -> PasswordVerdict {
        if let Some(allowed) = self.begin(credentials) {
            return if allowed { PasswordVerdict::Right } else { PasswordVerdict::Wrong };
        }
        let _ended = Ended { realm: self, mark: credentials.mark };
        if let Some(Err(seconds)) = attempts.map(|attempts| attempts.admit(&credentials.user())) {
            return PasswordVerdict::Throttled(seconds);
        }
        let right = self.is_right(credentials);
        self.remember(credentials, right);
        if let Some(shared) = shared() {
            shared.set(&credentials.mark, right);
        }
        if let Some(attempts) = attempts.filter(|_| right) {
            attempts.succeeded();
        }
        if right { PasswordVerdict::Right } else { PasswordVerdict::Wrong }
    }

    /// Waits for another verification of these credentials. Returns its result, or None if the caller must
    /// verify them.
    fn begin(&self, credentials: &Credentials) -> Option<bool> {
        let mut known = self.lock();
        loop {
            if let Some(known) = known.by_mark.get(&credentials.mark)
                && known.until > credentials.claimed
            {
                return Some(known.allowed);
            }
            if known.verified.insert(credentials.mark) {
                return None;
            }
            known = self.ended.wait(known).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn is_right(&self, credentials: &Credentials) -> bool {
        let Credentials { name, password, .. } = credentials;
        match self.users.binary_search_by(|(user, _)| user.cmp(name)) {
            Ok(index) => self.users[index].1.is_of(password),
            Err(_) => {
                let _ = std::hint::black_box(self.stand_in(name).is_of(password));
                false
            }
        }
    }

    /// Returns the hash that an unknown name is verified with. Hashes may differ in cost, so an unknown name
    /// always gets the same hash, in every process. A digest that requires the hashes chooses it. The lookup
    /// takes constant time, because a longer time would reveal unknown names.
    fn stand_in(&self, name: &str) -> &StoredHash {
        let digest: [u8; 32] =
            Blake2s256::new().chain_update(self.digest).chain_update(name).finalize().into();
        let [first, second, third, fourth, ..] = digest;
        let number = u32::from_be_bytes([first, second, third, fourth]) as usize;
        &self.users[number % self.users.len()].1
    }

    /// Caches the result for credentials, from the time of the request on.
    fn remember(&self, credentials: &Credentials, allowed: bool) {
        let now = credentials.claimed;
        let known = &mut self.lock().by_mark;
        // Wrong passwords are evicted first. Expired right passwords still distinguish owners from attackers.
        if known.len() >= MOST_KNOWN {
            known.retain(|_, known| known.allowed || known.until > now);
        }
        if known.len() >= MOST_KNOWN {
            known.retain(|_, known| known.allowed);
        }
        if known.len() >= MOST_KNOWN
            && let Some(oldest) = known.iter().min_by_key(|(_, known)| known.until).map(|(mark, _)| *mark)
        {
            known.remove(&oldest);
        }
        let time = if allowed { ALLOWED_FOR } else { REFUSED_FOR };
        known.insert(credentials.mark, RememberedVerdict { allowed, until: Instant(now.0 + time) });
    }

    fn lock(&self) -> MutexGuard<'_, Marks> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a verification when dropped, also after a panic.
struct Ended<'r> {
    realm: &'r Realm,
    mark: Mark,
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.realm.lock().verified.remove(&self.mark);
        self.realm.ended.notify_all();
    }
}

/// Compares the configuration, not the cache.
impl PartialEq for Realm {
    fn eq(&self, other: &Realm) -> bool {
        (&self.challenge, &self.users) == (&other.challenge, &other.users)
    }
}

impl Eq for Realm {}

impl Credentials {
    /// Parses the value of `Authorization`; None if it does not follow RFC 7617.
    fn read(value: &[u8]) -> Option<Credentials> {
        let mut room = [0; MOST_CREDENTIALS];
        let (decoded, colon) = decode(value, &mut room)?;
        let name = std::str::from_utf8(&decoded[..colon]).ok()?.to_owned();
        let secret = shared()?.secret;
        let mark = Blake2s256::new().chain_update(secret).chain_update(decoded).finalize().into();
        Some(Credentials {
            name,
            password: decoded[colon + 1..].to_vec(),
            mark,
            were_right: false,
            claimed: clock::now(),
        })
    }

    /// Returns the user for the count of attempts.
    pub(crate) fn user(&self) -> RealmUser {
        let known = self.were_right.then(|| self.mark.iter().map(|byte| format!("{byte:02x}")).collect());
        RealmUser { name: self.name[..self.name.floor_char_boundary(COUNTED_NAME)].to_owned(), known }
    }
}

/// Decodes the name and the password in a value of `Authorization`, and returns the position of the colon
/// between them.
fn decode<'r>(value: &[u8], room: &'r mut [u8; MOST_CREDENTIALS]) -> Option<(&'r [u8], usize)> {
    let text = std::str::from_utf8(value).ok()?;
    let (scheme, encoded) = text.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = Base64::decode(encoded.trim(), room).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    Some((decoded, colon))
}

/// Returns the user that a request names by basic authentication (RFC 7617), decoded into `room`. The
/// password is not verified.
pub fn basic_user<'r>(request: &Request<'_>, room: &'r mut [u8; MOST_CREDENTIALS]) -> Option<&'r [u8]> {
    let value = request.values("authorization").next()?;
    let (decoded, colon) = decode(value, room)?;
    Some(&decoded[..colon])
}

/// Memory that all workers share, including workers of later configurations. The process that reads the
/// configuration allocates it and forks them.
struct SharedMarks {
    /// The key of the digests.
    secret: [u8; 32],
    /// Prefixes of digests of right credentials. The digest chooses the index.
    right: SharedRows,
}

/// The number of words for right credentials.
const MARK_SLOTS: usize = 4096;

impl SharedMarks {
    fn were_right(&self, mark: &Mark) -> bool {
        let (index, value) = index(mark);
        self.right.row(0)[index].load(Ordering::Relaxed) == value
    }

    /// Records that credentials are right, or no longer right.
    fn set(&self, mark: &Mark, right: bool) {
        let (index, value) = index(mark);
        let word = &self.right.row(0)[index];
        match right {
            true => word.store(value, Ordering::Relaxed),
            false if word.load(Ordering::Relaxed) == value => word.store(0, Ordering::Relaxed),
            false => {}
        }
    }
}

/// Returns the index of a digest, and its prefix.
fn index(mark: &Mark) -> (usize, u64) {
    let [a, b, c, d, e, f, g, h, first, second, ..] = *mark;
    let index = usize::from(u16::from_be_bytes([first, second])) % MARK_SLOTS;
    (index, u64::from_be_bytes([a, b, c, d, e, f, g, h]))
}

/// Returns the shared memory. `None`: the system has no random bytes or no memory, and every login fails.
fn shared() -> Option<&'static SharedMarks> {
    static SHARED: OnceLock<Option<SharedMarks>> = OnceLock::new();
    let make = || {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).ok()?;
        Some(SharedMarks { secret, right: SharedRows::new(1, MARK_SLOTS).ok()? })
    };
    SHARED.get_or_init(make).as_ref()
}

#[cfg(test)]
mod tests;
