//! The published sorted list (T23). An insertion walks from the head, so a late deadline walks the whole list. The
//! server's list walks from the tail.

use tenfold_engine::timer::Timer;
use tenfold_http::Instant;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct ListEntry {
    at: u64,
    previous: u32,
    next: u32,
    armed: bool,
}

/// A doubly linked list in the order of deadlines, in one array.
pub(super) struct HeadList {
    entries: Vec<ListEntry>,
    head: u32,
    /// Entries that insertions visited.
    pub(super) steps: u64,
}

impl Default for HeadList {
    fn default() -> Self {
        HeadList { entries: Vec::new(), head: NONE, steps: 0 }
    }
}

impl Timer for HeadList {
    fn arm(&mut self, index: u32, at: Instant) {
        self.disarm(index);
        let empty = ListEntry { at: 0, previous: NONE, next: NONE, armed: false };
        if self.entries.len() <= index as usize {
            self.entries.resize(index as usize + 1, empty);
        }
        let (mut previous, mut next) = (NONE, self.head);
        while next != NONE && self.entries[next as usize].at <= at.0 {
            self.steps += 1;
            (previous, next) = (next, self.entries[next as usize].next);
        }
        self.entries[index as usize] = ListEntry { at: at.0, previous, next, armed: true };
        match previous {
            NONE => self.head = index,
            previous => self.entries[previous as usize].next = index,
        }
        if next != NONE {
            self.entries[next as usize].previous = index;
        }
    }

    fn disarm(&mut self, index: u32) {
        let Some(entry) = self.entries.get_mut(index as usize).filter(|entry| entry.armed) else { return };
        entry.armed = false;
        let ListEntry { previous, next, .. } = *entry;
        match previous {
            NONE => self.head = next,
            previous => self.entries[previous as usize].next = next,
        }
        if next != NONE {
            self.entries[next as usize].previous = previous;
        }
    }

    fn next(&self) -> Option<Instant> {
        self.entries.get(self.head as usize).map(|entry| Instant(entry.at))
    }

    fn expire(&mut self, now: Instant, due: &mut Vec<u32>) {
        while self.head != NONE && self.entries[self.head as usize].at <= now.0 {
            let index = self.head;
            self.disarm(index);
            due.push(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_in_order_and_once() {
        let mut list = HeadList::default();
        for (index, at) in [(0, 30), (1, 10), (2, 20), (3, 40)] {
            list.arm(index, Instant(at));
        }
        list.arm(1, Instant(35));
        list.disarm(0);
        assert_eq!(list.next(), Some(Instant(20)));
        let mut due = Vec::new();
        list.expire(Instant(36), &mut due);
        assert_eq!(due, [2, 1]);
        list.expire(Instant(100), &mut due);
        assert_eq!((due, list.next()), (vec![2, 1, 3], None));
    }
}
