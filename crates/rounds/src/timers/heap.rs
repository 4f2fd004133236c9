//! A binary heap: no timer fires later than its two children, so the next one is on top.
//!
//! A second table holds the position of each slot's timer in the heap, so that it can be moved or removed. Arming,
//! disarming and taking the top timer each move up or down the heap, at most one step per level.

use tenfold_engine::timer::Timer;
use tenfold_http::Instant;

const NONE: u32 = u32::MAX;

#[derive(Default)]
pub(super) struct Heap {
    /// The deadline and the slot of each timer.
    heap: Vec<(Instant, u32)>,
    /// By slot: the position in the heap.
    positions: Vec<u32>,
}

impl Heap {
    fn position_of(&self, index: u32) -> Option<usize> {
        let position = *self.positions.get(index as usize)?;
        (position != NONE).then_some(position as usize)
    }

    fn put(&mut self, position: usize, timer: (Instant, u32)) {
        self.heap[position] = timer;
        self.positions[timer.1 as usize] = position as u32;
    }

    /// Moves `timer` from `position` up or down to its position.
    fn settle(&mut self, mut position: usize, timer: (Instant, u32)) {
        while position > 0 && timer.0 < self.heap[(position - 1) / 2].0 {
            self.put(position, self.heap[(position - 1) / 2]);
            position = (position - 1) / 2;
        }
        while let Some(below) = self.sooner_below(position) {
            if timer.0 <= self.heap[below].0 {
                break;
            }
            self.put(position, self.heap[below]);
            position = below;
        }
        self.put(position, timer);
    }

    /// The child of `position` that fires first.
    fn sooner_below(&self, position: usize) -> Option<usize> {
        let (left, right) = (2 * position + 1, 2 * position + 2);
        match (self.heap.get(left), self.heap.get(right)) {
            (Some(one), Some(other)) if other.0 < one.0 => Some(right),
            (Some(_), _) => Some(left),
            (None, _) => None,
        }
    }
}

impl Timer for Heap {
    fn arm(&mut self, index: u32, at: Instant) {
        if self.positions.len() <= index as usize {
            self.positions.resize(index as usize + 1, NONE);
        }
        let position = self.position_of(index).unwrap_or_else(|| {
            self.heap.push((at, index));
            self.heap.len() - 1
        });
        self.settle(position, (at, index));
    }

    fn disarm(&mut self, index: u32) {
        let Some(position) = self.position_of(index) else { return };
        self.positions[index as usize] = NONE;
        let last = self.heap.pop().expect("a timer with a position is in the heap");
        if position < self.heap.len() {
            self.settle(position, last);
        }
    }

    fn next(&self) -> Option<Instant> {
        self.heap.first().map(|(at, _)| *at)
    }

    fn expire(&mut self, now: Instant, due: &mut Vec<u32>) {
        while let Some(&(at, index)) = self.heap.first() {
            if at > now {
                return;
            }
            self.disarm(index);
            due.push(index);
        }
    }
}
