//! The keys of session tickets: one key encrypts, and earlier keys still decrypt.

use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand;
use rustix::time::{ClockId, clock_gettime};
use zeroize::{Zeroize, Zeroizing};

/// Seconds after which a new key encrypts tickets.
pub const ROTATION: u64 = 6 * 3600;

/// Seconds for which a key decrypts tickets after its successor encrypts.
pub const GRACE: u64 = 12 * 3600;

/// The most keys: the current key, and the keys in their grace period.
const MAX_KEYS: usize = 1 + GRACE.div_ceil(ROTATION) as usize;

/// The length of a key's name in a ticket (RFC 5077 §4).
pub(super) const NAME: usize = 16;
const SECRET: usize = 32;
const ENCODED: usize = NAME + SECRET + 8;

/// The most bytes of [`TicketKeys::to_bytes`]: the capacity that shared memory needs.
pub const MAX_BYTES: usize = MAX_KEYS * ENCODED;

/// The keys of a server, the current key first. The supervisor creates and rotates them.
#[derive(PartialEq, Eq)]
pub struct TicketKeys {
    #[expect(clippy::vec_box, reason = "moving a key would leave a copy of its secret in freed memory")]
    keys: Vec<Box<TicketKey>>,
}

/// A key. Dropping it wipes the secret. It has no `Debug`, because the secret must not reach a log.
#[derive(PartialEq, Eq)]
pub(super) struct TicketKey {
    pub(super) name: [u8; NAME],
    pub(super) secret: [u8; SECRET],
    /// The second since which it is current, on the clock of [`now`].
    since: u64,
}

/// Returns the time for keys: seconds since the machine started. It is equal in all processes, and changes of
/// the date do not affect it.
pub fn now() -> u64 {
    clock_gettime(ClockId::Boottime).tv_sec.unsigned_abs()
}

impl TicketKeys {
    /// Creates the first key. Fails if the system has no random bytes.
    pub fn generate(now: u64) -> Result<TicketKeys, Unspecified> {
        Ok(TicketKeys { keys: vec![TicketKey::generate(now)?] })
    }

    /// Returns the second of the next rotation.
    pub fn next_rotation(&self) -> u64 {
        self.keys[0].since.saturating_add(ROTATION)
    }

    /// Creates a new current key if a rotation is due, and removes keys whose grace period is over. Returns
    /// whether the keys changed. If the system has no random bytes, it fails and leaves the keys unchanged.
    pub fn rotate(&mut self, now: u64) -> Result<bool, Unspecified> {
        let is_due = now >= self.next_rotation();
        if is_due {
            self.keys.insert(0, TicketKey::generate(now)?);
        }
        let count = self.keys.len();
        self.keys.truncate(self.usable(now).len());
        Ok(is_due || self.keys.len() < count)
    }

    /// Returns the keys that decrypt at `now`; the first encrypts.
    pub(super) fn usable(&self, now: u64) -> &[Box<TicketKey>] {
        let is_over = |pair: &[Box<TicketKey>]| now >= pair[0].since.saturating_add(GRACE);
        let old = self.keys.windows(2).position(is_over).map_or(self.keys.len(), |place| place + 1);
        &self.keys[..old.min(MAX_KEYS)]
    }

    /// Returns the keys as bytes for shared memory. Dropping them wipes them.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_BYTES));
        for key in self.keys.iter().take(MAX_KEYS) {
            bytes.extend_from_slice(&key.name);
            bytes.extend_from_slice(&key.secret);
            bytes.extend_from_slice(&key.since.to_le_bytes());
        }
        bytes
    }

    /// Parses the bytes of [`TicketKeys::to_bytes`]; `None` if they are invalid.
    pub fn from_bytes(bytes: &[u8]) -> Option<TicketKeys> {
        let (keys, rest) = bytes.as_chunks::<ENCODED>();
        if keys.is_empty() || keys.len() > MAX_KEYS || !rest.is_empty() {
            return None;
        }
        let key = |bytes: &[u8; ENCODED]| {
            let (name, rest) = bytes.split_first_chunk()?;
            let (secret, since) = rest.split_first_chunk::<SECRET>()?;
            let mut key = TicketKey::empty(u64::from_le_bytes(since.try_into().ok()?));
            key.name = *name;
            key.secret.copy_from_slice(secret);
            Some(key)
        };
        Some(TicketKeys { keys: keys.iter().map(key).collect::<Option<_>>()? })
    }
}

impl Drop for TicketKey {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}

impl TicketKey {
    /// Returns a key whose name and secret must still be written.
    fn empty(since: u64) -> Box<TicketKey> {
        Box::new(TicketKey { name: [0; NAME], secret: [0; SECRET], since })
    }

    fn generate(now: u64) -> Result<Box<TicketKey>, Unspecified> {
        let mut key = TicketKey::empty(now);
        rand::fill(&mut key.name)?;
        rand::fill(&mut key.secret)?;
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(keys: &TicketKeys, now: u64) -> Vec<[u8; NAME]> {
        keys.usable(now).iter().map(|key| key.name).collect()
    }

    #[test]
    fn a_key_encrypts_for_six_hours_and_decrypts_for_twelve_more() {
        let start = 1000;
        let mut keys = TicketKeys::generate(start).expect("random bytes");
        let first = names(&keys, start)[0];
        assert!(!keys.rotate(start + ROTATION - 1).expect("random bytes"), "one second early");
        assert!(keys.rotate(start + ROTATION).expect("random bytes"));
        let second = names(&keys, start + ROTATION)[0];
        assert_eq!(names(&keys, start + ROTATION), [second, first]);
        assert!(keys.rotate(start + 2 * ROTATION).expect("random bytes"));
        let end = start + ROTATION + GRACE;
        assert_eq!(names(&keys, end - 1).len(), 3);
        assert_eq!(names(&keys, end - 1)[2], first);
        assert_eq!(names(&keys, end).len(), 2, "the first key expires without a rotation");
        assert!(keys.rotate(end).expect("random bytes"));
        assert_eq!(names(&keys, end).len(), 3);
        assert!(!names(&keys, end).contains(&first));
    }

    #[test]
    fn after_a_long_sleep_only_a_new_key_is_left() {
        let mut keys = TicketKeys::generate(0).expect("random bytes");
        assert!(keys.rotate(ROTATION).expect("random bytes"));
        let old = names(&keys, ROTATION);
        assert!(keys.rotate(100 * ROTATION).expect("random bytes"));
        let new = names(&keys, 100 * ROTATION);
        // The previous key was current until now.
        assert_eq!((new.len(), new[1]), (2, old[0]));
    }

    #[test]
    fn bytes_are_keys_or_nothing() {
        let mut keys = TicketKeys::generate(5).expect("random bytes");
        for hour in [6, 12] {
            assert!(keys.rotate(5 + hour * 3600).expect("random bytes"));
        }
        let bytes = keys.to_bytes();
        assert_eq!(bytes.len(), MAX_BYTES);
        assert!(TicketKeys::from_bytes(&bytes).is_some_and(|read| read == keys));
        for length in [0, 1, ENCODED - 1, ENCODED + 1, MAX_BYTES - 1] {
            assert!(TicketKeys::from_bytes(&bytes[..length]).is_none(), "{length}");
        }
        assert!(TicketKeys::from_bytes(&[&bytes[..], &[0; ENCODED]].concat()).is_none());
    }
}
