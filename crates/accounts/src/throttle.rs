//! Limits of attempts, per name and per address.
//!
//! Each limit has a burst and a rate (the generic cell rate algorithm, with one number per entry). A browser that has
//! logged in with a name has a limit of its own. A few more attempts at a name are reserved for addresses that have not
//! failed at it. So guessing does not lock the owner out. A successful attempt is refunded.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use crate::ask::ClientIdentity;

/// The most entries of a table; beyond it, the oldest entries are dropped. Each name costs an attempt with a hash, so
/// an attacker cannot quickly make the server forget names.
const REMEMBERED: usize = 65_536;

/// The burst, and the milliseconds for each further attempt.
#[derive(Clone, Copy, Debug)]
struct AttemptRate {
    /// The index of its table.
    table: usize,
    burst: u64,
    every: u64,
}

const BY_ADDRESS: AttemptRate = AttemptRate { table: 0, burst: 20, every: 5_000 };
const BY_NAME: AttemptRate = AttemptRate { table: 1, burst: 10, every: 30_000 };
const NEW_ACCOUNTS: AttemptRate = AttemptRate { table: 2, burst: 10, every: 60_000 };
/// The attempts at a name that are reserved for addresses that have not failed at it.
const KEPT: AttemptRate = AttemptRate { table: 3, burst: 5, every: 30_000 };
/// The table of addresses that have failed at a name, and the milliseconds for which an entry counts. In that time,
/// [`KEPT`] admits 2,885 attempts: an attacker needs that many addresses to lock the owner out.
const FAILED: usize = 4;
const FAILED_FOR: u64 = 24 * 3_600_000;

/// For each key, the time at which its whole burst is available, in milliseconds.
type RefillTimes = HashMap<u64, u64>;

/// The recent attempts.
#[derive(Debug, Default)]
pub struct Throttle {
    off: bool,
    /// A key is a hash, because the text of a worker may be long.
    tables: Mutex<[RefillTimes; 5]>,
    hasher: RandomState,
}

/// An admitted attempt, which is refunded on success.
#[derive(Debug, Default)]
pub struct AdmittedAttempt {
    used: Vec<(u64, AttemptRate)>,
    /// The entry in [`FAILED`], and its former time.
    failed: Option<(u64, Option<u64>)>,
}

impl Throttle {
    /// Creates a throttle; it admits everything unless `on`.
    pub fn new(on: bool) -> Throttle {
        Throttle { off: !on, ..Throttle::default() }
    }

    /// Admits a login attempt for the name with this key; `known` if the browser has logged in with it before. An error
    /// has the seconds until the next attempt.
    pub fn login(
        &self,
        from: &ClientIdentity,
        key: &str,
        known: bool,
        now: u64,
    ) -> Result<AdmittedAttempt, u64> {
        let name = match (&from.known, known) {
            (Some(shown), true) => ("known", shown.as_str()),
            _ => ("name", key),
        };
        let address = (self.hasher.hash_one(("address", from.address.as_str())), BY_ADDRESS);
        let failed = self.hasher.hash_one(("failed", key, from.address.as_str()));
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let admitted = self.admit(&mut tables, vec![(self.hasher.hash_one(name), BY_NAME), address], now);
        let mut admitted = admitted.or_else(|wait| {
            let may_use_kept = !known && tables[FAILED].get(&failed).is_none_or(|until| *until <= now);
            let kept = vec![(self.hasher.hash_one(("kept", key)), KEPT), address];
            if may_use_kept { self.admit(&mut tables, kept, now) } else { Err(wait) }
        })?;
        if !self.off {
            // A success removes the entry.
            let former = remember(&mut tables[FAILED], failed, now, now + FAILED_FOR);
            admitted.failed = Some((failed, former));
        }
        Ok(admitted)
    }

