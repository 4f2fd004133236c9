//! Eviction: at the bound on connections, an idle connection is closed for a new connection.
//!
//! A connection is idle while it waits for the first byte of a request, as in nginx (`ngx_reusable_connection`).
//! Requests do not maintain this state; a search finds it.

use std::time::Duration;

/// Idle connections that are compared for one new connection.
const SAMPLE: usize = 16;

/// The most places searched for one new connection. The next search continues after the last one, so that even few idle
/// connections are found eventually.
const SEARCHED: usize = 1024;

/// The most connections beyond the limit. Each replaces an evicted connection that is not closed yet.
pub(crate) const MOST_LEAVING: usize = 64;

/// The step from one place to the next. A prime above every number of places visits each place. Consecutive visits are
/// far apart, because neighbours began at about the same time.
const STRIDE: u64 = 2_654_435_761;

/// A search among numbered places that continues after the previous one.
#[derive(Debug, Default)]
pub(crate) struct Search(u64);

impl Search {
    /// Searches `places` places and returns up to [`SAMPLE`] idle ones, the longest idle first. `idle_for` returns the
    /// idle time of a place, or `None`.
    pub(crate) fn sample(
        &mut self,
        places: usize,
        mut idle_for: impl FnMut(usize) -> Option<Duration>,
    ) -> Vec<usize> {
        let mut found = Vec::with_capacity(SAMPLE);
        for _ in 0..places.min(SEARCHED) {
            self.0 = (self.0 + STRIDE) % places as u64;
            let place = self.0 as usize;
            found.extend(idle_for(place).map(|idle| (idle, place)));
            if found.len() == SAMPLE {
                break;
            }
        }
        found.sort_by(|(one, _), (other, _)| other.cmp(one));
        found.into_iter().map(|(_, place)| place).collect()
    }
}

/// The connections of a blocking engine, each served by a thread or a process of its own.
#[derive(Debug)]
pub(crate) struct Places<T> {
    all: Vec<Option<Occupant<T>>>,
    free: Vec<usize>,
    leaving: usize,
    search: Search,
}

#[derive(Debug)]
struct Occupant<T> {
    held: T,
    leaving: bool,
}

impl<T> Default for Places<T> {
    fn default() -> Places<T> {
        Places { all: Vec::new(), free: Vec::new(), leaving: 0, search: Search::default() }
    }
}

impl<T> Places<T> {
    /// Takes a free place, so that numbers stay below the greatest number of concurrent connections.
    pub(crate) fn insert(&mut self, held: T) -> usize {
        let place = Some(Occupant { held, leaving: false });
        match self.free.pop() {
            Some(at) => {
                self.all[at] = place;
                at
            }
            None => {
                self.all.push(place);
                self.all.len() - 1
            }
        }
    }

    /// The place that [`Places::insert`] takes next.
    pub(crate) fn next(&self) -> usize {
        self.free.last().copied().unwrap_or(self.all.len())
    }

    /// Frees a place, which is taken.
    pub(crate) fn remove(&mut self, at: usize) -> T {
        let place = self.all[at].take().expect("a place is freed by its only holder");
        self.leaving -= usize::from(place.leaving);
        self.free.push(at);
        place.held
    }

    /// The number of connections.
    pub(crate) fn count(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// The number of evicted connections that are not closed yet.
    pub(crate) fn leaving(&self) -> usize {
        self.leaving
    }

    /// All entries with their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.all.iter().enumerate().filter_map(|(at, place)| Some((at, &place.as_ref()?.held)))
    }

    /// The place of the longest idle connection of a sample; `None` if none is idle, or if too many are closing.
    pub(crate) fn longest_idle(&mut self, idle_for: impl Fn(usize, &T) -> Option<Duration>) -> Option<usize> {
        if self.leaving >= MOST_LEAVING {
            return None;
        }
        let Places { all, search, .. } = self;
        let staying = |at: usize| all[at].as_ref().filter(|place| !place.leaving);
        search.sample(all.len(), |at| idle_for(at, &staying(at)?.held)).first().copied()
    }

    /// Marks a taken place as evicted, and returns its entry.
    pub(crate) fn evict(&mut self, at: usize) -> &T {
        let place = self.all[at].as_mut().expect("only a connection that is there is evicted");
        self.leaving += usize::from(!std::mem::replace(&mut place.leaving, true));
        &place.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: usize) -> Option<Duration> {
        Some(Duration::from_secs(count as u64))
    }

    #[test]
    fn the_longest_idle_of_a_sample_comes_first() {
        let sample = Search::default().sample(SAMPLE, seconds);
        assert_eq!(sample, (0..SAMPLE).rev().collect::<Vec<_>>());
        let sample = Search::default().sample(1000, seconds);
        assert_eq!(sample.len(), SAMPLE);
        assert!(sample.is_sorted_by(|one, other| one > other), "{sample:?}");
    }

    #[test]
    fn the_only_idle_one_is_found_wherever_it_is() {
        for places in [1, 2, 10, 512, SEARCHED] {
            for only in [0, places / 2, places - 1] {
                let mut search = Search::default();
                for _ in 0..3 {
                    let found = search.sample(places, |at| seconds(1).filter(|_| at == only));
                    assert_eq!(found, [only], "of {places}");
                }
            }
        }
    }

    #[test]
    fn a_search_is_bounded_and_later_ones_reach_the_rest() {
        let (places, only) = (100_000, 77_777);
        let (mut search, mut looks) = (Search::default(), 0);
        let rounds = (1..).find(|_| {
            looks = 0;
            let found = search.sample(places, |at| {
                looks += 1;
                seconds(1).filter(|_| at == only)
            });
            assert!(looks <= SEARCHED, "{looks}");
            found == [only]
        });
        assert!(rounds.is_some_and(|rounds| rounds <= places.div_ceil(SEARCHED)), "{rounds:?}");
    }

    #[test]
    fn nobody_is_idle_where_there_is_nobody() {
        assert_eq!(Search::default().sample(0, seconds), []);
        assert_eq!(Places::<()>::default().longest_idle(|at, ()| seconds(at)), None);
    }

    #[test]
    fn an_evicted_connection_is_not_chosen_again_and_too_many_of_them_stop_it() {
        let mut places = Places::default();
        let all: Vec<_> = (0..2 * MOST_LEAVING).map(|number| places.insert(number)).collect();
        for evicted in 0..MOST_LEAVING {
            assert_eq!(places.leaving(), evicted);
            let at = places.longest_idle(|at, _| seconds(at)).expect("some are idle");
            let held = *places.evict(at);
            assert_eq!((held, places.leaving()), (at, evicted + 1));
        }
        assert_eq!(places.longest_idle(|at, _| seconds(at)), None, "too many are leaving");
        assert_eq!(places.count(), all.len());
        all.iter().for_each(|at| assert_eq!(places.remove(*at), *at));
        assert_eq!((places.count(), places.leaving()), (0, 0));
    }

    #[test]
    fn places_are_taken_again() {
        let mut places = Places::default();
        assert_eq!((places.next(), places.insert('a')), (0, 0));
        assert_eq!((places.next(), places.insert('b')), (1, 1));
        assert_eq!(places.remove(0), 'a');
        assert_eq!((places.next(), places.insert('c')), (0, 0));
        assert_eq!(places.iter().collect::<Vec<_>>(), [(0, &'c'), (1, &'b')]);
    }
}
