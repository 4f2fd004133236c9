//! Encryption of session tickets under the shared keys.
//!
//! A ticket is the name of its key, a nonce, and the state under AES-256-GCM with the name as additional data
//! (RFC 5077 §4 recommends this form). A random nonce is safe for 2^32 tickets of one key (NIST SP 800-38D §8.3):
//! 198,000 a second for six hours.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::rand;
use rustls::server::ProducesTickets;

use super::keys::{self, GRACE, NAME, TicketKeys};
use crate::shared::{PublicationVersion, SharedBytes};

/// Tickets of one process, under the keys that shared memory has.
pub struct SharedTicketer {
    shared: SharedBytes,
    clock: fn() -> u64,
    /// The keys of one version, expanded.
    expanded: RwLock<Expanded>,
}

#[derive(Default)]
struct Expanded {
    version: Option<PublicationVersion>,
    keys: Option<TicketKeys>,
    ciphers: Vec<([u8; NAME], LessSafeKey)>,
}

impl SharedTicketer {
    /// Returns the ticketer over keys that [`TicketKeys::to_bytes`] published.
    pub fn new(shared: SharedBytes) -> Arc<SharedTicketer> {
        SharedTicketer::with_clock(shared, keys::now)
    }

    fn with_clock(shared: SharedBytes, clock: fn() -> u64) -> Arc<SharedTicketer> {
        Arc::new(SharedTicketer { shared, clock, expanded: RwLock::default() })
    }

    /// Calls `use_it` with the ciphers that are usable now, the current one first.
    fn with_ciphers<T>(&self, use_it: impl FnOnce(&[([u8; NAME], LessSafeKey)]) -> Option<T>) -> Option<T> {
        let now = (self.clock)();
        let expanded = self.expanded.read().unwrap_or_else(PoisonError::into_inner).version;
        if expanded != Some(self.shared.version()) {
            self.expand();
        }
        let expanded = self.expanded.read().unwrap_or_else(PoisonError::into_inner);
        let count = expanded.keys.as_ref()?.usable(now).len();
        use_it(expanded.ciphers.get(..count)?)
    }

    /// Reads the published keys. If that fails, the former keys stay, and it returns `None`.
    fn expand(&self) -> Option<()> {
        let (version, bytes) = self.shared.read()?;
        let keys = TicketKeys::from_bytes(&bytes)?;
        let cipher = |secret: &[u8]| UnboundKey::new(&AES_256_GCM, secret).map(LessSafeKey::new);
        let ciphers = keys.usable(0).iter().filter_map(|key| Some((key.name, cipher(&key.secret).ok()?)));
        let ciphers = ciphers.collect();
        let expanded = Expanded { version: Some(version), ciphers, keys: Some(keys) };
        *self.expanded.write().unwrap_or_else(PoisonError::into_inner) = expanded;
        Some(())
    }
}

impl fmt::Debug for SharedTicketer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedTicketer").finish_non_exhaustive()
    }
}

impl ProducesTickets for SharedTicketer {
    fn enabled(&self) -> bool {
        true
    }

