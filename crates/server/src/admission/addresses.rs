//! The table of addresses: a bounded number of them, in memory that several processes share.
//!
//! An address has one of the eight places that its hash names. A place holds the address, the time at which its next
//! request is due, and the number of connections in each process. The bound applies to their sum. So the counts of a
//! process that dies can be removed ([`Addresses::settle`]) in every state.
//!
//! Lookup, counting and taking a request need atomic operations only. Assigning a place to a new address takes the lock
//! of its eight places; the lock does not stay with a holder that has died. Only a place without connections is
//! reassigned, the longest idle one first.

mod lock;

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

use tenfold_http::Peer;

use super::sync::{AtomicU64, SharedRows};

/// Places that an address may have.
const WAYS: usize = 8;

/// The rows before the rows of processes.
const KEYS: usize = 0;
const DUE: usize = 1;
const LOCKS: usize = 2;
const HANDSHAKES_DUE: usize = 3;
const FIRST_LANE: usize = 4;

/// No address.
const FREE: u64 = 0;
/// A place that is being reassigned.
const CHANGING: u64 = u64::MAX;

/// The counts of addresses.
#[derive(Debug)]
pub(crate) struct Addresses {
    rows: SharedRows,
    sets: u64,
    lanes: usize,
    /// Keyed, so that clients cannot choose addresses that collide.
    hasher: RandomState,
}

/// An address, or the network of 64 bits that an IPv6 address is in. Neither [`FREE`] nor [`CHANGING`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AddressKey(u64);

impl AddressKey {
    /// Returns the key of a peer; `None` for a Unix socket.
    pub(crate) fn of(peer: &Peer) -> Option<AddressKey> {
        match peer {
            Peer::Internet(at) => Some(AddressKey::of_address(at.ip())),
            Peer::Unix => None,
        }
    }

    /// The key of all clients that their proxies do not name.
    pub(crate) const UNNAMED: AddressKey = AddressKey(3 << 32);

    fn of_address(address: IpAddr) -> AddressKey {
        // Other addresses are mapped into networks 0:0::/32 to 0:3::/32, which are not assigned (RFC 4291 §4).
        const IPV4: u64 = 1 << 32;
        const LOOPBACK: u64 = 2 << 32;
        AddressKey(match address.to_canonical() {
            IpAddr::V4(address) => IPV4 | u64::from(address.to_bits()),
            IpAddr::V6(address) => match (address.to_bits() >> 64) as u64 {
                // `::1`; and no connection comes from a multicast address.
                FREE | CHANGING => LOOPBACK,
                network => network,
            },
        })
    }
}

/// The permitted requests per second, and the burst after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestRate {
    /// Nanoseconds from one request to the next.
    interval: u64,
    /// Nanoseconds by which requests may come early.
    ahead: u64,
}

impl RequestRate {
    /// `each` requests a second, in bursts of at most `burst`. Neither is 0.
    pub(crate) fn new(each: u32, burst: u32) -> RequestRate {
        let interval = 1_000_000_000 / u64::from(each.max(1));
        RequestRate { interval, ahead: interval * u64::from(burst.max(1) - 1) }
    }
}

/// The result of admitting a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admitting {
    /// It is counted.
    Admitted,
    /// The address has reached its limit.
    TooMany,
    /// The address has no place, and all its possible places belong to addresses with connections.
    NoRoom,
}

impl Addresses {
    /// A table for at least `addresses`, with a lane for each counting process.
    pub(crate) fn new(addresses: usize, lanes: usize) -> io::Result<Addresses> {
        let sets = addresses.div_ceil(WAYS).max(1);
        let rows = SharedRows::new(FIRST_LANE + lanes, sets * WAYS)?;
        Ok(Addresses { rows, sets: sets as u64, lanes, hasher: RandomState::new() })
    }

    /// Counts a connection from `key` in `lane`, unless the address already has `bound`.
    pub(crate) fn connect(&self, key: AddressKey, lane: usize, bound: u32, now: u64) -> Admitting {
        loop {
            let Some(at) = self.place(key, now) else { return Admitting::NoRoom };
            let own = &self.rows.row(FIRST_LANE + lane)[at];
            own.fetch_add(1, SeqCst);
            // Count first, then compare: of two concurrent connections, at least one sees both.
            if self.keys()[at].load(SeqCst) != key.0 {
                // The place was reassigned meanwhile.
                own.fetch_sub(1, SeqCst);
                continue;
            }
            if self.connections(at) <= u64::from(bound) {
                return Admitting::Admitted;
            }
            own.fetch_sub(1, SeqCst);
            return Admitting::TooMany;
        }
    }

