//! Clients for which the admin listener waits: for the rest of a head, or until they read a response.
//!
//! Readers of metrics need few connections. Waiting connections have a bound for each address, loopback included, and a
//! bound for all addresses, so that no client can occupy the listener. Past a bound, the oldest waiting connection
//! closes.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use tenfold_http::{Next, Peer};

/// The most waiting connections of one address.
const OF_ADDRESS: usize = 16;
/// The most waiting connections of all addresses. The listener permits more connections, so that there is room for new
/// requests.
const OF_ALL: usize = 48;

/// The waiting connections.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting(Arc<Mutex<WaitingList>>);

#[derive(Debug, Default)]
struct WaitingList {
    /// In the order in which the waits began.
    all: BTreeMap<u64, WaitingClient>,
    next: u64,
}

#[derive(Debug)]
struct WaitingClient {
    /// `None` for a Unix socket.
    address: Option<IpAddr>,
    waker: Waker,
}

/// The entry of a waiting connection.
struct WaitingPlace<'w> {
    waiting: &'w Waiting,
    number: u64,
}

impl Drop for WaitingPlace<'_> {
    fn drop(&mut self) {
        self.waiting.lock().all.remove(&self.number);
    }
}

impl Waiting {
    /// Serves a connection of `peer` until `serve` ends, or until the connection must close for another.
    pub(super) async fn bounded(&self, peer: Peer, serve: impl Future<Output = Next>) -> Next {
        let mut serve = pin!(serve);
        let mut place: Option<WaitingPlace<'_>> = None;
        poll_fn(|cx| {
            if place.as_ref().is_some_and(|place| !self.lock().all.contains_key(&place.number)) {
                return Poll::Ready(Next::Close);
            }
            let polled = serve.as_mut().poll(cx);
            if polled.is_pending() && place.is_none() {
                place = Some(WaitingPlace { waiting: self, number: self.enter(&peer, cx.waker().clone()) });
            }
            polled
        })
        .await
    }

    /// Adds a connection. Past a bound, removes the oldest connection and wakes its task, which then closes.
    fn enter(&self, peer: &Peer, waker: Waker) -> u64 {
        let address = match peer {
            Peer::Internet(at) => Some(at.ip().to_canonical()),
            Peer::Unix => None,
        };
        let mut list = self.lock();
        let of_address = |list: &WaitingList| {
            let same = list.all.iter().filter(|(_, client)| client.address == address);
            let same: Vec<_> = same.map(|(number, _)| *number).collect();
            same.first().copied().filter(|_| same.len() >= OF_ADDRESS)
        };
        let of_all =
            |list: &WaitingList| list.all.keys().next().copied().filter(|_| list.all.len() >= OF_ALL);
        if let Some(client) = of_address(&list).or_else(|| of_all(&list)).and_then(|at| list.all.remove(&at))
        {
            client.waker.wake();
        }
        let number = list.next;
        list.next += 1;
        list.all.insert(number, WaitingClient { address, waker });
        number
    }

    fn lock(&self) -> MutexGuard<'_, WaitingList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::Pin;
    use std::task::Context;

    use super::*;

    type Served<'w> = Pin<Box<dyn Future<Output = Next> + 'w>>;

    fn client<'w>(waiting: &'w Waiting, address: &str) -> Served<'w> {
        let peer = Peer::Internet((address.parse::<IpAddr>().expect("an address"), 1234).into());
        let mut client: Served<'w> = Box::pin(waiting.bounded(peer, pending()));
        assert!(is_served(&mut client));
        client
    }

    fn is_served(client: &mut Served<'_>) -> bool {
        client.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    #[test]
    fn the_oldest_client_of_an_address_gives_way_loopback_included() {
        let waiting = Waiting::default();
        let mut other = client(&waiting, "192.0.2.1");
        let mut clients: Vec<_> = (0..OF_ADDRESS + 3).map(|_| client(&waiting, "127.0.0.1")).collect();
        let served: Vec<_> = clients.iter_mut().map(is_served).collect();
        assert_eq!(served.iter().position(|served| *served), Some(3), "{served:?}");
        assert!(served[3..].iter().all(|served| *served) && is_served(&mut other));
        drop(clients);
        assert_eq!(waiting.lock().all.len(), 1);
    }

    #[test]
    fn the_oldest_client_of_all_gives_way() {
        let waiting = Waiting::default();
        let mut clients: Vec<_> =
            (0..OF_ALL + 2).map(|number| client(&waiting, &format!("192.0.2.{number}"))).collect();
        let served: Vec<_> = clients.iter_mut().map(is_served).collect();
        assert_eq!(served.iter().filter(|served| !**served).count(), 2);
        assert!(!served[0] && !served[1]);
    }

    #[test]
    fn a_client_that_is_answered_without_a_wait_takes_no_place() {
        let waiting = Waiting::default();
        let mut served = Box::pin(waiting.bounded(Peer::Unix, ready(Next::Close)));
        assert!(served.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
        assert_eq!(waiting.lock().next, 0);
    }
}