    /// A ticket of the last second before a rotation is good for the whole grace period, any other for longer.
    fn lifetime(&self) -> u32 {
        GRACE as u32
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.with_ciphers(|ciphers| {
            let (name, cipher) = ciphers.first()?;
            let mut nonce = [0; NONCE_LEN];
            rand::fill(&mut nonce).ok()?;
            let mut ticket = Vec::with_capacity(NAME + NONCE_LEN + plain.len() + AES_256_GCM.tag_len());
            ticket.extend_from_slice(name);
            ticket.extend_from_slice(&nonce);
            ticket.extend_from_slice(plain);
            let sealed = &mut ticket[NAME + NONCE_LEN..];
            let nonce = Nonce::assume_unique_for_key(nonce);
            let tag = cipher.seal_in_place_separate_tag(nonce, Aad::from(name), sealed).ok()?;
            ticket.extend_from_slice(tag.as_ref());
            Some(ticket)
        })
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_first_chunk::<NAME>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        self.with_ciphers(|ciphers| {
            // Names are public.
            let (_, cipher) = ciphers.iter().find(|(known, _)| known == name)?;
            let mut sealed = sealed.to_vec();
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let length = cipher.open_in_place(nonce, Aad::from(name), &mut sealed).ok()?.len();
            sealed.truncate(length);
            Some(sealed)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::shared::private_words;
    use crate::tickets::keys::{MAX_BYTES, ROTATION};

    thread_local! {
        static NOW: Cell<u64> = const { Cell::new(0) };
    }

    fn memory() -> SharedBytes {
        SharedBytes::new(private_words(SharedBytes::words_for(MAX_BYTES)))
    }

    fn ticketer(shared: &SharedBytes) -> Arc<SharedTicketer> {
        SharedTicketer::with_clock(shared.clone(), || NOW.get())
    }

    fn rotate(keys: &mut TicketKeys, shared: &SharedBytes) {
        NOW.set(keys.next_rotation());
        assert!(keys.rotate(NOW.get()).expect("random bytes"));
        assert!(shared.publish(&keys.to_bytes()));
    }

    #[test]
    fn a_ticket_of_one_process_is_good_in_another_until_its_key_is_over() {
        NOW.set(0);
        let shared = memory();
        let mut keys = TicketKeys::generate(0).expect("random bytes");
        assert!(shared.publish(&keys.to_bytes()));
        let (ours, other) = (ticketer(&shared), ticketer(&shared));
        let ticket = ours.encrypt(b"state").expect("a ticket");
        assert_eq!(other.decrypt(&ticket).as_deref(), Some(&b"state"[..]));
        rotate(&mut keys, &shared);
        assert_eq!(other.decrypt(&ticket).as_deref(), Some(&b"state"[..]), "the key before the current one");
        let newer = other.encrypt(b"state").expect("a ticket");
        assert_ne!(newer[..NAME], ticket[..NAME], "the new key encrypts");
        NOW.set(ROTATION + GRACE - 1);
        assert!(ours.decrypt(&ticket).is_some());
        NOW.set(ROTATION + GRACE);
        assert!(ours.decrypt(&ticket).is_none(), "its time is over, though nothing rotated");
        assert!(ours.decrypt(&newer).is_some());
    }

    #[test]
    fn without_keys_no_ticket_is_made_or_read() {
        let shared = memory();
        let ours = ticketer(&shared);
        assert!(ours.encrypt(b"state").is_none());
        assert!(ours.decrypt(&[0; 64]).is_none());
        assert!(shared.publish(b"no keys at all"));
        assert!(ours.encrypt(b"state").is_none());
    }

    #[test]
    fn any_change_of_a_ticket_makes_it_worthless() {
        NOW.set(0);
        let shared = memory();
        assert!(shared.publish(&TicketKeys::generate(0).expect("random bytes").to_bytes()));
        let ours = ticketer(&shared);
        let ticket = ours.encrypt(b"state").expect("a ticket");
        for place in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[place] ^= 1;
            assert!(ours.decrypt(&changed).is_none(), "byte {place}");
            assert!(ours.decrypt(&ticket[..place]).is_none(), "cut at {place}");
        }
    }

    #[test]
    fn any_ticket_is_ours_or_invalid() {
        let shared = memory();
        let keys = TicketKeys::generate(0).expect("random bytes");
        assert!(shared.publish(&keys.to_bytes()));
        let name: Vec<u8> = keys.to_bytes()[..NAME].to_vec();
        let ours = std::panic::AssertUnwindSafe(ticketer(&shared));
        bolero::check!().with_iterations(5000).with_max_len(256).with_type::<(bool, Vec<u8>)>().for_each(
            |(named, bytes)| {
                let ticket = if *named { [&name[..], bytes].concat() } else { bytes.clone() };
                assert!(ours.decrypt(&ticket).is_none());
                assert_eq!(
                    ours.encrypt(bytes).and_then(|ticket| ours.decrypt(&ticket)).as_ref(),
                    Some(bytes)
                );
            },
        );
    }
}
