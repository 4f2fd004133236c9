//! The dynamic table of a decoder (RFC 7541 §2.3.2), compact enough for a connection at rest.
//!
//! One allocation has the names and values from the front, oldest first, and a place for each entry from the back. An
//! entry counts 32 octets besides its name and value and needs 4 bytes for its place, so the allocation never exceeds
//! the size of the table.

/// The size that an entry or a field has besides its name and value (RFC 7541 §4.1, RFC 9113 §6.5.2).
pub(crate) const OVERHEAD: usize = 32;

/// The size of a table until settings change it (RFC 9113 §6.5.2), in octets of RFC 7541 §4.1.
pub const DEFAULT_TABLE_SIZE: u16 = 4096;

/// The bytes of a place: the offset and the length of the name.
const PLACE: usize = 4;

/// An allocation is a multiple of this length, unless the table is smaller.
const STEP: usize = 64;

/// Entries in the order of their insertion.
#[derive(Debug)]
pub(crate) struct Table {
    memory: Box<[u8]>,
    /// Evicted entries whose places are still in memory.
    evicted: u16,
    /// Entries with places in memory, including the evicted ones.
    inserted: u16,
    /// The end of the names and values.
    end: u16,
    /// Octets as RFC 7541 §4.1 counts them.
    size: u16,
    most: u16,
}

impl Table {
    /// An empty table of at most `most` octets.
    pub(crate) fn new(most: u16) -> Table {
        Table { memory: Box::default(), evicted: 0, inserted: 0, end: 0, size: 0, most }
    }

    /// The most octets.
    pub(crate) fn most(&self) -> u16 {
        self.most
    }

    /// The bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.memory.len()
    }

    /// The entry that was inserted `index` entries before the newest.
    pub(crate) fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let at = usize::from(self.inserted).checked_sub(index.checked_add(1)?)?;
        (at >= usize::from(self.evicted)).then(|| self.entry(at))
    }

    /// Inserts an entry and evicts the oldest ones for it. An entry larger than the table empties it (RFC 7541 §4.4).
    pub(crate) fn insert(&mut self, name: &[u8], value: &[u8]) {
        let length = name.len() + value.len();
        if length + OVERHEAD > usize::from(self.most) {
            self.clear();
            return;
        }
        self.evict_to(usize::from(self.most) - length - OVERHEAD);
        self.make_room(length);
        let start = usize::from(self.end);
        self.memory[start..start + name.len()].copy_from_slice(name);
        self.memory[start + name.len()..start + length].copy_from_slice(value);
        self.set_place(usize::from(self.inserted), start, name.len());
        // These fit in 16 bits, because the table does.
        self.inserted += 1;
        self.end += length as u16;
        self.size += (length + OVERHEAD) as u16;
    }

    /// Evicts every entry.
    pub(crate) fn clear(&mut self) {
        self.evict_to(0);
    }

    /// Changes the most octets, and evicts entries until the rest fits. The allocation shrinks with the table.
    pub(crate) fn resize(&mut self, most: u16) {
        self.most = most;
        self.evict_to(usize::from(most));
        if self.size == 0 {
            self.memory = Box::default();
        } else if self.memory.len() > usize::from(most) {
            self.rebuild(usize::from(most));
        }
    }

    fn evict_to(&mut self, size: usize) {
        while usize::from(self.size) > size {
            let (name, value) = self.entry(usize::from(self.evicted));
            self.size -= (name.len() + value.len() + OVERHEAD) as u16;
            self.evicted += 1;
        }
        if self.evicted == self.inserted {
            (self.evicted, self.inserted, self.end) = (0, 0, 0);
        }
    }

    /// Makes room for an entry of `length` bytes and its place.
    fn make_room(&mut self, length: usize) {
        let needed = usize::from(self.end) + length + PLACE * (usize::from(self.inserted) + 1);
        if needed <= self.memory.len() {
            return;
        }
        let count = self.count();
        let compact = usize::from(self.size) - OVERHEAD * count + length + PLACE * (count + 1);
        let grown = compact.next_multiple_of(STEP).min(self.most.into());
        self.rebuild(grown.max(self.memory.len()));
    }

    /// Moves the entries to the front of an allocation of this length, in which they fit.
    fn rebuild(&mut self, length: usize) {
        let (first, count) = (usize::from(self.evicted), self.count());
        let start = if count > 0 { self.place(first).0 } else { 0 };
        let live = start..usize::from(self.end);
        let old = if length == self.memory.len() {
            None
        } else {
            Some(std::mem::replace(&mut self.memory, vec![0; length].into_boxed_slice()))
        };
        // In place, the places move towards the end in order, so each is read before it is overwritten.
        for at in 0..count {
            let (begin, name) = place_in(old.as_deref().unwrap_or(&self.memory), first + at);
            self.set_place(at, begin - start, name);
        }
        match &old {
            Some(old) => self.memory[..live.len()].copy_from_slice(&old[live.clone()]),
            None => self.memory.copy_within(live.clone(), 0),
        }
        (self.evicted, self.inserted, self.end) = (0, count as u16, live.len() as u16);
    }

    fn count(&self) -> usize {
        usize::from(self.inserted - self.evicted)
    }

    fn entry(&self, at: usize) -> (&[u8], &[u8]) {
        let (start, name) = self.place(at);
        let is_newest = at + 1 == usize::from(self.inserted);
        let end = if is_newest { usize::from(self.end) } else { self.place(at + 1).0 };
        self.memory[start..end].split_at(name)
    }

    fn place(&self, at: usize) -> (usize, usize) {
        place_in(&self.memory, at)
    }

    fn set_place(&mut self, at: usize, start: usize, name: usize) {
        let place = self.memory.len() - PLACE * (at + 1);
        self.memory[place..place + 2].copy_from_slice(&(start as u16).to_le_bytes());
        self.memory[place + 2..place + PLACE].copy_from_slice(&(name as u16).to_le_bytes());
    }
}