    /// Admits a registration from this address, as [`Throttle::login`].
    pub(crate) fn register(&self, from: &ClientIdentity, now: u64) -> Result<AdmittedAttempt, u64> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let new = (self.hasher.hash_one(("new", from.address.as_str())), NEW_ACCOUNTS);
        self.admit(&mut tables, vec![new], now)
    }

    /// Refunds a successful attempt, and removes the address from [`FAILED`].
    pub fn succeeded(&self, mut attempt: AdmittedAttempt) {
        attempt.failed = attempt.failed.map(|(what, _)| (what, None));
        self.give_back(attempt);
    }

    /// Refunds an attempt as if it had not been made.
    pub fn give_back(&self, AdmittedAttempt { used, failed }: AdmittedAttempt) {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        for (what, rate) in used {
            if let Some(at) = tables[rate.table].get_mut(&what) {
                *at = at.saturating_sub(rate.every);
            }
        }
        match failed {
            Some((what, Some(former))) => tables[FAILED].insert(what, former),
            Some((what, None)) => tables[FAILED].remove(&what),
            None => None,
        };
    }

    fn admit(
        &self,
        tables: &mut [RefillTimes; 5],
        wanted: Vec<(u64, AttemptRate)>,
        now: u64,
    ) -> Result<AdmittedAttempt, u64> {
        if self.off {
            return Ok(AdmittedAttempt::default());
        }
        let after = |(what, rate): &(u64, AttemptRate)| {
            let at = tables[rate.table].get(what).copied().unwrap_or(0).max(now);
            (at + rate.every).saturating_sub(now + rate.burst * rate.every)
        };
        let wait = wanted.iter().map(after).max().unwrap_or(0);
        if wait > 0 {
            return Err(wait.div_ceil(1000));
        }
        for (what, rate) in &wanted {
            let table = &mut tables[rate.table];
            let at = table.get(what).copied().unwrap_or(0).max(now) + rate.every;
            remember(table, *what, now, at);
        }
        Ok(AdmittedAttempt { used: wanted, failed: None })
    }
}

/// Sets an entry, and returns its former value.
fn remember(table: &mut RefillTimes, what: u64, now: u64, at: u64) -> Option<u64> {
    if table.len() >= REMEMBERED {
        forget(table, now);
    }
    table.insert(what, at)
}

