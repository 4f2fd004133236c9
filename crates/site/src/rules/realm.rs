//! Access to private files: basic authentication (RFC 7617) with hashed passwords.
//!
//! Hashing a password takes long on purpose, so it is done off the loop, and the result is cached for a while:
//! by a keyed digest of the credentials, never by the password itself. An unknown name costs as much time as a
//! wrong password.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use base64ct::{Base64, Encoding};
use blake2::{Blake2s256, Digest};
use tenfold_http::{FieldValue, Instant, Request, clock};
use tenfold_sys::shared::SharedRows;

use crate::rules::password::StoredHash;

/// Users who may see private files, under a name that browsers show.
#[derive(Debug)]
pub struct Realm {
    challenge: String,
    /// In the order of their names.
    users: Vec<(String, StoredHash)>,
    /// A digest of all hashes, which chooses the stand-ins of unknown names.
    digest: [u8; 32],
    known: Mutex<Marks>,
    /// A verification has ended.
    ended: Condvar,
}

/// A user of a realm, as a client names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RealmUser {
    /// The name, cut to a bounded length.
    pub name: String,
    /// A digest of the credentials, if the same ones have been right before.
    pub known: Option<String>,
}

/// Counts attempts at passwords.
pub trait Attempts {
    /// Admits an attempt at this user's password.
    ///
    /// # Errors
    /// The seconds after which another one is admitted.
    fn admit(&self, user: &RealmUser) -> Result<(), u64>;

    /// The attempt that was admitted had the right password.
    fn succeeded(&self);
}

/// The state of credentials.
#[derive(Debug, Default)]
struct Marks {
    by_mark: HashMap<Mark, RememberedVerdict>,
    /// Those that are being verified.
    verified: HashSet<Mark>,
}

/// The result of a password check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PasswordVerdict {
    Right,
    Wrong,
    /// It was not looked at: there were too many attempts. More are admitted after so many seconds.
    Throttled(u64),
}

/// Identifies credentials: a digest of them that no other process can make.
type Mark = [u8; 32];

#[derive(Clone, Copy, Debug)]
struct RememberedVerdict {
    allowed: bool,
    until: Instant,
}

/// Milliseconds for which a right password is remembered. A reload may change it, so each begins without verdicts. Only
/// the fact that a password was right before survives, in the [`SharedMarks`].
const ALLOWED_FOR: u64 = 60_000;
/// Milliseconds for which a wrong one is, so that repeating it costs no hash each time.
const REFUSED_FOR: u64 = 5_000;
/// Passwords that are remembered at most.
const MOST_KNOWN: usize = 1024;
/// Bytes of credentials at most.
pub const MOST_CREDENTIALS: usize = 1024;

/// The claim of a request about its sender.
pub(crate) enum Claim {
    /// The credentials are right.
    Allowed,
    /// There are no credentials, or wrong ones.
    Refused,
    /// It takes work to know.
    Unknown(Credentials),
}

/// A name and a password.
pub(crate) struct Credentials {
    name: String,
    password: Vec<u8>,
    mark: Mark,
    /// Whether they have been right before, too long ago to count.
    were_right: bool,
    /// When they came.
    claimed: Instant,
}

/// Bytes of a user's name that guesses are counted by.
const COUNTED_NAME: usize = 64;

impl Realm {
    /// `users` with their hashes, under the `name` that browsers show.
    ///
    /// # Errors
    /// In words that say how to mend it.
    pub fn new(name: &str, users: BTreeMap<String, StoredHash>) -> Result<Realm, String> {
        if users.is_empty() {
            return Err("no client could log in: at least one user is needed".into());
        }
        if name.is_empty() || FieldValue::new(name.as_bytes()).is_none() || name.contains(['"', '\\']) {
            return Err(format!("{name:?} is not the name of a realm: some words without quotes"));
        }
        if let Some(wrong) = users.keys().find(|user| user.is_empty() || user.contains(':')) {
            return Err(format!("{wrong:?} is not the name of a user: it is not empty and holds no colon"));
        }
        let challenge = format!("Basic realm=\"{name}\", charset=\"UTF-8\"");
        let users: Vec<_> = users.into_iter().collect();
        let mut digest = Blake2s256::new();
        users.iter().for_each(|(_, hash)| digest.update(hash.text()));
        let digest = digest.finalize().into();
        // Before workers are forked, so that they share it.
        let _ = shared();
        Ok(Realm { challenge, users, digest, known: Mutex::default(), ended: Condvar::new() })
    }

