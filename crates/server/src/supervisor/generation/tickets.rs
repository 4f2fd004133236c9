//! The keys of TLS session tickets. The supervisor makes and rotates them; the workers of all generations read them.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use tenfold_sys::exec;
use tenfold_sys::shared::SharedRows;
use tenfold_tls::shared::{SharedBytes, SharedWords};
use tenfold_tls::tickets::keys::{MAX_BYTES, TicketKeys, now};
use zeroize::Zeroizing;

use crate::diagnostics::warning;

/// The pause before a failed rotation is tried again.
const PAUSE: Duration = Duration::from_secs(60);

/// The keys, and the memory from which workers read them.
pub(crate) struct TicketRotation {
    keys: TicketKeys,
    shared: SharedBytes,
    /// The time of the next attempt, if the last one failed.
    retry: Option<Instant>,
}

/// Shared memory as one row.
struct OneRow(SharedRows);

impl SharedWords for OneRow {
    fn words(&self) -> &[AtomicU64] {
        self.0.row(0)
    }
}

/// Returns shared memory for publications of `bytes` bytes.
pub(crate) fn shared_bytes(bytes: usize) -> io::Result<SharedBytes> {
    let rows = SharedRows::new(1, SharedBytes::words_for(bytes))?;
    Ok(SharedBytes::new(Arc::new(OneRow(rows))))
}

impl TicketRotation {
    /// Makes the first key.
    pub(crate) fn new() -> Result<TicketRotation, String> {
        let keys = TicketKeys::generate(now())
            .map_err(|_| "cannot create a key for TLS tickets: the system has no random bytes")?;
        let shared =
            shared_bytes(MAX_BYTES).map_err(|error| format!("cannot share keys of TLS tickets: {error}"))?;
        let rotation = TicketRotation { keys, shared, retry: None };
        rotation.publish();
        Ok(rotation)
    }

    /// Continues with the keys of [`TicketRotation::to_file`]. Malformed keys are replaced, so sessions begin again.
    pub(crate) fn from_file(handed: Option<OwnedFd>) -> Result<TicketRotation, String> {
        let mut rotation = TicketRotation::new()?;
        let bytes = handed.and_then(|file| exec::read_message(file).ok());
        if let Some(keys) = bytes.and_then(|bytes| TicketKeys::from_bytes(&Zeroizing::new(bytes))) {
            rotation.keys = keys;
            rotation.publish();
        }
        Ok(rotation)
    }

    /// Writes the keys to a file in memory, for another program in this process.
    pub(crate) fn to_file(&self) -> io::Result<OwnedFd> {
        exec::message(|file| file.write_all(&self.keys.to_bytes()))
    }

    fn publish(&self) {
        assert!(self.shared.publish(&self.keys.to_bytes()), "the memory has room for all keys");
    }

    /// Returns the memory with the keys, for a worker.
    pub(crate) fn shared(&self) -> SharedBytes {
        self.shared.clone()
    }

    /// Returns the time of the next rotation.
    pub(crate) fn by(&self) -> Instant {
        let left = Duration::from_secs(self.keys.next_rotation().saturating_sub(now()));
        self.retry.unwrap_or_else(|| Instant::now() + left)
    }

    /// Makes a new key if the time has come.
    pub(crate) fn rotate(&mut self) {
        let instant = Instant::now();
        if self.retry.is_some_and(|retry| retry > instant) {
            return;
        }
        self.retry = None;
        match self.keys.rotate(now()) {
            Ok(true) => self.publish(),
            Ok(false) => {}
            Err(_) => {
                warning!("cannot rotate the keys of TLS tickets: the system has no random bytes");
                self.retry = Some(instant + PAUSE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tenfold_tls::tickets::keys::ROTATION;

    use super::*;

    #[test]
    fn keys_are_the_same_after_a_handover() {
        let rotation = TicketRotation::new().expect("random bytes and memory");
        let file = rotation.to_file().expect("memory");
        let other = TicketRotation::from_file(Some(file)).expect("memory");
        assert!(other.keys == rotation.keys);
        assert!(TicketRotation::from_file(None).is_ok_and(|new| new.keys != rotation.keys));
    }

    #[test]
    fn workers_read_the_keys_that_were_published_last() {
        let mut rotation = TicketRotation::new().expect("random bytes and memory");
        let read = |rotation: &TicketRotation| {
            let (_, bytes) = rotation.shared().read().expect("nobody writes");
            TicketKeys::from_bytes(&bytes).expect("keys")
        };
        assert!(read(&rotation) == rotation.keys);
        let left = rotation.by() - Instant::now();
        assert!(left > Duration::from_secs(ROTATION - 60) && left <= Duration::from_secs(ROTATION));
        let before = rotation.shared.version();
        rotation.rotate();
        assert_eq!(rotation.shared.version(), before, "the key is new");
        // As if the key were older than the uptime of the machine by one rotation.
        rotation.keys = TicketKeys::generate(now().saturating_sub(ROTATION)).expect("random bytes");
        if rotation.by() <= Instant::now() {
            rotation.rotate();
            assert_ne!(rotation.shared.version(), before);
            assert!(read(&rotation) == rotation.keys);
        }
    }
}
