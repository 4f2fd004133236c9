//! The wait between attempts, also across restarts.

use std::time::Duration;

use aws_lc_rs::rand;
use serde::{Deserialize, Serialize};

use crate::state::{FolderLock, Secrecy, StateFolder};

const FILE: &str = "attempts.json";

/// The wait after the first failure; each further failure doubles it.
const FIRST_WAIT: i64 = 60;

/// The longest wait. Authorities allow about five failures an hour for a name.
const MAX_WAIT: i64 = 6 * 3600;

/// The results of the last attempts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AttemptHistory {
    #[serde(flatten)]
    all: Attempts,
    /// The names that the authority refused. The other names get a certificate without them.
    refused: Vec<RefusedAttempts>,
}

/// The attempts for all names, or for a single name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Attempts {
    /// The failures since the last certificate.
    failures: u32,
    /// The earliest second of the next attempt, since 1970.
    not_before: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RefusedAttempts {
    name: String,
    #[serde(flatten)]
    attempts: Attempts,
}

impl Attempts {
    /// Returns the wait until the next attempt at `now`. A time further away than any wait comes from a wrong
    /// clock, and is ignored.
    fn wait(self, now: i64) -> Duration {
        let left = self.not_before.saturating_sub(now);
        let left = if left > MAX_WAIT * 5 / 4 { 0 } else { left };
        Duration::from_secs(u64::try_from(left).unwrap_or(0))
    }

    /// Records a failure at `now`.
    fn failed(self, now: i64) -> Attempts {
        let doubled = FIRST_WAIT.saturating_mul(1 << self.failures.min(16));
        let wait = doubled.min(MAX_WAIT);
        Attempts { failures: self.failures.saturating_add(1), not_before: now.saturating_add(jitter(wait)) }
    }
}