    /// The value of `WWW-Authenticate`.
    pub(crate) fn challenge(&self) -> FieldValue<'_> {
        FieldValue::new(self.challenge.as_bytes()).expect("a realm's name is a field value")
    }

    /// The claim of a request.
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

    /// Verifies a password, if `attempts` admits it, and caches the result. Takes long. The same credentials
    /// are verified once at a time, and count once: a page asks for its parts all at once.
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

    /// Waits until nothing else verifies these credentials; returns the result, if there is one by then.
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
            Ok(place) => self.users[place].1.is_of(password),
            Err(_) => {
                let _ = std::hint::black_box(self.stand_in(name).is_of(password));
                false
            }
        }
    }

    /// The hash that takes the time of a name that does not exist. Hashes may differ in cost, so each such name has the
    /// same one every time and in every process, chosen by a digest that only who knows the hashes can compute. Finding
    /// it takes no longer with many users: its time would tell that the name does not exist.
    fn stand_in(&self, name: &str) -> &StoredHash {
        let digest: [u8; 32] =
            Blake2s256::new().chain_update(self.digest).chain_update(name).finalize().into();
        let [first, second, third, fourth, ..] = digest;
        let number = u32::from_be_bytes([first, second, third, fourth]) as usize;
        &self.users[number % self.users.len()].1
    }

    /// Caches the result for credentials, for a while from when they were claimed.
    fn remember(&self, credentials: &Credentials, allowed: bool) {
        let now = credentials.claimed;
        let known = &mut self.lock().by_mark;
        // Guesses give way to owners, whose expired entries still tell them from strangers.
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

/// The end of a verification, whichever way it ends.
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

/// By configuration, whatever is cached.
impl PartialEq for Realm {
    fn eq(&self, other: &Realm) -> bool {
        (&self.challenge, &self.users) == (&other.challenge, &other.users)
    }
}

impl Eq for Realm {}

impl Credentials {
    /// Reads the value of `Authorization`; none if it is not that of RFC 7617.
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

    /// The user that an attempt with them is at.
    pub(crate) fn user(&self) -> RealmUser {
        let known = self.were_right.then(|| self.mark.iter().map(|byte| format!("{byte:02x}")).collect());
        RealmUser { name: self.name[..self.name.floor_char_boundary(COUNTED_NAME)].to_owned(), known }
    }
}

/// Returns the name and the password of a value of `Authorization`, decoded, and the place of the colon between them.
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

/// Returns the user that a request names with basic authentication (RFC 7617), decoded into `room`. Whether the
/// password is right, only the site knows.
pub fn basic_user<'r>(request: &Request<'_>, room: &'r mut [u8; MOST_CREDENTIALS]) -> Option<&'r [u8]> {
    let value = request.values("authorization").next()?;
    let (decoded, colon) = decode(value, room)?;
    Some(&decoded[..colon])
}

/// The memory that all workers share, those of later configurations too: they are forked from the process that reads the
/// configuration.
struct SharedMarks {
    /// The key of the digests.
    secret: [u8; 32],
    /// The beginnings of digests of credentials that were right, each at the place that the digest chooses.
    right: SharedRows,
}

/// The places for credentials that were right.
const PLACES: usize = 4096;

impl SharedMarks {
    fn were_right(&self, mark: &Mark) -> bool {
        let (place, value) = place(mark);
        self.right.row(0)[place].load(Ordering::Relaxed) == value
    }

    /// Notes that credentials were right, or that they are no longer.
    fn set(&self, mark: &Mark, right: bool) {
        let (place, value) = place(mark);
        let word = &self.right.row(0)[place];
        match right {
            true => word.store(value, Ordering::Relaxed),
            false if word.load(Ordering::Relaxed) == value => word.store(0, Ordering::Relaxed),
            false => {}
        }
    }
}

/// Returns the place of a digest, and its beginning.
fn place(mark: &Mark) -> (usize, u64) {
    let [a, b, c, d, e, f, g, h, first, second, ..] = *mark;
    let place = usize::from(u16::from_be_bytes([first, second])) % PLACES;
    (place, u64::from_be_bytes([a, b, c, d, e, f, g, h]))
}

/// Returns the memory; `None` if the system has no random bytes or no memory, and then no login succeeds.
fn shared() -> Option<&'static SharedMarks> {
    static SHARED: OnceLock<Option<SharedMarks>> = OnceLock::new();
    let make = || {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).ok()?;
        Some(SharedMarks { secret, right: SharedRows::new(1, PLACES).ok()? })
    };
    SHARED.get_or_init(make).as_ref()
}

#[cfg(test)]
mod tests;
