//! The key of a direction: its secret, its sequence number, and its AEAD context.
//!
//! An AEAD context takes over 500 bytes, so connections do not store one. Each thread caches a bounded number
//! of contexts of recently served connections.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use aws_lc_rs::aead::{self, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf;
use rustls::ConnectionTrafficSecrets;
use zeroize::{Zeroize, Zeroizing};

use super::capture::Secret;

/// The most contexts that a thread caches.
const CONTEXTS: usize = 1024;

const MOST_KEY_BYTES: usize = 32;

/// The bytes of a tag, which all suites share.
pub(super) const TAG_BYTES: usize = 16;

/// The most bytes of the kernel's parameters.
const MOST_PARAMETER_BYTES: usize = 56;

/// An AEAD with its hash (RFC 8446 §B.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suite {
    Aes128GcmSha256,
    Aes256GcmSha384,
    ChaCha20Poly1305Sha256,
}

impl Suite {
    fn aead(self) -> &'static aead::Algorithm {
        match self {
            Suite::Aes128GcmSha256 => &aead::AES_128_GCM,
            Suite::Aes256GcmSha384 => &aead::AES_256_GCM,
            Suite::ChaCha20Poly1305Sha256 => &aead::CHACHA20_POLY1305,
        }
    }

    fn hash(self) -> hkdf::Algorithm {
        match self {
            Suite::Aes256GcmSha384 => hkdf::HKDF_SHA384,
            Suite::Aes128GcmSha256 | Suite::ChaCha20Poly1305Sha256 => hkdf::HKDF_SHA256,
        }
    }

    /// The most records that a key may seal (RFC 8446 §5.5: 2^24.5 full-size records for AES-GCM).
    pub(super) fn most_records(self) -> u64 {
        match self {
            Suite::Aes128GcmSha256 | Suite::Aes256GcmSha384 => 1 << 24,
            Suite::ChaCha20Poly1305Sha256 => u64::MAX,
        }
    }
}

/// Returns parameters with zeroed keys for each suite, to test the kernel's support.
pub fn sample_kernel_parameters() -> [Vec<u8>; 3] {
    [Suite::Aes128GcmSha256, Suite::Aes256GcmSha384, Suite::ChaCha20Poly1305Sha256].map(|suite| {
        let secret = Secret::new(&[]).expect("an empty secret is not too long");
        TrafficKey::blank(suite, secret).kernel_parameters().to_vec()
    })
}

/// The key of a direction.
pub(super) struct TrafficKey {
    suite: Suite,
    secret: Secret,
    /// Identifies the context of this key in the caches of all threads.
    id: u64,
    key: [u8; MOST_KEY_BYTES],
    iv: [u8; NONCE_LEN],
    /// The number of the next record.
    sequence: u64,
}

