//! Identifiers of requests (`request-id`): that of a trusted proxy, or a new one.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use tenfold_http::semantics::forwarded::TrustedProxies;
use tenfold_http::{Peer, Request, RequestId};

/// Makes the identifiers of a worker. They are unique, and not secret.
#[derive(Debug)]
pub(super) struct RequestIds {
    seed: u64,
}

thread_local! {
    /// The number of identifiers that this thread has made.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

impl RequestIds {
    /// To be called in each worker after its fork, which copies the state of random numbers.
    pub(super) fn new() -> RequestIds {
        RequestIds { seed: RandomState::new().hash_one((std::process::id(), nanoseconds())) }
    }

    /// Returns the identifier of a request on a connection with this peer.
    pub(super) fn of(&self, request: &Request<'_>, peer: &Peer, proxies: &TrustedProxies) -> RequestId {
        let field = if proxies.trusts(peer) { request.values("x-request-id").next() } else { None };
        field.and_then(RequestId::read).unwrap_or_else(|| self.made(peer))
    }

    /// The count and its address distinguish threads. The time and the peer distinguish the processes of `fork`, which begin
    /// with the same count.
    fn made(&self, peer: &Peer) -> RequestId {
        let (count, place) = COUNT.with(|count| {
            let next = count.get() + 1;
            count.set(next);
            (next, std::ptr::from_ref(count).addr() as u64)
        });
        let peer = match peer {
            Peer::Internet(at) => mixed(u64::from(at.port())),
            Peer::Unix => 0,
        };
        let high = mixed(self.seed ^ mixed(count) ^ peer);
        let low = mixed(high ^ nanoseconds() ^ place.rotate_left(32));
        RequestId::of_number(u128::from(high) << 64 | u128::from(low))
    }
}

fn nanoseconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// SplitMix64: a permutation of all numbers whose results look random (Steele, Lea and Flood, OOPSLA 2014).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn identifiers_differ() {
        let ids = RequestIds::new();
        let thread = || (0..1000).map(|_| ids.made(&Peer::Unix)).collect::<Vec<_>>();
        let all: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(thread)).collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
        });
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 4000);
    }
}