/// Drops entries with a whole burst. If too many remain, drops the half that is closest to a whole burst.
fn forget(full_at: &mut RefillTimes, now: u64) {
    full_at.retain(|_, at| *at > now);
    if full_at.len() > REMEMBERED / 2 {
        let mut all: Vec<_> = full_at.values().copied().collect();
        let middle = all.len() / 2;
        let (_, median, _) = all.select_nth_unstable(middle);
        let median = *median;
        full_at.retain(|_, at| *at > median);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> ClientIdentity {
        ClientIdentity { address: address.into(), known: None }
    }

    /// Guesses from many addresses.
    fn exhaust(throttle: &Throttle, name: &str) {
        let fails = |n: &u32| throttle.login(&at(&format!("10.1.0.{n}")), name, false, 0).is_err();
        assert_eq!((0..).find(fails), Some(15), "ten, and five for addresses that have not failed");
    }

    #[test]
    fn h76_a_long_address_or_name_is_not_kept() {
        let throttle = Throttle::new(true);
        let from = ClientIdentity { address: "a".repeat(100_000), known: Some("k".repeat(100_000)) };
        throttle.login(&from, "ann", true, 0).expect("the first one");
        throttle.login(&from, &"n".repeat(100_000), false, 0).expect("the first one");
        throttle.register(&from, 0).expect("the first one");
        assert!(format!("{throttle:?}").len() < 1_000);
    }

    #[test]
    fn h63_guessing_at_a_name_is_throttled_from_any_address() {
        let throttle = Throttle::new(true);
        for attempt in 0..15 {
            throttle.login(&at(&format!("10.0.0.{attempt}")), "ann", false, 0).expect("ten and five at once");
        }
        assert_eq!(throttle.login(&at("10.0.0.99"), "ann", false, 0).expect_err("no more"), 30);
        assert!(throttle.login(&at("10.0.0.99"), "bob", false, 0).is_ok(), "another name");
        assert!(throttle.login(&at("10.0.0.99"), "ann", false, 30_000).is_ok(), "one more");
        assert!(throttle.login(&at("10.0.0.99"), "ann", false, 30_000).is_err(), "and only one");
    }

    #[test]
    fn h63_an_address_that_has_not_failed_has_attempts_of_its_own() {
        let throttle = Throttle::new(true);
        for second in 0..=3599 {
            let _ = throttle.login(&at("10.0.0.1"), "ann", false, second * 1000);
        }
        let now = 3_599_000;
        assert!(throttle.login(&at("10.0.0.1"), "ann", false, now).is_err(), "it has failed");
        for _ in 0..2 * KEPT.burst {
            let owner = throttle.login(&at("10.0.0.2"), "ann", false, now).expect("it has not failed");
            throttle.succeeded(owner);
        }
        let failed = throttle.login(&at("10.0.0.2"), "ann", false, now).expect("one mistake");
        let refused = throttle.login(&at("10.0.0.2"), "ann", false, now).is_err();
        assert!(refused, "it has failed now");
        throttle.give_back(failed);
        throttle.login(&at("10.0.0.2"), "ann", false, now).expect("that attempt was not made");
        let many =
            (3..200).filter(|n| throttle.login(&at(&format!("10.0.0.{n}")), "ann", false, now).is_ok());
        assert_eq!(many.count() as u64, KEPT.burst - 1, "many addresses share them");
    }

    #[test]
    fn h63_an_owner_who_is_known_is_not_locked_out() {
        let throttle = Throttle::new(true);
        exhaust(&throttle, "ann");
        let owner = ClientIdentity { address: "10.0.0.2".into(), known: Some("shown".into()) };
        assert!(throttle.login(&owner, "ann", false, 0).is_err(), "what is shown is not true");
        assert!(throttle.login(&owner, "ann", true, 0).is_ok());
    }

    #[test]
    fn h63_an_address_is_throttled_at_any_name() {
        let throttle = Throttle::new(true);
        for attempt in 0..20 {
            throttle.login(&at("10.0.0.1"), &format!("name{attempt}"), false, 0).expect("twenty at once");
        }
        assert_eq!(throttle.login(&at("10.0.0.1"), "another", false, 0).expect_err("no more"), 5);
        assert!(throttle.login(&at("10.0.0.2"), "another", false, 0).is_ok());
    }

    #[test]
    fn successes_are_not_counted() {
        let throttle = Throttle::new(true);
        for _ in 0..100 {
            let admitted = throttle.login(&at("10.0.0.1"), "ann", false, 0).expect("it was given back");
            throttle.succeeded(admitted);
        }
    }

    #[test]
    fn memory_is_bounded_and_recent_guesses_are_remembered() {
        let throttle = Throttle::new(true);
        exhaust(&throttle, "ann");
        for number in 0..2 * REMEMBERED {
            let _ = throttle.login(&at(&format!("a{number}")), &format!("n{number}"), false, 0);
        }
        // Each of these costs no hash, and delays its key more than the name's.
        for number in 0..2 * REMEMBERED {
            for _ in 0..NEW_ACCOUNTS.burst {
                let _ = throttle.register(&at(&format!("b{number}")), 0);
            }
        }
        let tables = throttle.tables.lock().expect("not poisoned");
        assert!(tables.iter().all(|table| table.len() <= REMEMBERED));
        drop(tables);
        assert!(throttle.login(&at("10.0.0.1"), "ann", false, 0).is_err());
    }

    #[test]
    fn off_is_off() {
        let throttle = Throttle::new(false);
        assert!((0..1000).all(|_| throttle.login(&at("10.0.0.1"), "ann", false, 0).is_ok()));
    }
}
