//! A bounded map from paths to cached values, with second-chance eviction.
//!
//! A hit sets a bit. To make room, a hand goes round: an entry with the bit loses it, an entry
//! without it loses its place (the CLOCK algorithm). The hand spares at most [`CHANCES`] entries in a row,
//! so that one eviction has a bounded cost, even when everything was used since it last came by.

use std::collections::HashMap;
use std::rc::Rc;

use tenfold_http::Instant;

/// Entries that one eviction spares at most.
const CHANCES: usize = 16;

/// A moment more than a second before any at which a server answers: its clock begins with the machine's.
const LONG_AGO: Instant = Instant(0);

/// Whether something that was checked at this moment is still believed: it is for a second.
#[inline]
pub(crate) fn is_fresh(checked: Instant, now: Instant) -> bool {
    now.0.saturating_sub(checked.0) < 1000
}

/// A bounded map.
pub(crate) struct ClockCache<V> {
    places: HashMap<Rc<str>, usize, foldhash::fast::RandomState>,
    slots: Vec<CacheSlot<V>>,
    hand: usize,
    bytes: usize,
    most_entries: usize,
    most_bytes: usize,
}

struct CacheSlot<V> {
    key: Rc<str>,
    value: V,
    checked: Instant,
    used: bool,
    weight: usize,
}

impl<V> ClockCache<V> {
    /// An empty map of at most so many entries, and at most so many bytes by their weights.
    pub(crate) fn new(most_entries: usize, most_bytes: usize) -> ClockCache<V> {
        ClockCache {
            places: HashMap::default(),
            slots: Vec::new(),
            hand: 0,
            bytes: 0,
            most_entries,
            most_bytes,
        }
    }

    /// The value of `key`, if it was checked within the last second.
    #[inline]
    pub(crate) fn fresh(&mut self, key: &str, now: Instant) -> Option<&mut V> {
        let slot = &mut self.slots[*self.places.get(key)?];
        if !is_fresh(slot.checked, now) {
            return None;
        }
        slot.used = true;
        Some(&mut slot.value)
    }

    /// Checks the value of `key` if the last check is more than a second ago: without `still`, it is removed.
    pub(crate) fn check(&mut self, key: &str, now: Instant, still: impl FnOnce(&V) -> bool) {
        let Some(&place) = self.places.get(key) else { return };
        let slot = &mut self.slots[place];
        if is_fresh(slot.checked, now) {
            return;
        }
        if still(&slot.value) {
            slot.checked = now;
        } else {
            self.remove(place);
        }
    }

    /// Expires the value of `key`: it is checked before it is used again.
    pub(crate) fn doubt(&mut self, key: &str) {
        if let Some(&place) = self.places.get(key) {
            self.slots[place].checked = LONG_AGO;
        }
    }

