//! Who is let in, by address: how many connections one has, and how many requests it makes.
//!
//! What is counted lies in memory that all workers share ([`Addresses`]), so a bound is the server's and not
//! the worker's. IPv6 addresses count by their first 64 bits: that is what one customer is given (RFC 6177).

mod addresses;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenfold_http::{Peer, clock};

pub(crate) use addresses::{Addresses, Rate};
use addresses::{Entry, Key};

use crate::diagnostics::warning;
use crate::settings::Settings;

/// What one address may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shares {
    /// Connections at once.
    pub(crate) connections: Option<u32>,
    /// Requests a second.
    pub(crate) requests: Option<Rate>,
}

impl Shares {
    /// What the settings say; `None` where they bound nothing.
    pub(crate) fn of(settings: &Settings) -> Option<Shares> {
        let rate = |each: u32| Rate::new(each, settings.request_burst.unwrap_or(each));
        let requests = settings.max_requests_per_address.map(rate);
        let shares = Shares { connections: settings.max_connections_per_address, requests };
        (shares != Shares::default()).then_some(shares)
    }
}

/// What a worker process asks before it serves.
#[derive(Debug)]
pub(crate) struct Admission {
    addresses: &'static Addresses,
    /// The row of this process.
    lane: usize,
    shares: Shares,
    /// When a connection that was turned away was last told of, in seconds since 1970.
    said: AtomicU64,
}

impl Admission {
    /// For the process that counts in `lane`.
    pub(crate) fn new(addresses: &'static Addresses, lane: usize, shares: Shares) -> Admission {
        Admission { addresses, lane, shares, said: AtomicU64::new(0) }
    }

    /// Whether requests are counted.
    pub(crate) fn throttles(&self) -> bool {
        self.shares.requests.is_some()
    }

    /// Whether one more connection of `peer` is served; it is counted from here until [`Admission::dismiss`].
    pub(crate) fn admit(&self, peer: &Peer) -> bool {
        let Some(bound) = self.shares.connections else { return true };
        let Some(key) = Key::of(peer) else { return true };
        let entry = self.addresses.connect(key, self.lane, bound, now());
        if entry != Entry::Admitted {
            self.tell(peer, bound, entry);
        }
        entry == Entry::Admitted
    }

    /// A connection of `peer` that was admitted has ended.
    pub(crate) fn dismiss(&self, peer: &Peer) {
        if let (Some(_), Some(key)) = (self.shares.connections, Key::of(peer)) {
            self.addresses.disconnect(key, self.lane);
        }
    }

    /// Takes one request from what `peer` may make. Where nothing is left, says after what time there is.
    pub(crate) fn throttle(&self, peer: &Peer) -> Option<Duration> {
        let (rate, key) = (self.shares.requests?, Key::of(peer)?);
        self.addresses.request(key, rate, now())
    }

    /// Once a second at most, on standard error: a connection that is turned away has no line in the log.
    #[cold]
    fn tell(&self, peer: &Peer, bound: u32, entry: Entry) {
        let (second, Peer::Internet(at)) = (clock::unix_seconds(), peer) else { return };
        if self.said.swap(second, Ordering::Relaxed) == second {
            return;
        }
        match entry {
            Entry::NoRoom => warning!("{} is turned away: max-addresses are known already", at.ip()),
            _ => {
                warning!("{} has {bound} connections (max-connections-per-address); more are closed", at.ip())
            }
        }
    }
}

/// The time that all workers share, in nanoseconds.
fn now() -> u64 {
    clock::now().0.saturating_mul(1_000_000)
}
