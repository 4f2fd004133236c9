//! Bounds by address: simultaneous connections, requests a second, and places in queues of work.
//!
//! The counts are in memory that all workers share ([`Addresses`]), so a bound is the server's and not
//! the worker's. IPv6 addresses count by their first 64 bits, which every customer has; many have more (RFC 6177).

mod addresses;
pub(crate) mod lane;
pub(crate) mod places;
pub(crate) mod shared_places;
mod sync;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenfold_http::{Peer, TrustedProxy, clock};

use addresses::{AddressKey, Admitting};
pub(crate) use addresses::{Addresses, RequestRate};

use crate::diagnostics::warning;

/// The bounds of one address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AddressShares {
    pub(crate) connections: ConnectionBound,
    /// Requests a second.
    pub(crate) requests: Option<RequestRate>,
    /// TLS handshakes a second.
    pub(crate) handshakes: HandshakeBound,
    /// Proxies, whose connections carry many clients.
    pub(crate) trusted: Vec<TrustedProxy>,
}

/// The bound of simultaneous connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ConnectionBound {
    #[default]
    Unbounded,
    /// This many, for every address.
    Explicit(u32),
    /// This many, because the settings name no bound and other machines can connect to some listener. It applies to addresses
    /// other than loopback, and a full table refuses no connection.
    Default(u32),
}

/// TLS handshakes a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HandshakeBound {
    #[default]
    Unbounded,
    /// Of every address.
    Explicit(RequestRate),
    /// As [`ConnectionBound::Default`].
    Default(RequestRate),
}

/// The check that a worker process makes before it serves.
#[derive(Debug)]
pub(crate) struct Admission {
    addresses: &'static Addresses,
    /// The row of this process.
    lane: usize,
    shares: AddressShares,
    /// The time of the last report of a refused connection, in seconds since 1970.
    said: AtomicU64,
}

impl Admission {
    /// For the process that counts in `lane`.
    pub(crate) fn new(addresses: &'static Addresses, lane: usize, shares: AddressShares) -> Admission {
        Admission { addresses, lane, shares, said: AtomicU64::new(0) }
    }

    /// Whether requests are counted.
    pub(crate) fn throttles(&self) -> bool {
        self.shares.requests.is_some()
    }

    /// Whether to serve one more connection of `peer`. If so, it is counted until [`Admission::on_close`].
    pub(crate) fn admit(&self, peer: &Peer) -> bool {
        let Some((key, bound)) = self.bound_of(peer) else { return true };
        let entry = self.addresses.connect(key, self.lane, bound, now());
        let by_default = matches!(self.shares.connections, ConnectionBound::Default(_));
        let admitted = entry == Admitting::Admitted || entry == Admitting::NoRoom && by_default;
        if !admitted {
            self.tell(peer, bound, entry);
        }
        admitted
    }

    /// Takes one handshake from the rate of `peer`. Returns false if it is used up.
    pub(crate) fn admit_handshake(&self, peer: &Peer) -> bool {
        let (rate, by_default) = match self.shares.handshakes {
            HandshakeBound::Unbounded => return true,
            HandshakeBound::Explicit(rate) => (rate, false),
            HandshakeBound::Default(_) if is_loopback(peer) => return true,
            HandshakeBound::Default(rate) => (rate, true),
        };
        let Some(key) = AddressKey::of(peer).filter(|_| !self.trusts(peer)) else { return true };
        self.addresses.handshake(key, rate, now()).unwrap_or(by_default)
    }

    fn trusts(&self, peer: &Peer) -> bool {
        self.shares.trusted.iter().any(|proxy| proxy.is(peer))
    }

    /// The key for counting a peer, and its bound on connections; `None` if it has no bound.
    fn bound_of(&self, peer: &Peer) -> Option<(AddressKey, u32)> {
        let bound = match self.shares.connections {
            ConnectionBound::Unbounded => return None,
            ConnectionBound::Explicit(bound) => bound,
            ConnectionBound::Default(_) if is_loopback(peer) => return None,
            ConnectionBound::Default(bound) => bound,
        };
        if self.trusts(peer) { None } else { Some((AddressKey::of(peer)?, bound)) }
    }

    /// An admitted connection of `peer` has ended.
    pub(crate) fn on_close(&self, peer: &Peer) {
        if let Some((key, _)) = self.bound_of(peer) {
            self.addresses.disconnect(key, self.lane);
        }
    }

