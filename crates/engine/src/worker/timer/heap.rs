//! A binary heap: every timer fires no later than the two below it, so what fires next is on top.
//!
//! A second table holds the position of each slot's timer in the heap, so that it can be moved or removed. Arming,
//! disarming and taking the top timer each move up or down the heap, at most one step per level.

use tenfold_http::Instant;

use super::interface::{NONE, Timer};
use super::steps::StepCount;

pub(super) struct Heap {
    /// When a timer fires, and whose it is.
    heap: Vec<(Instant, u32)>,
    /// By slot: its place in the heap.
    places: Vec<u32>,
    steps: StepCount,
}

impl Heap {
    pub(super) fn new() -> Heap {
        Heap { heap: Vec::new(), places: Vec::new(), steps: StepCount::default() }
    }

    fn place_of(&self, index: u32) -> Option<usize> {
        let place = *self.places.get(index as usize)?;
        (place != NONE).then_some(place as usize)
    }

    fn put(&mut self, place: usize, timer: (Instant, u32)) {
        self.steps.take();
        self.heap[place] = timer;
        self.places[timer.1 as usize] = place as u32;
    }

    /// Moves `timer` from `place` up, or down, to where it belongs.
    fn settle(&mut self, mut place: usize, timer: (Instant, u32)) {
        while place > 0 && timer.0 < self.heap[(place - 1) / 2].0 {
            self.put(place, self.heap[(place - 1) / 2]);
            place = (place - 1) / 2;
        }
        while let Some(below) = self.sooner_below(place) {
            if timer.0 <= self.heap[below].0 {
                break;
            }
            self.put(place, self.heap[below]);
            place = below;
        }
        self.put(place, timer);
    }

    /// The one of the two below `place` that fires first.
    fn sooner_below(&self, place: usize) -> Option<usize> {
        let (left, right) = (2 * place + 1, 2 * place + 2);
        match (self.heap.get(left), self.heap.get(right)) {
            (Some(one), Some(other)) if other.0 < one.0 => Some(right),
            (Some(_), _) => Some(left),
            (None, _) => None,
        }
    }
}

impl Timer for Heap {
    fn arm(&mut self, index: u32, at: Instant) {
        if self.places.len() <= index as usize {
            self.places.resize(index as usize + 1, NONE);
        }
        let place = self.place_of(index).unwrap_or_else(|| {
            self.heap.push((at, index));
            self.heap.len() - 1
        });
        self.settle(place, (at, index));
    }

    fn disarm(&mut self, index: u32) {
        let Some(place) = self.place_of(index) else { return };
        self.places[index as usize] = NONE;
        let last = self.heap.pop().expect("a timer that has a place is in the heap");
        if place < self.heap.len() {
            self.settle(place, last);
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

    #[cfg(test)]
    fn steps(&self) -> u64 {
        self.steps.count()
    }
}