    /// Expires all values.
    pub(crate) fn doubt_all(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.checked = LONG_AGO);
    }

    /// Inserts `value`, which is `weight` bytes beside its key, and evicts others to make room. A value larger
    /// than the whole map is not inserted.
    pub(crate) fn insert(&mut self, key: &str, value: V, weight: usize, now: Instant) {
        let weight = weight + key.len() + size_of::<CacheSlot<V>>() + size_of::<(Rc<str>, usize)>();
        if let Some(&place) = self.places.get(key) {
            self.remove(place);
        }
        if self.most_entries == 0 || weight > self.most_bytes {
            return;
        }
        while self.slots.len() >= self.most_entries || self.bytes + weight > self.most_bytes {
            self.evict();
        }
        let key: Rc<str> = key.into();
        self.places.insert(Rc::clone(&key), self.slots.len());
        self.slots.push(CacheSlot { key, value, checked: now, used: false, weight });
        self.bytes += weight;
    }

    /// Changes the value of `key`, if there is one; `change` returns its new weight.
    pub(crate) fn update(&mut self, key: &str, change: impl FnOnce(&mut V) -> usize) {
        let Some(&place) = self.places.get(key) else { return };
        let CacheSlot { mut value, checked, .. } = self.remove(place);
        let weight = change(&mut value);
        self.insert(key, value, weight, checked);
    }

    /// Removes everything, and returns whether there was anything.
    pub(crate) fn clear(&mut self) -> bool {
        let any = !self.slots.is_empty();
        self.places.clear();
        self.slots.clear();
        (self.hand, self.bytes) = (0, 0);
        any
    }

    /// The number of bounds.
    pub(crate) const BOUNDS: usize = 2;

    /// Its use and its bound: of entries, and of bytes.
    pub(crate) fn load(&self) -> [(usize, usize); 2] {
        [(self.slots.len(), self.most_entries), (self.bytes, self.most_bytes)]
    }

    /// Removes an entry; there is at least one.
    pub(crate) fn evict(&mut self) {
        for _ in 0..CHANCES {
            if self.hand >= self.slots.len() {
                self.hand = 0;
            }
            if !std::mem::take(&mut self.slots[self.hand].used) {
                break;
            }
            self.hand += 1;
        }
        let place = if self.hand < self.slots.len() { self.hand } else { 0 };
        self.remove(place);
    }

    fn remove(&mut self, place: usize) -> CacheSlot<V> {
        let slot = self.slots.swap_remove(place);
        self.places.remove(&slot.key);
        self.bytes -= slot.weight;
        if let Some(moved) = self.slots.get(place) {
            *self.places.get_mut(&moved.key).expect("each slot has its place in the map") = place;
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant(5000);

    fn keys(cache: &ClockCache<u32>) -> usize {
        assert_eq!(cache.places.len(), cache.slots.len());
        assert_eq!(cache.bytes, cache.slots.iter().map(|slot| slot.weight).sum::<usize>());
        for (at, slot) in cache.slots.iter().enumerate() {
            assert_eq!(cache.places.get(&slot.key), Some(&at));
        }
        cache.slots.len()
    }

    #[test]
    fn an_entry_is_believed_for_a_second() {
        let mut cache = ClockCache::new(4, usize::MAX);
        cache.insert("/a", 1, 0, NOW);
        assert_eq!(cache.fresh("/a", Instant(NOW.0 + 999)), Some(&mut 1));
        assert_eq!(cache.fresh("/a", Instant(NOW.0 + 1000)), None);
        cache.check("/a", Instant(NOW.0 + 1000), |&value| value == 1);
        cache.check("/a", Instant(NOW.0 + 1999), |_| false);
        assert_eq!(cache.fresh("/a", Instant(NOW.0 + 1999)), Some(&mut 1));
        cache.check("/a", Instant(NOW.0 + 2000), |_| false);
        assert_eq!(cache.fresh("/a", NOW), None);
        assert_eq!(keys(&cache), 0);
    }

    #[test]
    fn what_is_doubted_is_checked_first() {
        let mut cache = ClockCache::new(4, usize::MAX);
        cache.insert("/a", 1, 0, NOW);
        cache.insert("/b", 2, 0, NOW);
        cache.doubt("/a");
        cache.doubt("/none");
        assert_eq!(cache.fresh("/a", NOW), None);
        assert_eq!(cache.fresh("/b", NOW), Some(&mut 2));
        cache.check("/a", NOW, |_| true);
        assert_eq!(cache.fresh("/a", NOW), Some(&mut 1));
        cache.doubt_all();
        assert!(cache.fresh("/a", NOW).is_none() && cache.fresh("/b", NOW).is_none());
    }

    #[test]
    fn the_bound_on_entries_is_exact() {
        let mut cache = ClockCache::new(3, usize::MAX);
        for (at, key) in ["/a", "/b", "/c", "/d", "/e"].iter().enumerate() {
            cache.insert(key, at as u32, 0, NOW);
            assert_eq!(keys(&cache), (at + 1).min(3));
        }
    }

    #[test]
    fn the_bound_on_bytes_is_exact() {
        let mut probe = ClockCache::new(9, usize::MAX);
        probe.insert("/a", 0, 100, NOW);
        let each = probe.bytes;
        let mut cache = ClockCache::new(9, 2 * each);
        for key in ["/a", "/b", "/c"] {
            cache.insert(key, 0, 100, NOW);
        }
        assert_eq!((keys(&cache), cache.bytes), (2, 2 * each));
        cache.insert("/x", 0, 100 + each, NOW);
        assert_eq!((keys(&cache), cache.bytes), (1, 2 * each));
        cache.insert("/y", 0, 101 + each, NOW);
        assert!(cache.fresh("/y", NOW).is_none() && cache.fresh("/x", NOW).is_some());
    }

    #[test]
    fn what_is_used_outlives_what_is_not() {
        let mut cache = ClockCache::new(8, usize::MAX);
        cache.insert("/good", 0, 0, NOW);
        for at in 1..1000 {
            assert_eq!(cache.fresh("/good", NOW), Some(&mut 0), "after {at}");
            cache.insert(&format!("/once/{at}"), at, 0, NOW);
            assert!(keys(&cache) <= 8);
        }
    }

    #[test]
    fn an_eviction_ends_though_everything_was_used() {
        let mut cache = ClockCache::new(100, usize::MAX);
        for at in 0..100 {
            cache.insert(&format!("/{at}"), at, 0, NOW);
        }
        for at in 0..100 {
            assert!(cache.fresh(&format!("/{at}"), NOW).is_some());
        }
        cache.insert("/new", 100, 0, NOW);
        assert_eq!(keys(&cache), 100);
        assert_eq!(cache.fresh("/new", NOW), Some(&mut 100));
        assert_eq!(cache.slots.iter().filter(|slot| !slot.used).count(), CHANCES);
    }

    #[test]
    fn what_is_updated_weighs_what_it_weighs_then_and_is_believed_no_longer() {
        let mut cache = ClockCache::new(4, 4096);
        cache.insert("/a", 1, 10, NOW);
        let before = cache.bytes;
        cache.update("/a", |value| {
            *value = 2;
            110
        });
        assert_eq!((cache.bytes, cache.fresh("/a", Instant(NOW.0 + 999))), (before + 100, Some(&mut 2)));
        assert_eq!(cache.fresh("/a", Instant(NOW.0 + 1000)), None);
        cache.update("/b", |_| unreachable!("nothing is known about it"));
        cache.update("/a", |_| 5000);
        assert_eq!(keys(&cache), 0, "what is larger than the whole is forgotten");
    }

    #[test]
    fn a_value_is_replaced_and_everything_forgotten() {
        let mut cache = ClockCache::new(2, usize::MAX);
        cache.insert("/a", 1, 10, NOW);
        cache.insert("/a", 2, 20, NOW);
        assert_eq!(cache.fresh("/a", NOW), Some(&mut 2));
        assert_eq!(keys(&cache), 1);
        assert!(cache.clear() && !cache.clear());
        assert_eq!(keys(&cache), 0);
        let mut none = ClockCache::new(0, usize::MAX);
        none.insert("/a", 1, 0, NOW);
        assert_eq!(keys(&none), 0);
    }
}