    /// Takes one request from the rate of `peer`. If it is used up, returns the time until the next. `is_named` is false
    /// if `peer` is a proxy whose fields name different clients: such requests must not use up its own rate.
    pub(crate) fn throttle(&self, peer: &Peer, is_named: bool) -> Option<Duration> {
        let key = if is_named { AddressKey::of(peer)? } else { AddressKey::UNNAMED };
        self.addresses.request(key, self.shares.requests?, now())
    }

    /// At most once a second, on standard error: a refused connection has no line in the log.
    #[cold]
    fn tell(&self, peer: &Peer, bound: u32, entry: Admitting) {
        let (second, Peer::Internet(at)) = (clock::unix_seconds(), peer) else { return };
        if self.said.swap(second, Ordering::Relaxed) == second {
            return;
        }
        match entry {
            Admitting::NoRoom => warning!(
                "{} is refused: its places in the table belong to addresses with connections; the address is served \
                 when a place is free",
                at.ip()
            ),
            _ => {
                warning!("{} has {bound} connections (max-connections-per-address); more are closed", at.ip())
            }
        }
    }
}

/// A packet from a loopback address never comes from the network.
fn is_loopback(peer: &Peer) -> bool {
    matches!(peer, Peer::Internet(at) if at.ip().to_canonical().is_loopback())
}

/// The time that all workers share, in nanoseconds.
fn now() -> u64 {
    clock::now().0.saturating_mul(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(connections: ConnectionBound) -> Admission {
        let addresses = Box::leak(Box::new(Addresses::new(64, 1).expect("there is memory")));
        let trusted = vec!["198.51.100.0/24".parse().expect("a network")];
        Admission::new(addresses, 0, AddressShares { connections, trusted, ..AddressShares::default() })
    }

    fn peer(address: &str) -> Peer {
        Peer::Internet((address.parse::<std::net::IpAddr>().expect("an address"), 1234).into())
    }

    #[test]
    fn the_default_bound_holds_off_loopback_and_not_for_trusted_proxies() {
        let admission = admission(ConnectionBound::Default(2));
        let three = |peer: &Peer| [(); 3].map(|()| admission.admit(peer));
        assert_eq!(three(&peer("192.0.2.1")), [true, true, false]);
        for exempt in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "198.51.100.7"] {
            assert_eq!(three(&peer(exempt)), [true; 3], "{exempt}");
        }
        assert_eq!(three(&Peer::Unix), [true; 3]);
        admission.on_close(&peer("192.0.2.1"));
        assert_eq!(three(&peer("192.0.2.1")), [true, false, false]);
    }

    #[test]
    fn an_explicit_bound_holds_on_loopback_and_not_for_trusted_proxies() {
        let admission = admission(ConnectionBound::Explicit(2));
        let three = |peer: &Peer| [(); 3].map(|()| admission.admit(peer));
        assert_eq!(three(&peer("127.0.0.1")), [true, true, false]);
        assert_eq!(three(&peer("198.51.100.7")), [true; 3]);
    }

    #[test]
    fn a_full_table_turns_addresses_away_only_for_an_explicit_bound() {
        for (connections, expected) in
            [(ConnectionBound::Explicit(2), false), (ConnectionBound::Default(2), true)]
        {
            let admission = admission(connections);
            let all = (0..=255).all(|last| admission.admit(&peer(&format!("192.0.2.{last}"))));
            assert_eq!(all, expected, "{connections:?}");
        }
    }

    #[test]
    fn handshakes_have_a_rate_by_address_and_loopback_has_none_by_default() {
        for (handshakes, expected) in [
            (HandshakeBound::Default(RequestRate::new(1, 2)), [false, true, true]),
            (HandshakeBound::Explicit(RequestRate::new(1, 2)), [false, false, true]),
            (HandshakeBound::Unbounded, [true, true, true]),
        ] {
            let mut admission = admission(ConnectionBound::Unbounded);
            admission.shares.handshakes = handshakes;
            for (address, third) in ["192.0.2.1", "127.0.0.1", "198.51.100.7"].into_iter().zip(expected) {
                let peer = peer(address);
                let three = [(); 3].map(|()| admission.admit_handshake(&peer));
                assert_eq!(three, [true, true, third], "{handshakes:?} {address}");
            }
            assert!(admission.admit_handshake(&Peer::Unix));
        }
    }
}
