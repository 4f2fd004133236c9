//! The stores of a thread, one for each site that it serves.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use crate::Site;
use crate::respond::steps::Store;

/// Stores of a thread: a bound for one that sees many sites come and go.
const MOST_STORES: usize = 64;

thread_local! {
    static STORES: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
}

struct Kept {
    site: u64,
    alive: Weak<()>,
    store: Store,
}

/// Hands over this thread's store for `site`.
#[inline]
pub(crate) fn with<T>(site: &Site, use_it: impl FnOnce(&mut Store) -> T) -> T {
    STORES.with_borrow_mut(|stores| {
        let place = match stores.iter().position(|kept| kept.site == site.id) {
            Some(place) => place,
            None => begin(site, stores),
        };
        use_it(&mut stores[place].store)
    })
}

/// Makes a store for a site that is new here, and drops those of sites that are gone.
#[cold]
fn begin(site: &Site, stores: &mut Vec<Kept>) -> usize {
    stores.retain(|kept| kept.alive.strong_count() > 0);
    if stores.len() >= MOST_STORES {
        stores.remove(0);
    }
    let store = Store::new(&site.settings);
    stores.push(Kept { site: site.id, alive: Arc::downgrade(&site.alive), store });
    stores.len() - 1
}