impl AttemptHistory {
    /// Reads the results. Without a readable file, there were no attempts.
    pub(super) fn load(folder: &StateFolder) -> AttemptHistory {
        let bytes = folder.read(FILE).ok().flatten();
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Returns the wait until the next attempt at `now`.
    pub(super) fn wait(&self, now: i64) -> Duration {
        self.all.wait(now)
    }

    /// Whether the last attempt failed.
    pub(super) fn has_failed(&self) -> bool {
        self.all.failures > 0
    }

    /// Records a success at `now` with a certificate that expires at `not_after`. The wait guards against an
    /// authority that wants every certificate renewed immediately, and against a clock that is wrong by
    /// months. It leaves a third of the lifetime for the renewal.
    pub(super) fn succeed(&mut self, now: i64, not_after: i64) {
        let wait = jitter(MAX_WAIT).min(not_after.saturating_sub(now).max(0) / 3 * 2);
        self.all = Attempts { failures: 0, not_before: now.saturating_add(wait) };
    }

    /// Records a failure at `now`.
    pub(super) fn fail(&mut self, now: i64) {
        self.all = self.all.failed(now);
    }

    /// Delays the next attempt by the wait that the authority demanded at `now`, at most six hours.
    pub(super) fn delay(&mut self, now: i64, demanded: Duration) {
        let seconds = i64::try_from(demanded.as_secs()).unwrap_or(MAX_WAIT).min(MAX_WAIT);
        self.all.not_before = self.all.not_before.max(now.saturating_add(seconds));
    }

    /// Records that the authority refused a name at `now`. Returns the wait until the next attempt for it.
    pub(super) fn refuse(&mut self, name: &str, now: i64) -> Duration {
        let former = self.refused.iter().position(|refused| refused.name == name);
        let former = former.map(|index| self.refused.swap_remove(index).attempts).unwrap_or_default();
        let attempts = former.failed(now);
        self.refused.push(RefusedAttempts { name: name.to_owned(), attempts });
        attempts.wait(now)
    }

    /// Records that a certificate has these names.
    pub(super) fn accept(&mut self, names: &[String]) {
        self.refused.retain(|refused| !names.contains(&refused.name));
    }

    /// Returns the names whose next attempt is due at `now`.
    pub(super) fn orderable(&self, names: &[String], now: i64) -> Vec<String> {
        names.iter().filter(|name| self.wait_of(name, now).is_zero()).cloned().collect()
    }

    /// Returns the earliest second of the next attempt for one of these names that the authority refused.
    pub(super) fn next_refused(&self, names: &[String], now: i64) -> Option<i64> {
        let waits = names.iter().map(|name| self.wait_of(name, now)).filter(|wait| !wait.is_zero());
        waits.min().map(|wait| now.saturating_add_unsigned(wait.as_secs()))
    }

    fn wait_of(&self, name: &str, now: i64) -> Duration {
        let refused = self.refused.iter().find(|refused| refused.name == name);
        refused.map_or(Duration::ZERO, |refused| refused.attempts.wait(now))
    }

    /// Writes the results. If that fails, as on a full disk, they are kept only in memory.
    pub(super) fn save(&self, folder: &StateFolder, lock: &FolderLock) {
        let bytes = serde_json::to_vec(self).expect("numbers and names are JSON");
        let _ = folder.write(lock, FILE, &bytes, Secrecy::Private);
    }
}

/// Changes a wait randomly by up to a quarter, so that servers that failed together retry at different times.
fn jitter(wait: i64) -> i64 {
    let mut bytes = [0; 2];
    // Without random bytes, the order fails anyway, because it needs a key.
    let _ = rand::fill(&mut bytes);
    let quarter = wait / 4;
    wait - quarter + 2 * quarter * i64::from(u16::from_le_bytes(bytes)) / i64::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::renewal::{self, RenewalWindow};
    use super::*;
    use crate::certificates::facts::CertificateFacts;
    use crate::certificates::generate;
    use crate::state::scratch::ScratchState;

    #[test]
    fn waits_double_up_to_a_bound_and_differ() {
        let now = 1_800_000_000;
        let mut attempts = AttemptHistory::default();
        assert_eq!(attempts.wait(now), Duration::ZERO);
        let mut seen = Vec::new();
        for failure in 0..40 {
            attempts.fail(now);
            let expected = (60u64 << failure.min(20)).min(6 * 3600);
            let wait = attempts.wait(now).as_secs();
            assert!((expected * 3 / 4..=expected * 5 / 4).contains(&wait), "{failure}: {wait}");
            seen.push(wait);
        }
        let last = &seen[20..];
        assert!(last.iter().any(|wait| wait != &last[0]), "the waits do not differ");
    }

    #[test]
    fn a_demanded_wait_lengthens_but_never_shortens() {
        let now = 1_800_000_000;
        let mut attempts = AttemptHistory::default();
        attempts.fail(now);
        let own = attempts.wait(now);
        attempts.delay(now, Duration::from_secs(1));
        assert_eq!(attempts.wait(now), own);
        attempts.delay(now, Duration::from_secs(3600));
        assert_eq!(attempts.wait(now).as_secs(), 3600);
        attempts.delay(now, Duration::from_secs(86_400));
        assert_eq!(attempts.wait(now).as_secs(), 6 * 3600);
    }

    #[test]
    fn a_restart_does_not_shorten_a_wait_and_a_wrong_clock_does_not_lengthen_it() {
        let scratch = ScratchState::new("attempts");
        let folder = scratch.folder();
        let lock = folder.lock().expect("no error").expect("it is free");
        let now = 1_800_000_000;
        let mut attempts = AttemptHistory::default();
        attempts.fail(now);
        attempts.refuse("b.test", now);
        attempts.save(&folder, &lock);
        assert_eq!(AttemptHistory::load(&folder), attempts);
        assert!(attempts.wait(now + 30) > Duration::ZERO);
        assert_eq!(attempts.wait(now + 76), Duration::ZERO);
        assert_eq!(attempts.wait(now - 365 * 86_400), Duration::ZERO, "the clock went back by a year");
        folder.write(&lock, FILE, b"{\"failures\":", Secrecy::Private).expect("room");
        assert_eq!(AttemptHistory::load(&folder), AttemptHistory::default());
    }

    #[test]
    fn a_renewal_begins_when_a_third_of_the_lifetime_is_left() {
        const DAY: i64 = 86_400;
        let now = 1_800_000_000;
        for lifetime in [60, 3600, 6 * DAY, 90 * DAY] {
            // Many authorities backdate a certificate by an hour.
            for early in [0, 3600] {
                let pair =
                    generate::pair_between(&["a.test"], &rcgen::PKCS_ED25519, now - early, now + lifetime);
                let facts = CertificateFacts::read(&pair.certificate).expect("a certificate");
                let past = RenewalWindow { start: now - DAY, end: now - 1 };
                for window in [None, Some(past)] {
                    let mut attempts = AttemptHistory::default();
                    attempts.succeed(now, facts.not_after);
                    let guarded = now + i64::try_from(attempts.wait(now).as_secs()).expect("hours");
                    let begins = renewal::due(&facts, window).max(guarded) - now;
                    let latest = lifetime / 3 * 2;
                    assert!((latest.min(4 * 3600)..=latest).contains(&begins), "{begins} of {lifetime}");
                    if window.is_none() && early == 0 {
                        assert_eq!(begins, latest, "two thirds");
                    }
                }
            }
        }
    }

    #[test]
    fn a_refused_name_waits_by_itself() {
        let now = 1_800_000_000;
        let names = ["a.test", "b.test"].map(str::to_owned);
        let mut attempts = AttemptHistory::default();
        assert_eq!(
            (attempts.orderable(&names, now), attempts.next_refused(&names, now)),
            (names.to_vec(), None)
        );
        let first = attempts.refuse("b.test", now);
        attempts.succeed(now, now + 90 * 86_400);
        assert_eq!(attempts.orderable(&names, now), names[..1]);
        let again = attempts.next_refused(&names, now).expect("it waits");
        assert_eq!(again, now + i64::try_from(first.as_secs()).expect("seconds"));
        assert_eq!(attempts.orderable(&names, again), names, "its wait is over");
        assert!(attempts.refuse("b.test", again) > Duration::from_secs(80), "the wait doubles");
        attempts.accept(&names);
        assert_eq!(attempts.orderable(&names, again), names);
    }
}
