//! A bounded map from paths to cached values, with second-chance eviction.
//!
//! A hit sets a bit. To make room, a hand goes round: it clears the bit of an entry that has it, and evicts
//! the first entry without it (the CLOCK algorithm). The hand spares at most [`CHANCES`] entries in a row, so
//! the cost of an eviction is bounded even if all entries were used recently.

use std::collections::HashMap;
use std::rc::Rc;

use tenfold_http::Instant;

/// The most entries that one eviction spares.
const CHANCES: usize = 16;

/// An expired moment: the clock of a server starts with the machine, so it has always passed 1 s.
const LONG_AGO: Instant = Instant(0);

/// Whether a check at this moment is still valid: it is for a second.
#[inline]
pub(crate) fn is_fresh(checked: Instant, now: Instant) -> bool {
    now.0.saturating_sub(checked.0) < 1000
}

/// A map within bounds of entries and bytes.
pub(crate) struct ClockCache<V> {
    indices: HashMap<Rc<str>, usize, foldhash::fast::RandomState>,
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
    /// Returns an empty map with a bound on its entries and on the sum of their weights in bytes.
    pub(crate) fn new(most_entries: usize, most_bytes: usize) -> ClockCache<V> {
        ClockCache {
            indices: HashMap::default(),
            slots: Vec::new(),
            hand: 0,
            bytes: 0,
            most_entries,
            most_bytes,
        }
    }

    /// Returns the value of `key` if it was checked within the last second.
    #[inline]
    pub(crate) fn fresh(&mut self, key: &str, now: Instant) -> Option<&mut V> {
        let slot = &mut self.slots[*self.indices.get(key)?];
        if !is_fresh(slot.checked, now) {
            return None;
        }
        slot.used = true;
        Some(&mut slot.value)
    }

    /// Checks the value of `key` if its last check was more than a second ago. If `still` returns false, it
    /// is removed.
    pub(crate) fn check(&mut self, key: &str, now: Instant, still: impl FnOnce(&V) -> bool) {
        let Some(&index) = self.indices.get(key) else { return };
        let slot = &mut self.slots[index];
        if is_fresh(slot.checked, now) {
            return;
        }
        if still(&slot.value) {
            slot.checked = now;
        } else {
            self.remove(index);
        }
    }

    /// Expires the value of `key`: it is checked before its next use.
    pub(crate) fn expire(&mut self, key: &str) {
        if let Some(&index) = self.indices.get(key) {
            self.slots[index].checked = LONG_AGO;
        }
    }

    /// Expires all values.
    pub(crate) fn expire_all(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.checked = LONG_AGO);
    }

    /// Inserts `value`, which has `weight` bytes besides its key, and evicts other entries to make room. A
    /// value larger than the whole map is not inserted.
    pub(crate) fn insert(&mut self, key: &str, value: V, weight: usize, now: Instant) {
        let weight = weight + key.len() + size_of::<CacheSlot<V>>() + size_of::<(Rc<str>, usize)>();
        if let Some(&index) = self.indices.get(key) {
            self.remove(index);
        }
        if self.most_entries == 0 || weight > self.most_bytes {
            return;
        }
        while self.slots.len() >= self.most_entries || self.bytes + weight > self.most_bytes {
            self.evict();
        }
        let key: Rc<str> = key.into();
        self.indices.insert(Rc::clone(&key), self.slots.len());
        self.slots.push(CacheSlot { key, value, checked: now, used: false, weight });
        self.bytes += weight;
    }

    /// Changes the value of `key`, if it exists; `change` returns the new weight.
    pub(crate) fn update(&mut self, key: &str, change: impl FnOnce(&mut V) -> usize) {
        let Some(&index) = self.indices.get(key) else { return };
        let CacheSlot { mut value, checked, .. } = self.remove(index);
        let weight = change(&mut value);
        self.insert(key, value, weight, checked);
    }

    /// Removes all entries. Returns whether there were any.
    pub(crate) fn clear(&mut self) -> bool {
        let any = !self.slots.is_empty();
        self.indices.clear();
        self.slots.clear();
        (self.hand, self.bytes) = (0, 0);
        any
    }

    /// The number of bounds.
    pub(crate) const BOUNDS: usize = 2;

    /// The use and the bound of entries, and of bytes.
    pub(crate) fn load(&self) -> [(usize, usize); 2] {
        [(self.slots.len(), self.most_entries), (self.bytes, self.most_bytes)]
    }

    /// Removes an entry. The map must not be empty.
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
        let index = if self.hand < self.slots.len() { self.hand } else { 0 };
        self.remove(index);
    }

    fn remove(&mut self, index: usize) -> CacheSlot<V> {
        let slot = self.slots.swap_remove(index);
        self.indices.remove(&slot.key);
        self.bytes -= slot.weight;
        if let Some(moved) = self.slots.get(index) {
            *self.indices.get_mut(&moved.key).expect("each slot has its index in the map") = index;
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant(5000);

    fn keys(cache: &ClockCache<u32>) -> usize {
        assert_eq!(cache.indices.len(), cache.slots.len());
        assert_eq!(cache.bytes, cache.slots.iter().map(|slot| slot.weight).sum::<usize>());
        for (at, slot) in cache.slots.iter().enumerate() {
            assert_eq!(cache.indices.get(&slot.key), Some(&at));
        }
        cache.slots.len()
    }

    #[test]
    fn an_entry_is_fresh_for_a_second() {
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
    fn an_expired_value_is_checked_first() {
        let mut cache = ClockCache::new(4, usize::MAX);
        cache.insert("/a", 1, 0, NOW);
        cache.insert("/b", 2, 0, NOW);
        cache.expire("/a");
        cache.expire("/none");
        assert_eq!(cache.fresh("/a", NOW), None);
        assert_eq!(cache.fresh("/b", NOW), Some(&mut 2));
        cache.check("/a", NOW, |_| true);
        assert_eq!(cache.fresh("/a", NOW), Some(&mut 1));
        cache.expire_all();
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
    fn used_entries_outlive_unused_entries() {
        let mut cache = ClockCache::new(8, usize::MAX);
        cache.insert("/good", 0, 0, NOW);
        for at in 1..1000 {
            assert_eq!(cache.fresh("/good", NOW), Some(&mut 0), "after {at}");
            cache.insert(&format!("/once/{at}"), at, 0, NOW);
            assert!(keys(&cache) <= 8);
        }
    }

    #[test]
    fn an_eviction_ends_if_all_entries_were_used() {
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
    fn an_update_changes_the_weight_and_not_the_time_of_the_check() {
        let mut cache = ClockCache::new(4, 4096);
        cache.insert("/a", 1, 10, NOW);
        let before = cache.bytes;
        cache.update("/a", |value| {
            *value = 2;
            110
        });
        assert_eq!((cache.bytes, cache.fresh("/a", Instant(NOW.0 + 999))), (before + 100, Some(&mut 2)));
        assert_eq!(cache.fresh("/a", Instant(NOW.0 + 1000)), None);
        cache.update("/b", |_| unreachable!("the map has no such key"));
        cache.update("/a", |_| 5000);
        assert_eq!(keys(&cache), 0, "a value larger than the map is removed");
    }

    #[test]
    fn values_are_replaced_and_cleared() {
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
