//! Places in a queue, of which no address has all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The part of a queue that an address has in any case.
const ADDRESS_SHARE: usize = 4;

/// The places of one queue. As long as less than half of them are taken, an address may take more than its part.
#[derive(Debug)]
pub(crate) struct AddressPlaces {
    queue: usize,
    taken: Mutex<TakenPlaces>,
}

#[derive(Debug, Default)]
struct TakenPlaces {
    all: usize,
    by_address: BTreeMap<String, usize>,
}

/// A place. It is free when this is dropped.
#[derive(Debug)]
pub(crate) struct AddressPlace {
    of: Arc<AddressPlaces>,
    address: String,
}

impl AddressPlaces {
    /// The places of a queue of this length.
    pub(crate) fn of(queue: usize) -> Arc<AddressPlaces> {
        Arc::new(AddressPlaces { queue, taken: Mutex::default() })
    }

    /// A place for one more of this address; `None` if it has its part and half of the queue is taken.
    pub(crate) fn take(self: &Arc<Self>, address: &str) -> Option<AddressPlace> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let own = taken.by_address.get(address).copied().unwrap_or(0);
        if own >= (self.queue / ADDRESS_SHARE).max(1) && taken.all * 2 >= self.queue {
            return None;
        }
        taken.all += 1;
        taken.by_address.insert(address.to_owned(), own + 1);
        Some(AddressPlace { of: Arc::clone(self), address: address.to_owned() })
    }
}

impl Drop for AddressPlace {
    fn drop(&mut self) {
        let mut taken = self.of.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all -= 1;
        let Some(own) = taken.by_address.get_mut(&self.address) else { return };
        *own -= 1;
        if *own == 0 {
            taken.by_address.remove(&self.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h64_an_address_does_not_take_the_whole_queue() {
        let places = AddressPlaces::of(8);
        let most =
            |address: &str| -> Vec<_> { std::iter::from_fn(|| places.take(address)).take(9).collect() };
        let first = most("192.0.2.1");
        assert_eq!(first.len(), 4, "half of the queue");
        let others = [most("192.0.2.2"), most("192.0.2.3")];
        assert!(others.iter().all(|taken| taken.len() == 2), "a quarter in any case");
        drop(first);
        assert!(places.take("192.0.2.2").is_none(), "half of the queue is taken");
        drop(others);
        let taken = places.taken.lock().expect("nobody panicked");
        assert_eq!((taken.all, taken.by_address.len()), (0, 0));
    }
}