/// The place of an entry: the offset and the length of its name.
fn place_in(memory: &[u8], at: usize) -> (usize, usize) {
    let place = memory.len() - PLACE * (at + 1);
    let number = |at: usize| usize::from(u16::from_le_bytes([memory[at], memory[at + 1]]));
    (number(place), number(place + 2))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// The same table as a simple queue.
    struct Model {
        entries: VecDeque<(Vec<u8>, Vec<u8>)>,
        most: usize,
    }

    impl Model {
        fn size(&self) -> usize {
            self.entries.iter().map(|(name, value)| name.len() + value.len() + OVERHEAD).sum()
        }

        fn insert(&mut self, name: &[u8], value: &[u8]) {
            self.entries.push_front((name.to_vec(), value.to_vec()));
            self.shrink();
        }

        fn shrink(&mut self) {
            while self.size() > self.most {
                self.entries.pop_back();
            }
        }

        fn agrees(&self, table: &Table) {
            assert_eq!(self.size(), usize::from(table.size));
            assert!(table.heap_bytes() <= self.most, "{} bytes for {}", table.heap_bytes(), self.most);
            for (index, (name, value)) in self.entries.iter().enumerate() {
                assert_eq!(table.get(index), Some((&name[..], &value[..])));
            }
            assert_eq!(table.get(self.entries.len()), None);
        }
    }

    #[test]
    fn any_insertions_and_sizes_are_those_of_a_queue() {
        bolero::check!().with_type::<(u16, Vec<(u8, u8, u16, u8)>)>().for_each(|(most, steps)| {
            let most = most % 5000;
            let mut table = Table::new(most);
            let mut model = Model { entries: VecDeque::new(), most: most.into() };
            for (number, &(kind, name, value, size)) in steps.iter().enumerate() {
                if kind % 16 == 0 {
                    let most = u16::from(size) * 20;
                    table.resize(most);
                    model.most = most.into();
                    model.shrink();
                } else {
                    let name = vec![number as u8; usize::from(name % 40)];
                    // Most values are short, and some are as large as the table.
                    let length = if kind % 16 == 1 { value % 5000 } else { value % 50 };
                    let value = vec![kind; usize::from(length)];
                    table.insert(&name, &value);
                    model.insert(&name, &value);
                }
                model.agrees(&table);
            }
        });
    }

    #[test]
    fn an_empty_table_has_no_memory() {
        let mut table = Table::new(4096);
        assert_eq!(table.heap_bytes(), 0);
        table.insert(b"name", b"value");
        assert_eq!(table.heap_bytes(), STEP);
        table.resize(0);
        assert_eq!((table.heap_bytes(), table.get(0)), (0, None));
    }

    #[test]
    fn a_full_table_needs_no_more_than_its_size() {
        for length in [0, 1, 20, 100, 2000, 4064] {
            let mut table = Table::new(4096);
            for _ in 0..1000 {
                table.insert(b"", &vec![b'v'; length]);
                assert!(table.heap_bytes() <= 4096);
            }
            assert_eq!(table.count(), 4096 / (length + OVERHEAD));
        }
    }

    #[test]
    fn the_largest_table_keeps_its_numbers_in_16_bits() {
        let mut table = Table::new(u16::MAX);
        for _ in 0..5000 {
            table.insert(b"", b"");
        }
        assert_eq!(table.count(), usize::from(u16::MAX) / OVERHEAD);
        table.insert(&[b'n'; 65_503], b"");
        assert_eq!((table.count(), table.size), (1, u16::MAX));
    }
}
