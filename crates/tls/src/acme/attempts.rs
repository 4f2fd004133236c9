//! The time between attempts, over restarts, too.

use std::time::Duration;

use aws_lc_rs::rand;
use serde::{Deserialize, Serialize};

use crate::state::{FolderLock, Secrecy, StateFolder};

const FILE: &str = "attempts.json";

/// The wait after the first failure; each further one doubles it.
const FIRST_WAIT: i64 = 60;

/// The longest wait. An authority allows about five failures an hour for a name.
const MAX_WAIT: i64 = 6 * 3600;

/// The result of the last attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AttemptHistory {
    /// The failures since the last certificate.
    failures: u32,
    /// The second since 1970 before which no attempt is made.
    not_before: i64,
}

impl AttemptHistory {
    /// Reads the result; without a readable file there were no attempts.
    pub(super) fn load(folder: &StateFolder) -> AttemptHistory {
        let bytes = folder.read(FILE).ok().flatten();
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Returns the time until the next attempt is allowed at `now`. A moment further away than any wait is of a clock
    /// that was wrong then or is wrong now.
    pub(super) fn wait(self, now: i64) -> Duration {
        let left = self.not_before.saturating_sub(now);
        let left = if left > MAX_WAIT * 5 / 4 { 0 } else { left };
        Duration::from_secs(u64::try_from(left).unwrap_or(0))
    }

    /// Whether the last attempt failed.
    pub(super) fn has_failed(self) -> bool {
        self.failures > 0
    }

    /// Returns the result of a success at `now`. The wait guards against an authority that wants every certificate
    /// renewed at once, and against a clock that is wrong by months.
    pub(super) fn succeeded(now: i64) -> AttemptHistory {
        AttemptHistory { failures: 0, not_before: now.saturating_add(jitter(MAX_WAIT)) }
    }

    /// Returns the result with one more failure at `now`.
    pub(super) fn failed(self, now: i64) -> AttemptHistory {
        let doubled = FIRST_WAIT.saturating_mul(1 << self.failures.min(16));
        let wait = doubled.min(MAX_WAIT);
        AttemptHistory {
            failures: self.failures.saturating_add(1),
            not_before: now.saturating_add(jitter(wait)),
        }
    }

    /// Writes the result. If that fails, as on a full disk, the process still waits as long as it lives.
    pub(super) fn save(self, folder: &StateFolder, lock: &FolderLock) {
        let bytes = serde_json::to_vec(&self).expect("two numbers are JSON");
        let _ = folder.write(lock, FILE, &bytes, Secrecy::Private);
    }
}

/// Returns a wait that is up to a quarter shorter or longer, so that servers that failed together try apart.
fn jitter(wait: i64) -> i64 {
    let mut bytes = [0; 2];
    // Without random bytes no key can be made either.
    let _ = rand::fill(&mut bytes);
    let quarter = wait / 4;
    wait - quarter + 2 * quarter * i64::from(u16::from_le_bytes(bytes)) / i64::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::scratch::ScratchState;

    #[test]
    fn waits_double_up_to_a_bound_and_differ() {
        let now = 1_800_000_000;
        let mut attempts = AttemptHistory::default();
        assert_eq!(attempts.wait(now), Duration::ZERO);
        let mut seen = Vec::new();
        for failure in 0..40 {
            attempts = attempts.failed(now);
            let expected = (60u64 << failure.min(20)).min(6 * 3600);
            let wait = attempts.wait(now).as_secs();
            assert!((expected * 3 / 4..=expected * 5 / 4).contains(&wait), "{failure}: {wait}");
            seen.push(wait);
        }
        let last = &seen[20..];
        assert!(last.iter().any(|wait| wait != &last[0]), "no jitter");
    }

    #[test]
    fn a_restart_does_not_shorten_a_wait_and_a_wrong_clock_does_not_lengthen_it() {
        let scratch = ScratchState::new("attempts");
        let folder = scratch.folder();
        let lock = folder.lock().expect("no error").expect("it is free");
        let now = 1_800_000_000;
        let attempts = AttemptHistory::default().failed(now);
        attempts.save(&folder, &lock);
        assert_eq!(AttemptHistory::load(&folder), attempts);
        assert!(attempts.wait(now + 30) > Duration::ZERO);
        assert_eq!(attempts.wait(now + 76), Duration::ZERO);
        assert_eq!(attempts.wait(now - 365 * 86_400), Duration::ZERO, "the clock went back by a year");
        folder.write(&lock, FILE, b"{\"failures\":", Secrecy::Private).expect("room");
        assert_eq!(AttemptHistory::load(&folder), AttemptHistory::default());
    }
}