    /// Uncounts a connection.
    pub(crate) fn disconnect(&self, key: AddressKey, lane: usize) {
        // An address with connections keeps its place, but another thread may be checking for connections.
        if let Some(at) = self.find(key).or_else(|| self.locked(key, |_| self.find(key))) {
            let own = &self.rows.row(FIRST_LANE + lane)[at];
            let _ = own.fetch_update(SeqCst, SeqCst, |count| count.checked_sub(1));
        }
    }

    /// Takes a request of `key` at the time `now`, in nanoseconds, or returns how much too early it is.
    ///
    /// The state is one word: the time at which the next request is due at an even rate (GCRA, ITU-T I.371). A time in
    /// the past is a full bucket.
    pub(crate) fn request(&self, key: AddressKey, rate: RequestRate, now: u64) -> Option<Duration> {
        let Some(at) = self.place(key, now) else { return Some(Duration::from_nanos(rate.interval)) };
        self.take_one(DUE, at, rate, now)
    }

    /// Takes a handshake of `key` in the same way. Returns `None` if the address is unknown and has no place.
    pub(crate) fn handshake(&self, key: AddressKey, rate: RequestRate, now: u64) -> Option<bool> {
        let at = self.place(key, now)?;
        Some(self.take_one(HANDSHAKES_DUE, at, rate, now).is_none())
    }

    fn take_one(&self, row: usize, at: usize, rate: RequestRate, now: u64) -> Option<Duration> {
        let next = |due: u64| {
            let due = due.max(now);
            (due - now <= rate.ahead).then_some(due + rate.interval)
        };
        let refused = self.rows.row(row)[at].fetch_update(Relaxed, Relaxed, next).err()?;
        Some(Duration::from_nanos(refused - now - rate.ahead))
    }

    /// Removes the counts of a process that has ended.
    pub(crate) fn settle(&self, lane: usize) {
        self.rows.row(FIRST_LANE + lane).iter().for_each(|count| count.store(0, SeqCst));
    }

    fn keys(&self) -> &[AtomicU64] {
        self.rows.row(KEYS)
    }

    fn set(&self, key: AddressKey) -> Range<usize> {
        let set = (self.hasher.hash_one(key) % self.sets) as usize;
        set * WAYS..(set + 1) * WAYS
    }

    /// The connections of the address at a place, in all processes.
    fn connections(&self, at: usize) -> u64 {
        (0..self.lanes).map(|lane| self.rows.row(FIRST_LANE + lane)[at].load(SeqCst)).sum()
    }

    fn find(&self, key: AddressKey) -> Option<usize> {
        self.set(key).find(|at| self.keys()[*at].load(SeqCst) == key.0)
    }

    /// The place of an address; assigns a place if necessary.
    fn place(&self, key: AddressKey, now: u64) -> Option<usize> {
        self.find(key)
            .or_else(|| self.locked(key, |set| self.find(key).or_else(|| self.take_place(set, key, now))))
    }

    /// Runs `work` under the lock of this address's set.
    #[cold]
    fn locked<T>(&self, key: AddressKey, work: impl FnOnce(Range<usize>) -> Option<T>) -> Option<T> {
        let set = self.set(key);
        // A holder that died leaves a state that the checks below recognise.
        let _held = lock::hold(&self.rows.row(LOCKS)[set.start]);
        work(set)
    }

    /// Takes the place of an address without connections. The caller holds the lock of the set.
    fn take_place(&self, set: Range<usize>, key: AddressKey, now: u64) -> Option<usize> {
        let (keys, due) = (self.keys(), self.rows.row(DUE));
        let mut idle: Vec<usize> = set.filter(|at| self.connections(*at) == 0).collect();
        // A lock holder that died may have left a place in reassignment: it is free.
        let worth = |at: &usize| match keys[*at].load(SeqCst) {
            FREE | CHANGING => 0,
            _ => due[*at].load(Relaxed).max(1),
        };
        idle.sort_by_key(worth);
        for at in idle {
            let former = keys[at].swap(CHANGING, SeqCst);
            // A connection may have been counted between the check and the swap. Later ones see that the place is
            // changing.
            if self.connections(at) != 0 {
                keys[at].store(former, SeqCst);
                continue;
            }
            due[at].store(now, Relaxed);
            self.rows.row(HANDSHAKES_DUE)[at].store(now, Relaxed);
            keys[at].store(key.0, SeqCst);
            return Some(at);
        }
        None
    }
}

#[cfg(test)]
mod tests;