impl TrafficKey {
    /// Returns the key that rustls derived from `secret`, before record `sequence`; `None` for an unknown
    /// suite.
    pub(super) fn extracted(
        secret: Secret,
        sequence: u64,
        extracted: &ConnectionTrafficSecrets,
    ) -> Option<TrafficKey> {
        let (suite, key, iv) = match extracted {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (Suite::Aes128GcmSha256, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (Suite::Aes256GcmSha384, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
                (Suite::ChaCha20Poly1305Sha256, key, iv)
            }
            _ => return None,
        };
        let mut made = TrafficKey::blank(suite, secret);
        made.key.get_mut(..key.as_ref().len())?.copy_from_slice(key.as_ref());
        made.iv.copy_from_slice(iv.as_ref().get(..NONCE_LEN)?);
        made.sequence = sequence;
        Some(made)
    }

    /// Derives the first key of `secret` (RFC 8446 §7.3).
    pub(super) fn derived(suite: Suite, secret: Secret) -> TrafficKey {
        let mut made = TrafficKey::blank(suite, secret);
        made.derive();
        made
    }

    fn blank(suite: Suite, secret: Secret) -> TrafficKey {
        TrafficKey { suite, secret, id: next_id(), key: [0; MOST_KEY_BYTES], iv: [0; NONCE_LEN], sequence: 0 }
    }

    fn derive(&mut self) {
        let length = self.suite.aead().key_len();
        expand(self.suite, &self.secret, b"key", &mut self.key[..length]);
        expand(self.suite, &self.secret, b"iv", &mut self.iv);
    }

    /// Changes to the next key, for a KeyUpdate (RFC 8446 §7.2).
    pub(super) fn update(&mut self) {
        let mut next = [0; 48];
        let next = &mut next[..self.secret.bytes().len()];
        expand(self.suite, &self.secret, b"traffic upd", next);
        self.secret = Secret::new(next).expect("secrets of a connection have equal lengths");
        next.zeroize();
        forget(self.id);
        self.id = next_id();
        self.sequence = 0;
        self.derive();
    }

    /// Returns the parameters for sealing by the kernel from the next record on: `struct tls12_crypto_info_*`
    /// of linux/tls.h.
    pub(super) fn kernel_parameters(&self) -> Zeroizing<Vec<u8>> {
        const TLS_1_3: u16 = 0x0304;
        // AES-GCM splits the first bytes of the nonce off as a salt.
        let (cipher, salt) = match self.suite {
            Suite::Aes128GcmSha256 => (51u16, 4),
            Suite::Aes256GcmSha384 => (52, 4),
            Suite::ChaCha20Poly1305Sha256 => (54, 0),
        };
        let (key, sequence) = (&self.key[..self.suite.aead().key_len()], self.sequence.to_be_bytes());
        let mut parameters = Zeroizing::new(Vec::with_capacity(MOST_PARAMETER_BYTES));
        for part in [
            &TLS_1_3.to_ne_bytes()[..],
            &cipher.to_ne_bytes(),
            &self.iv[salt..],
            key,
            &self.iv[..salt],
            &sequence,
        ] {
            parameters.extend_from_slice(part);
        }
        parameters
    }

    /// Drops the context of this key, because the kernel seals.
    pub(super) fn forget_context(&self) {
        forget(self.id);
    }

    pub(super) fn suite(&self) -> Suite {
        self.suite
    }

    /// Returns the number of the next record.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    #[cfg(test)]
    pub(super) fn set_sequence(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// Opens a sealed record in place, without its header. Returns the length of the plaintext.
    pub(super) fn open(&mut self, header: &[u8; 5], sealed: &mut [u8]) -> Result<usize, Unspecified> {
        let nonce = self.nonce()?;
        let opened = with_context(self, |context| {
            context.open_in_place(nonce, Aad::from(header), sealed).map(|plaintext| plaintext.len())
        })?;
        self.sequence += 1;
        Ok(opened)
    }

    /// Seals a record in place. `sealed` is the part after the header: content, type, and room for the tag.
    pub(super) fn seal(&mut self, header: &[u8; 5], sealed: &mut [u8]) -> Result<(), Unspecified> {
        let nonce = self.nonce()?;
        let (inner, tag) = sealed.split_last_chunk_mut::<TAG_BYTES>().ok_or(Unspecified)?;
        let made = with_context(self, |context| {
            context.seal_in_place_separate_tag(nonce, Aad::from(header), inner)
        })?;
        tag.copy_from_slice(made.as_ref());
        self.sequence += 1;
        Ok(())
    }

    /// Returns the nonce of the next record (RFC 8446 §5.3). A sequence number never wraps.
    fn nonce(&self) -> Result<Nonce, Unspecified> {
        if self.sequence == u64::MAX {
            return Err(Unspecified);
        }
        let mut nonce = self.iv;
        for (byte, of_number) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= of_number;
        }
        Ok(Nonce::assume_unique_for_key(nonce))
    }

    fn context(&self) -> Result<LessSafeKey, Unspecified> {
        let algorithm = self.suite.aead();
        UnboundKey::new(algorithm, &self.key[..algorithm.key_len()]).map(LessSafeKey::new)
    }
}

impl Drop for TrafficKey {
    fn drop(&mut self) {
        self.key.zeroize();
        self.iv.zeroize();
        forget(self.id);
    }
}

impl fmt::Debug for TrafficKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TrafficKey({:?}, record {})", self.suite, self.sequence)
    }
}

/// HKDF-Expand-Label without a context (RFC 8446 §7.1).
fn expand(suite: Suite, secret: &Secret, label: &[u8], into: &mut [u8]) {
    struct OutputLength(usize);

    impl hkdf::KeyType for OutputLength {
        fn len(&self) -> usize {
            self.0
        }
    }

    const PREFIX: &[u8] = b"tls13 ";
    let length = (into.len() as u16).to_be_bytes();
    let label_length = [(PREFIX.len() + label.len()) as u8];
    let info = [&length[..], &label_length, PREFIX, label, &[0]];
    let secret = hkdf::Prk::new_less_safe(suite.hash(), secret.bytes());
    let expanded = secret.expand(&info, OutputLength(into.len())).and_then(|expanded| expanded.fill(into));
    expanded.expect("a key is shorter than 255 hashes");
}

fn next_id() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed)
}

/// A hash for consecutive identifiers.
#[derive(Default)]
struct Consecutive(u64);

impl Hasher for Consecutive {
    fn finish(&self) -> u64 {
        // The map takes its control bytes from the upper bits.
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0 << 8 | u64::from(*byte));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

thread_local! {
    static CACHE: RefCell<HashMap<u64, LessSafeKey, BuildHasherDefault<Consecutive>>> = RefCell::default();
}

fn with_context<T>(
    key: &TrafficKey,
    use_it: impl FnOnce(&LessSafeKey) -> Result<T, Unspecified>,
) -> Result<T, Unspecified> {
    CACHE.with_borrow_mut(|cache| {
        if let Some(context) = cache.get(&key.id) {
            return use_it(context);
        }
        if cache.len() >= CONTEXTS
            && let Some(other) = cache.keys().next().copied()
        {
            cache.remove(&other);
        }
        use_it(cache.entry(key.id).or_insert(key.context()?))
    })
}

/// Drops the context of a key on this thread. Other threads evict their copies when they need the room.
fn forget(id: u64) {
    // If the thread is ending, its cache may be gone.
    let _ = CACHE.try_with(|cache| cache.try_borrow_mut().map(|mut cache| cache.remove(&id)));
}

#[cfg(test)]
pub(super) fn cached_contexts() -> usize {
    CACHE.with_borrow(HashMap::len)
}
